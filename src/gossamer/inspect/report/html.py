"""The report as a web page: one file that needs nothing else and runs nothing.

Everything that came from the web (host names, URLs, rules, types) goes through `safe` or `breakable`. URLs are
text, not links, so that nothing is opened by accident; the links of the page lead to places in it. Values of charts
are titles, which a browser shows while the pointer is over them. This module has the frame, the totals, time and
answers; `html_corpus`, `html_findings` and `html_hosts` have the rest.
"""

from __future__ import annotations

import shlex

from gossamer import __version__
from gossamer.figures import RUNNING
from gossamer.inspect.report.html_corpus import corpus_cards
from gossamer.inspect.report.html_findings import broken_cards, redirect_cards, title_cards
from gossamer.inspect.report.html_hosts import host_cards, left_cards, rule_cards
from gossamer.inspect.report.page import (
    Section,
    card,
    contents,
    counts,
    examples,
    key,
    moment,
    ms,
    safe,
    short,
    span,
    table,
)
from gossamer.inspect.report.record import DeadLetters, Point, Report
from gossamer.inspect.report.style import STYLE, content_policy
from gossamer.inspect.report.svg import Bar, Series, line_chart, share_bar
from gossamer.telemetry.text import agreeing, count, duration, escape, percent, plural, size

_STATUS_WORDS = {
    "2": "2xx success",
    "3": "3xx redirect",
    "4": "4xx client error",
    "5": "5xx server error",
    "0": "no HTTP answer",
}
_ROWS_OVER_TIME = 24


def render_html(report: Report) -> str:
    """Return the page."""
    title = f"Crawl {safe(report.summary.out.rstrip('/').rpartition('/')[2] or report.summary.out)}"
    sections = [
        Section("time", "Over time", _charts(report), flows=False),
        Section("answers", "Answers", [_statuses(report), _errors(report), _times(report), _dead(report)]),
        Section("corpus", "What was collected", corpus_cards(report)),
        Section("broken", "Broken links", broken_cards(report), flows=False),
        Section("redirects", "Redirects", redirect_cards(report), flows=False),
        Section("titles", "Titles and descriptions", title_cards(report)),
        Section("rules", "Robots and rules", rule_cards(report)),
        Section("hosts", "Hosts", host_cards(report)),
        Section("left", "What is left", left_cards(report)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy())}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{title}</h1><p>{_when(report)}</p></header>\n"
        f"{contents(sections)}\n{_warnings(report)}\n{_tiles(report)}\n"
        + "\n".join(section.html() for section in sections)
        + f"\n<footer>Gossamer {__version__}, {moment(report.made_at)}. The same figures, for programs: "
        "<code>report.json</code>. Times are in UTC.</footer>\n</main>\n</body>\n</html>\n"
    )


def _when(report: Report) -> str:
    summary = report.summary
    runs = f" in {report.runs} runs" if report.runs > 1 else ""
    return f"{moment(report.started_at)} to {moment(report.last_event_at)} UTC{runs}: {safe(summary.ended_because)}."


def _warnings(report: Report) -> str:
    if not report.warnings:
        return ""
    return '<div class="warn">' + "".join(f"<p>{safe(line)}</p>" for line in report.warnings) + "</div>"


