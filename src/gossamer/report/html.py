"""The report as a web page: one file that needs nothing else and runs nothing.

Everything that came from the web (host names, URLs, rules, types) goes through `safe` or `breakable`. URLs are text,
not links, so that nothing is opened by accident; the links of the page lead to places in it. Values of charts are
titles, which a browser shows while the pointer is over them. This module has all parts but those about rules and hosts,
which are in `html_hosts`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gossamer import __version__
from gossamer.model.figures import RUNNING
from gossamer.reading.aggregates import NamedCount, SizeClass
from gossamer.report.html_hosts import host_cards, left_cards, rule_cards
from gossamer.report.page import (
    Section,
    binary,
    breakable,
    card,
    contents,
    counts,
    examples,
    key,
    moment,
    ms,
    named,
    safe,
    short,
    span,
    table,
)
from gossamer.report.record import DeadLetters, Point, RedirectChain, Report, SharedText
from gossamer.report.style import STYLE, content_policy
from gossamer.report.svg import Bar, Series, bar_chart, line_chart, share_bar
from gossamer.telemetry.figure_list import rows_of
from gossamer.telemetry.summary import requisites_text
from gossamer.telemetry.text import agreeing, count, decimal, duration, escape, percent, plural, size

# The report as a web page: broken links, redirects, titles and descriptions.
#
# Bounded: some of each with the true total, and the command that lists all.

_NONE = '<p class="none">none</p>'


def broken_cards(report: Report) -> list[str]:
    """Return the cards about links to what is not there."""
    found = report.findings
    note = (
        f"<p>{plural(found.broken, 'URL')} with an error or without an answer, each with one page that links to it. "
        f"{_all(report, 'links', '--broken', 'lists all with all their pages')} Links out of the scope were not asked: "
        f"{_all(report, 'links', '--broken --check-external --check-assets', 'asks them')}</p>"
    )
    rows = [
        (named(one.url, 300), f"{safe(one.outcome)} {one.status or ''}".rstrip(), named(one.found_on, 300))
        for one in found.broken_examples
    ]
    inner = table(["URL", "answer", "found on"], rows, frozenset())
    return [card("Broken links", note + inner + _shown(len(rows), found.broken))]


def redirect_cards(report: Report) -> list[str]:
    """Return the cards about redirects: loops, then what ends broken, then the longest chains."""
    found = report.findings
    part = f" Of the first {count(found.redirects_followed)}," if found.redirects_followed < found.redirects else ""
    note = (
        f"<p>{plural(found.redirects, 'redirect')}.{part} {plural(found.loops, 'loop')} and "
        f"{count(found.broken_ends)} that end with an error come first, then the longest chains. "
        f"{_all(report, 'links', '--redirects', 'lists all with all their pages')}</p>"
    )
    rows = [(named(one.url, 300), _way(one), _end(one), named(one.found_on, 300)) for one in found.chains]
    inner = table(["URL", "leads to", "end", "found on"], rows, frozenset())
    return [card("Redirects", note + inner + _shown(len(rows), found.redirects))]


def title_cards(report: Report) -> list[str]:
    """Return the cards about titles and descriptions."""
    found = report.findings
    missing = f"<p>{count(found.missing_titles)} of {plural(found.html_pages, 'HTML page')}. "
    missing += f"{_all(report, 'pages', '--missing-title')}</p>"
    shared = f"<p>{plural(found.shared_titles, 'page')} with the title of another page of the same host"
    shared += (
        f", by {plural(found.titles_compared, 'different title')}. {_all(report, 'pages', '--duplicate-title')}</p>"
    )
    return [
        card("Without a title", missing + (examples(found.missing_title_examples) if found.missing_titles else _NONE)),
        card("With the title of another page", shared + _texts(found.shared_title_examples)),
        *_description_cards(report),
    ]


def _description_cards(report: Report) -> list[str]:
    found = report.findings.descriptions
    if found is None:
        out = shlex.quote(report.summary.out)
        note = (
            "<p>Not read: descriptions are in the pages, and a report at the end of a crawl does not read them. "
            f"<code>gossamer report {safe(out)} --html FILE</code> does.</p>"
        )
        return [card("Descriptions", note)]
    missing = f"<p>{count(found.missing)} of {plural(found.read, 'HTML page')}. "
    missing += f"{_all(report, 'pages', '--missing-description')}</p>"
    shared = f"<p>{plural(found.shared, 'page')} with the description of another page of the same host. "
    shared += f"{_all(report, 'pages', '--duplicate-description')}</p>"
    return [
        card("Without a description", missing + (examples(found.missing_examples) if found.missing else _NONE)),
        card("With the description of another page", shared + _texts(found.shared_examples)),
    ]


def _texts(shared: Sequence[SharedText]) -> str:
    rows = [
        (f"<td>{safe(one.text, 120)}</td>", count(one.pages), f"<td>{'<br>'.join(map(breakable, one.examples))}</td>")
        for one in shared
    ]
    return table(["text", "pages", "some of them"], rows, frozenset({1}))


def _way(one: RedirectChain) -> str:
    return f'<td class="name">{"<br>".join(breakable(url) for url in one.chain)}</td>'


def _end(one: RedirectChain) -> str:
    return "a loop" if one.is_loop else f"{safe(one.outcome) or 'not fetched'} {one.status or ''}".rstrip()


def _all(report: Report, verb: str, options: str, what: str = "lists all") -> str:
    """Return the sentence with the command that lists all of something."""
    return f"<code>gossamer {verb} {safe(shlex.quote(report.summary.out))} {options}</code> {what}."


def _shown(shown: int, known: int) -> str:
    return f"<p>{count(known - shown)} more.</p>" if known > shown else ""


# The part of a report's page about what was collected.


def corpus_cards(report: Report) -> list[str]:
    corpus = report.corpus
    depths = [Bar(str(n), value, f"depth {n}: {plural(value, 'page')}") for n, value in enumerate(corpus.depths)]
    sizes = [Bar(binary(c.least), c.count, f"{_size_range(c)}: {plural(c.count, 'page')}") for c in corpus.sizes]
    spread = [NamedCount(_page_range(c), c.count) for c in corpus.pages_per_domain]
    found = [one for one in corpus.sources if one.count]
    needed = _requisites(report)
    return [
        card("Pages by depth", "<p>links followed from a seed</p>" + bar_chart("pages by depth", depths, short)),
        card("Sizes of pages", _sizes(report) + bar_chart("sizes of pages, decoded", sizes, short)),
        card("Content types", counts(corpus.content_types, "type", "pages")),
        card("Languages declared", "<p>by the pages themselves</p>" + counts(corpus.languages, "language", "pages")),
        card("Languages detected", _detected(report)),
        card("Largest domains", counts(corpus.domains, "domain", "pages")),
        card("Pages per domain", counts(spread, "pages", "domains")),
        card("How pages were found", counts(found, "from a", "pages") + _copies(report)),
        *([card("What pages need to be shown", needed)] if needed else []),
    ]


def _requisites(report: Report) -> str:
    summary = report.summary.requisites
    found = report.requisites
    if summary is None or found is None:
        return ""
    failed = [NamedCount(each.name, each.count) for each in found.failed]
    return (
        f"<p>{safe(requisites_text(summary))}</p>"
        + counts(found.content_types, "type", "requisites")
        + (counts(failed, "failed", "requisites") if failed else "")
    )


def _sizes(report: Report) -> str:
    corpus = report.corpus
    p = report.corpus.content_bytes
    return (
        f"<p>median {size(p.p50)}, mean {size(p.mean)}, 90 % below {size(p.p90)}, largest {size(p.most)}; "
        f"{count(corpus.words)} words, {corpus.words_per_page:,.0f} per page.</p>"
    )


def _detected(report: Report) -> str:
    corpus = report.corpus
    if not corpus.languages_checked:
        return '<p class="none">no text could be read: there are no pages, or the archive is elsewhere</p>'
    spread = ", spread over the crawl" if corpus.languages_sampled else ""
    note = (
        f"<p>in the texts of {plural(corpus.languages_checked, 'page')}{spread}; "
        f"{count(corpus.languages_differ)} of them with another language declared</p>"
    )
    return note + counts(corpus.languages_detected, "language", "pages")


def _copies(report: Report) -> str:
    corpus = report.corpus
    cut = ", ".join(f"{count(entry.count)} by {safe(entry.name)}" for entry in corpus.truncated) or "none"
    return (
        f'<p class="after">{agreeing(corpus.duplicates, "page", "has", "have")} the content of another, '
        f"{count(corpus.near_duplicates)} nearly so. Truncated: {cut}. Spam: {plural(corpus.spam_pages, 'page')}, "
        f"{agreeing(corpus.spam_hosts, 'host', 'was', 'were')} demoted.</p>"
    )


def _size_range(c: SizeClass) -> str:
    return "empty" if c.below == 1 else f"{size(c.least)} to {size(c.below)}"


def _page_range(c: SizeClass) -> str:
    return f"{count(c.least)} to {count(c.below - 1)}"


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
        ("corpus", "pages", count(s.pages), f"{decimal(s.pages_per_second)} per second, {percent(s.html_share)} HTML"),
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
        *(("corpus", name, text, "") for name, text in rows_of(s.more)),
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
