"""The report as a web page: one file that needs nothing else and runs nothing.

Everything that came from the web (host names, URLs, rules, types) goes through `safe`. URLs are
text, not links, so that nothing is opened by accident.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gossamer import __version__
from gossamer.inspect.aggregates import NamedCount, SizeClass
from gossamer.inspect.report.page import binary, card, counts, key, moment, ms, safe, section, short, span, table
from gossamer.inspect.report.record import HostLine, Report
from gossamer.inspect.report.style import STYLE, content_policy
from gossamer.inspect.report.svg import Bar, Series, bar_chart, line_chart, share_bar
from gossamer.telemetry.summary import HELD_BY, REASONS
from gossamer.telemetry.text import count, duration, percent, size

_STATUS_WORDS = {
    "2": "2xx success",
    "3": "3xx redirect",
    "4": "4xx client error",
    "5": "5xx server error",
    "0": "no HTTP answer",
}
_LONGEST = (
    "<p>requests one after another, each with its delay or its answer: no crawl could be faster than the first</p>"
)


def render_html(report: Report) -> str:
    """Return the page."""
    title = f"Crawl {safe(report.summary.out.rstrip('/').rpartition('/')[2] or report.summary.out)}"
    sections = [
        _warnings(report),
        _tiles(report),
        section("Over time", _charts(report), flows=False),
        section("Answers", [_statuses(report), _errors(report), _times(report), _dead(report)]),
        section("What was collected", _corpus(report)),
        section("Robots and rules", [_robots(report), _rules(report), _excluded(report)]),
        section("Hosts", _hosts(report)),
        section("What is left", left) if (left := [*_left_out(report), *_left(report)]) else "",
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy())}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{title}</h1><p>{_when(report)}</p></header>\n"
        + "\n".join(part for part in sections if part)
        + f"\n<footer>Gossamer {__version__}, {moment(report.made_at)}. The same figures, for programs: "
        "<code>report.json</code>. Times are in UTC.</footer>\n</main>\n</body>\n</html>\n"
    )


def _when(report: Report) -> str:
    summary = report.summary
    why = REASONS.get(summary.finished, summary.finished)
    runs = f" in {report.runs} runs" if report.runs > 1 else ""
    return f"{moment(report.started_at)} to {moment(report.last_event_at)} UTC{runs}: {safe(why)}."


def _warnings(report: Report) -> str:
    if not report.warnings:
        return ""
    return '<div class="warn">' + "".join(f"<p>{safe(line)}</p>" for line in report.warnings) + "</div>"


def _tiles(report: Report) -> str:
    s = report.summary
    tiles = [
        ("pages", count(s.pages), f"{s.pages_per_second:.1f} per second, {percent(s.html_share)} HTML"),
        ("domains", count(s.unique_domains), f"{count(s.unique_hosts)} hosts with pages"),
        ("fetches", count(s.fetches), f"{size(s.bytes)} received"),
        ("errors", count(s.errors), f"{percent(s.error_rate)} of fetches, {count(s.dead)} URLs given up"),
        ("forbidden by robots.txt", count(s.robots_disallowed), f"{count(report.robots.fetched)} files read"),
        ("duplicates", count(s.duplicates), f"{count(s.near_duplicates)} near duplicates"),
        ("URLs known", count(s.urls_seen), f"{count(s.urls_queued)} queued, {count(s.urls_parked)} parked"),
        ("time", duration(s.seconds), f"{s.cpu_ms_per_page:.2f} ms of CPU per page"),
    ]
    cells = (
        f'<div class="tile"><span class="name">{name}</span><b>{value}</b><span>{note}</span></div>'
        for name, value, note in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


# -- over time ------------------------------------------------------------------------------------


def _charts(report: Report) -> list[str]:
    return [_pages_chart(report), _coverage_chart(report), _rate_chart(report), _queue_chart(report)]


def _pages_chart(report: Report) -> str:
    points = [(point.t_s, float(point.pages)) for point in report.timeline]
    errors = [(point.t_s, float(point.errors)) for point in report.timeline]
    legend = key([("main", "pages"), ("second", "errors")])
    chart = line_chart(
        "pages over time", [Series("pages", "main", points), Series("errors", "second", errors)], span, short
    )
    return card("Pages", legend + chart)


def _coverage_chart(report: Report) -> str:
    points = [(point.t_s, float(point.domains)) for point in report.timeline]
    chart = line_chart("unique domains over time", [Series("domains", "main", points)], span, short)
    return card("Unique domains", key([("main", "registrable domains with a page")]) + chart)


def _rate_chart(report: Report) -> str:
    points = [(point.t_s, point.pages_per_second) for point in report.timeline[1:]]
    chart = line_chart("pages per second", [Series("pages per second", "main", points)], span, short)
    return card("Pages per second", key([("main", f"in intervals of {span(report.bin_s)}")]) + chart)


def _queue_chart(report: Report) -> str:
    points = [(point.t_s, float(point.queued)) for point in report.timeline]
    chart = line_chart("URLs queued over time", [Series("queued", "main", points)], span, short)
    return card("URLs queued", key([("main", "found and not fetched yet")]) + chart)


# -- answers --------------------------------------------------------------------------------------


def _statuses(report: Report) -> str:
    statuses = report.fetches.statuses
    classes = dict.fromkeys("23450", 0)
    for status in statuses:
        digit = status.name[:1]
        classes[digit if digit in classes else "0"] += status.count
    answered = sum(entry.count for entry in statuses)
    classes["0"] += max(0, sum(entry.count for entry in report.fetches.outcomes) - answered)
    bar = share_bar("answers by status", [(f"s{digit}", number) for digit, number in classes.items()])
    legend = key([(f"s{d}", f"{_STATUS_WORDS[d]}: {count(n)}") for d, n in classes.items() if n])
    return card("Status", bar + legend + counts(statuses[:12], "status", "answers"))


def _errors(report: Report) -> str:
    fetches = report.fetches
    note = f"<p>{count(fetches.retries)} retries, {count(fetches.redirects)} redirects. Each failed attempt counts.</p>"
    return card("Errors by kind", note + counts(fetches.errors, "kind", "attempts"))


def _times(report: Report) -> str:
    rows = [
        (name, *(ms(value) for value in (p.p10, p.p50, p.p90, p.p99, p.most)))
        for name, p in (("first byte", report.fetches.first_byte_ms), ("whole request", report.fetches.total_ms))
    ]
    heads = ["", "p10", "median", "p90", "p99", "most"]
    return card("Time of a request", table(heads, rows, frozenset({1, 2, 3, 4, 5})))


def _dead(report: Report) -> str:
    rows = [
        (safe(kind.name), count(kind.count), "<br>".join(f"<code>{safe(url, 120)}</code>" for url in kind.examples))
        for kind in report.left.dead
    ]
    note = "<p>URLs that failed for good. <code>gossamer retry</code> queues them again.</p>"
    return card("Dead letters", note + table(["kind", "URLs", "examples"], rows, frozenset({1})))


# -- corpus ---------------------------------------------------------------------------------------


def _corpus(report: Report) -> list[str]:
    corpus = report.corpus
    depths = [Bar(str(n), value, f"depth {n}: {count(value)} pages") for n, value in enumerate(corpus.depths)]
    sizes = [Bar(binary(c.least), c.count, f"{_size_range(c)}: {count(c.count)} pages") for c in corpus.sizes]
    p = corpus.content_bytes
    of_sizes = (
        f"<p>median {size(p.p50)}, mean {size(p.mean)}, 90 % below {size(p.p90)}, largest {size(p.most)}; "
        f"{count(corpus.words)} words, {corpus.words_per_page:,.0f} per page.</p>"
    )
    spread = [NamedCount(_page_range(c), c.count) for c in corpus.pages_per_domain]
    return [
        card("Pages by depth", "<p>links followed from a seed</p>" + bar_chart("pages by depth", depths, short)),
        card("Sizes of pages", of_sizes + bar_chart("sizes of pages, decoded", sizes, short)),
        card("Content types", counts(corpus.content_types, "type", "pages")),
        card("Languages", "<p>as declared by the pages</p>" + counts(corpus.languages, "language", "pages")),
        card("Largest domains", counts(corpus.domains, "domain", "pages")),
        card("Pages per domain", counts(spread, "pages", "domains") + _notes(report)),
    ]


def _notes(report: Report) -> str:
    corpus = report.corpus
    found = ", ".join(f"{entry.name} {count(entry.count)}" for entry in corpus.sources if entry.count)
    cut = ", ".join(f"{count(entry.count)} by {safe(entry.name)}" for entry in corpus.truncated) or "none"
    return f"<p><br>How pages were found: {found or 'none'}.<br>Truncated: {cut}.</p>"


def _size_range(c: SizeClass) -> str:
    return "empty" if c.below == 1 else f"{size(c.least)} to {size(c.below)}"


def _page_range(c: SizeClass) -> str:
    return f"{count(c.least)} to {count(c.below - 1)}"


# -- robots, hosts, what is left ------------------------------------------------------------------


def _robots(report: Report) -> str:
    robots = report.robots
    note = (
        f"<p>{count(robots.fetched)} answered, {count(robots.unreachable)} times unreachable, "
        f"{count(robots.disallowed)} URLs forbidden.</p>"
    )
    return card("robots.txt", note + counts(robots.answers, "answer", "times"))


def _rules(report: Report) -> str:
    return card("Rules that forbade URLs", counts(report.robots.rules, "rule", is_code=True))


def _excluded(report: Report) -> str:
    note = "<p>links that were not queued; answers of a type that is not stored were cut off after the header: "
    note += f"{count(report.left.types_refused)}</p>"
    return card("Excluded by the crawl's own rules", note + counts(report.left.excluded, "rule", "links"))


def _hosts(report: Report) -> list[str]:
    hosts = report.hosts
    note = (
        f"<p>{count(hosts.known)} known, {count(hosts.with_pages)} with pages, {count(hosts.dead)} dead, "
        f"{count(hosts.parked_count)} parked with URLs waiting.</p>"
    )
    cards = [
        card("Most errors", note + _host_table(hosts.max_errors)),
        card("Slowest answers", "<p>time to the first byte, recently</p>" + _host_table(hosts.slowest)),
        card("What bounds the time", _LONGEST + _longest(hosts.longest)),
    ]
    if hosts.max_rate_limited:
        cards.append(card("Asked the crawler to slow down (429)", _limited(hosts.max_rate_limited)))
    if hosts.parked:
        cards.append(card("Parked", _parked(hosts.parked)))
    return cards


def _host_table(lines: Sequence[HostLine]) -> str:
    rows = [
        (
            f'<td class="name">{safe(h.name, 80)}</td>',
            count(h.pages),
            count(h.fetches),
            count(h.errors),
            ms(h.latency_ms),
        )
        for h in lines
    ]
    return table(["host", "pages", "requests", "errors", "first byte"], rows, frozenset({1, 2, 3, 4}))


def _longest(lines: Sequence[HostLine]) -> str:
    rows = [
        (
            f'<td class="name">{safe(h.name, 80)}</td>',
            count(h.fetches),
            f"{h.delay_s:g} s",
            ms(h.latency_ms),
            duration(h.min_s),
        )
        for h in lines
    ]
    return table(["host", "requests", "delay", "first byte", "minimum time"], rows, frozenset({1, 2, 3, 4}))


def _limited(lines: Sequence[HostLine]) -> str:
    rows = [
        (f'<td class="name">{safe(h.name, 80)}</td>', count(h.rate_limited), count(h.fetches), f"{h.delay_s:g} s")
        for h in lines
    ]
    return table(["host", "refusals", "requests", "delay now"], rows, frozenset({1, 2, 3}))


def _parked(lines: Sequence[HostLine]) -> str:
    rows = [
        (
            f'<td class="name">{safe(h.name, 80)}</td>',
            count(h.queued),
            moment(h.parked_until),
            safe(h.park_reason, 160),
        )
        for h in lines
    ]
    return table(["host", "URLs waiting", "until", "why"], rows, frozenset({1}))


def _left_out(report: Report) -> list[str]:
    """Return what is neither queued nor refused, though it was found: no card if there is nothing."""
    left = report.left
    lines = [NamedCount(f"held back by the {HELD_BY.get(one.name, one.name)}", one.count) for one in left.held]
    if left.held_dropped:
        lines.append(NamedCount("dropped: links beyond the cap of what a host may have held back", left.held_dropped))
    if left.evicted:
        lines.append(NamedCount("evicted by --max-queued ('gossamer retry' queues them again)", left.evicted))
    return [card("Held back, dropped and evicted", counts(lines, "by which rule"))] if lines else []


def _left(report: Report) -> list[str]:
    left = report.left
    if not left.queued:
        return []
    rows = [
        (
            f'<td class="name">{safe(h.name, 80)}</td>',
            count(h.queued),
            f"{h.delay_s:g} s",
            duration(h.wait_s) if h.wait_s else "now",
            duration(h.seconds),
        )
        for h in left.hosts
    ]
    note = (
        f"<p>{count(left.queued)} URLs are queued. Bound by politeness alone they take "
        f"{duration(left.finish_s)}: a host's wait, then its delay per URL.</p>"
    )
    depths = [Bar(str(n), value, f"depth {n}: {count(value)} URLs") for n, value in enumerate(left.queued_by_depth)]
    heads = ["host", "URLs", "delay", "starts in", "done in"]
    return [
        card("The hosts that take the longest", note + table(heads, rows, frozenset({1, 2, 3, 4}))),
        card("URLs queued by depth", bar_chart("URLs queued by depth", depths, short)),
    ]