def _tiles(report: Report) -> str:
    s = report.summary
    tiles = [
        ("corpus", "pages", count(s.pages), f"{s.pages_per_second:.1f} per second, {percent(s.html_share)} HTML"),
        ("hosts", "domains", count(s.unique_domains), f"{plural(s.unique_hosts, 'host')} with pages"),
        ("answers", "fetches", count(s.fetches), f"{size(s.bytes)} received"),
        ("answers", "errors", count(s.errors), f"{percent(s.error_rate)} of fetches, {plural(s.dead, 'URL')} given up"),
        (
            "rules",
            "forbidden by robots.txt",
            count(s.robots_disallowed),
            f"{plural(report.robots.fetched, 'file')} read",
        ),
        ("corpus", "duplicates", count(s.duplicates), f"{plural(s.near_duplicates, 'near duplicate')}"),
        ("left", "URLs known", count(s.urls_seen), f"{count(s.urls_queued)} queued, {count(s.urls_parked)} parked"),
        ("time", "time", duration(s.seconds), s.cpu_text()),
    ]
    cells = (
        f'<a class="tile" href="#{target}"><span class="name">{name}</span><b>{value}</b><span>{note}</span></a>'
        for target, name, value, note in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


# -- over time ------------------------------------------------------------------------------------


def _charts(report: Report) -> list[str]:
    timeline = report.timeline
    pages = Series("pages", "main", [(point.t_s, float(point.pages)) for point in timeline])
    errors = Series("errors", "second", [(point.t_s, float(point.errors)) for point in timeline])
    rate = Series("pages per second", "main", _mean_rates(timeline))
    counted = [point for point in timeline if _is_counted(point)]
    domains = Series("domains", "main", [(point.t_s, float(point.domains)) for point in counted])
    queued = Series("queued", "main", [(point.t_s, float(point.queued)) for point in counted])
    has_beats = any(point.domains for point in timeline[:-1])  # else there is nothing but the end to draw
    of_domains = key([("main", "registrable domains with a page")]) + _chart("unique domains", domains)
    of_queue = key([("main", "found and not fetched yet")]) + _chart("URLs queued", queued)
    of_pages = key([("main", "pages"), ("second", "errors")]) + _chart("pages and errors over time", pages, errors)
    return [
        card("Pages", of_pages),
        *([card("Unique domains", of_domains)] if has_beats else []),
        card("Pages per second", key([("main", "mean of each interval")]) + _chart("pages per second", rate)),
        *([card("URLs queued", of_queue)] if has_beats else []),
        _numbers(timeline),
    ]


def _is_counted(point: Point) -> bool:
    """Return whether domains and queue are known here: the first heartbeat comes after some pages."""
    return bool(point.domains) or not point.pages


def _chart(title: str, *series: Series) -> str:
    return line_chart(title, series, span, lambda value: f"{value:,.4g}" if value < 1000 else short(value))


def _mean_rates(timeline: list[Point]) -> list[tuple[float, float]]:
    """Return the rate between points that are far enough apart for it to mean something."""
    step = max(1, len(timeline) // 60)
    ends = timeline[::-1][::step][::-1]
    if len(ends) > 2 and ends[-1].t_s - ends[-2].t_s < (ends[-2].t_s - ends[-3].t_s) / 2:
        del ends[-2]  # the crawl ended soon after it: one page in so short a time would be a peak
    starts = [timeline[0], *ends]
    pairs = [(a, b) for a, b in zip(starts, ends, strict=False) if b.t_s > a.t_s]
    return [(b.t_s, (b.pages - a.pages) / (b.t_s - a.t_s)) for a, b in pairs]


def _counts_at(point: Point) -> tuple[str, str]:
    return (count(point.domains), count(point.queued)) if _is_counted(point) else ("", "")


def _numbers(timeline: list[Point]) -> str:
    step = max(1, -(-(len(timeline) - 1) // _ROWS_OVER_TIME))
    rows = [(span(p.t_s), count(p.pages), count(p.errors), *_counts_at(p)) for p in timeline[:0:-step][::-1]]
    heads = ["after", "pages", "errors", "domains", "queued"]
    inner = card("Since the start", table(heads, rows, frozenset({1, 2, 3, 4})))
    return f'<details class="wide"><summary>the same in numbers</summary>{inner}</details>'


# -- answers --------------------------------------------------------------------------------------


def _statuses(report: Report) -> str:
    statuses = report.fetches.statuses
    classes = dict.fromkeys("23450", 0)
    for status in statuses:
        digit = status.name[:1]
        classes[digit if digit in classes else "0"] += status.count
    answered = sum(entry.count for entry in statuses)
    classes["0"] += max(0, sum(entry.count for entry in report.fetches.outcomes) - answered)
    notes = {digit: f"{_STATUS_WORDS[digit]}: {count(number)}" for digit, number in classes.items()}
    bar = share_bar(
        "answers by status", [(f"s{digit}", Bar(digit, number, notes[digit])) for digit, number in classes.items()]
    )
    legend = key([(f"s{digit}", notes[digit]) for digit, number in classes.items() if number])
    note = "<p>Of all requests: pages, robots.txt and sitemaps.</p>"
    return card("Status", bar + legend + note + counts(statuses, "status", "answers"))


def _errors(report: Report) -> str:
    fetches = report.fetches
    note = (
        f"<p>{count(fetches.retries)} tried again, {plural(fetches.redirects, 'redirect')}. "
        f"Each failed attempt counts; a missing robots.txt is no error.{_lost(report)}</p>"
    )
    return card("Errors by kind", note + counts(fetches.errors, "kind", "attempts"))


def _lost(report: Report) -> str:
    lost = agreeing(report.fetches.not_committed, "fetch")
    text = (
        f" {lost} not counted: a killed process did not commit what it had fetched, and the next one fetched it again."
    )
    return text if report.fetches.not_committed and report.summary.finished != RUNNING else ""


def _times(report: Report) -> str:
    rows = [
        (name, *(ms(value) for value in (p.p10, p.p50, p.p90, p.p99, p.most)))
        for name, p in (("first byte", report.fetches.first_byte_ms), ("whole request", report.fetches.total_ms))
    ]
    heads = ["", "p10", "median", "p90", "p99", "most"]
    return card("Time of a request", table(heads, rows, frozenset({1, 2, 3, 4, 5})))


def _dead(report: Report) -> str:
    if not report.left.dead:
        return card("Dead letters", '<p class="none">none</p>')
    out = shlex.quote(report.summary.out)
    note = f"<p>URLs that failed for good. <code>gossamer retry {safe(out)}</code> queues them again.</p>"
    return card("Dead letters", note + "".join(_dead_kind(kind, out) for kind in report.left.dead))


def _dead_kind(kind: DeadLetters, out: str) -> str:
    more = kind.count - len(kind.examples)
    command = f"gossamer retry {out} --list --outcome {shlex.quote(kind.name.partition(' ')[0])}"
    rest = f"<p>{count(more)} more: <code>{safe(command)}</code></p>" if more else ""
    head = f'<h4>{safe(kind.name)} <span class="soft">{plural(kind.count, "URL")}</span></h4>'
    return head + examples(kind.examples) + rest
