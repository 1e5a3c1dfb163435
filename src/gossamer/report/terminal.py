"""The report for a terminal: plain text of at most 96 columns, safe to print.

No control characters and no colours, so that it can be piped anywhere; what came from the web
goes through `printable`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import fill

from gossamer.reading.aggregates import NamedCount
from gossamer.report.record import HostRow, Report
from gossamer.telemetry.forecast import queued_text
from gossamer.telemetry.summary import requisites_text
from gossamer.telemetry.text import UNKNOWN, count, decimal, duration, percent, plural, printable, size

COLUMNS = 96
_WARNING_CHARS = 300  # a text, when it was first and last given, and how often
_ROWS = 8
_BARS = " ▁▂▃▄▅▆▇█"


def moment(at: float) -> str:
    """Return a time in UTC, or a dash."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at else "-"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, most: int = COLUMNS, indent: str = "  ") -> str:
    """Return a table: the first column gets the remaining width, the others are aligned to the right.

    A head that starts with `<` is of a column of text: aligned to the left, and cut at the end of the line.
    """
    texts = {number for number, head in enumerate(heads) if head.startswith("<")} | {0}
    bare = [head.removeprefix("<") for head in heads]
    widths = [max([len(bare[n]), *(len(row[n]) for row in rows)]) for n in range(len(heads))]
    rest = sum(widths[1:]) + 2 * (len(widths) - 1) + len(indent)
    widths[0] = max(12, min(widths[0], most - rest)) if rest + 12 < most else widths[0]
    lines = []
    for row in [bare, *rows]:
        cells = [
            _cut(cell, widths[n]).ljust(widths[n]) if n in texts else cell.rjust(widths[n])
            for n, cell in enumerate(row)
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines if most >= 1 << 20 else [_cut(line, max(most, rest + 12)) for line in lines])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def render_text(report: Report) -> str:
    """Return the report."""
    parts = [
        f"Crawl {printable(report.summary.out)}",
        f"  {moment(report.started_at)} to {moment(report.last_event_at)} UTC, {plural(report.runs, 'run')}",
        report.summary.render(),
        *(_warning(line) for line in report.warnings),
        _over_time(report),
        _answers(report),
        _corpus(report),
        _findings(report),
        _robots(report),
        _hosts(report),
        _counts("URLs", report.urls, 12),
        _left(report),
    ]
    return "\n".join(part for part in parts if part)


def _heading(text: str) -> str:
    return f"\n{text}"


def _counts(name: str, counts: Sequence[NamedCount], most: int = _ROWS) -> str:
    """Return counts in one line, wrapped."""
    shown = [f"{printable(entry.name, 60)}: {count(entry.count)}" for entry in counts[:most]]
    if len(counts) > most:
        shown.append(f"and {len(counts) - most} more")
    return _wrapped(name, shown) if shown else ""


def _warning(line: str) -> str:
    shown = printable(line, _WARNING_CHARS)
    return fill(shown, COLUMNS, initial_indent="  warning   ", subsequent_indent=" " * 12)


def _wrapped(name: str, words: Sequence[str]) -> str:
    lines = []
    line = f"  {name:<13} "
    for number, word in enumerate(words):
        text = word + (", " if number < len(words) - 1 else "")
        if len(line) + len(text.rstrip()) > COLUMNS and line.strip() and not line.endswith(f"{name:<13} "):
            lines.append(line.rstrip())
            line = " " * 16
        line += text
    return "\n".join([*lines, line.rstrip()])


def _over_time(report: Report) -> str:
    rates = [point.pages_per_second for point in report.timeline[1:]]
    domains = [float(point.domains) for point in report.timeline[1:]]
    if not rates:
        return ""
    return "\n".join(
        [
            _heading(f"Over time ({duration(report.timeline[-1].t_s)} of crawling)"),
            f"  pages/s       {_sparks(rates)}  most {max(rates):,.1f}",
            f"  domains       {_sparks(domains)}  {count(domains[-1])}",
        ]
    )


def _sparks(values: Sequence[float], width: int = 60) -> str:
    """Return values as a row of small bars, the highest of each interval."""
    step = max(1.0, len(values) / width)
    places = range(min(width, len(values)))
    highs = [max(values[int(n * step) : max(int(n * step) + 1, int((n + 1) * step))]) for n in places]
    top = max(highs) or 1.0
    return "".join(_BARS[max(1 if high else 0, round(high / top * 8))] for high in highs)


def _answers(report: Report) -> str:
    fetches = report.fetches
    first = fetches.first_byte_ms
    whole = fetches.total_ms
    return "\n".join(
        part
        for part in [
            _heading("Answers"),
            _counts("statuses", fetches.statuses),
            _counts("errors", fetches.errors),
            f"  {'first byte':<13} median {first.p50:,.0f} ms, p90 {first.p90:,.0f}, p99 {first.p99:,.0f}",
            f"  {'whole request':<13} median {whole.p50:,.0f} ms, p90 {whole.p90:,.0f}, p99 {whole.p99:,.0f}",
            f"  {'retries':<13} {count(fetches.retries)}; {plural(fetches.redirects, 'redirect')}",
            _dead(report),
        ]
        if part
    )


def _findings(report: Report) -> str:
    """Return what may have to be corrected, with the commands that list it."""
    found = report.findings
    out = shlex.quote(report.summary.out)
    part = f" of the first {count(found.redirects_followed)}" if found.redirects_followed < found.redirects else ""
    lines = [
        (found.broken, "broken", plural(found.broken, "URL"), "links", "--broken"),
        (
            found.redirects,
            "redirects",
            f"{count(found.redirects)};{part} {plural(found.loops, 'loop')}, {count(found.broken_ends)} end broken",
            "links",
            "--redirects",
        ),
        (found.missing_titles, "without title", plural(found.missing_titles, "page"), "pages", "--missing-title"),
        (found.shared_titles, "same title", plural(found.shared_titles, "page"), "pages", "--duplicate-title"),
    ]
    shown = [
        f"  {name:<13} {text}: gossamer {verb} {printable(out)} {option}"
        for number, name, text, verb, option in lines
        if number
    ]
    return "\n".join([_heading("To correct"), *shown]) if shown else ""


def _dead(report: Report) -> str:
    rows = [(kind.name, count(kind.count), printable(kind.examples[0], 58)) for kind in report.left.dead[:_ROWS]]
    return table(["dead letters", "URLs", "<one of them ('gossamer retry --list' shows all)"], rows) if rows else ""


def _corpus(report: Report) -> str:
    corpus = report.corpus
    p = corpus.content_bytes
    depths = [NamedCount(str(depth), pages) for depth, pages in enumerate(corpus.depths)]
    lines = [
        _heading("What was collected"),
        _counts("types", corpus.content_types),
        _counts("lang declared", corpus.languages),
        _counts("lang detected", corpus.languages_detected),
        _checked(report),
        _wrapped("depths", [f"{entry.name}: {count(entry.count)}" for entry in depths]) if depths else "",
        f"  {'sizes':<13} median {size(p.p50)}, p90 {size(p.p90)}, largest {size(p.most)}",
        f"  {'words':<13} {count(corpus.words)}, {corpus.words_per_page:,.0f} per page",
        f"  {'duplicates':<13} {count(corpus.duplicates)}; near duplicates {count(corpus.near_duplicates)}",
        f"  {'spam':<13} {plural(corpus.spam_pages, 'page')}; {plural(corpus.spam_hosts, 'host')} demoted",
        _counts("truncated", corpus.truncated),
        _counts("domains", corpus.domains),
        _requisites(report),
    ]
    return "\n".join(line for line in lines if line)


def _requisites(report: Report) -> str:
    summary = report.summary.requisites
    found = report.requisites
    if summary is None or found is None:
        return ""
    lines = [
        f"  {'needed':<13} {requisites_text(summary)}",
        _counts("", found.content_types),
        _counts("needed, failed", [NamedCount(each.name, each.count) for each in found.failed]),
    ]
    return "\n".join(line for line in lines if line)


def _checked(report: Report) -> str:
    corpus = report.corpus
    pages = plural(corpus.languages_checked, "page")
    which = f"in a sample of {pages}" if corpus.languages_sampled else f"in the texts of {pages}"
    text = f"{which}, {count(corpus.languages_differ)} with another one declared"
    return f"  {'':<13} {text}" if corpus.languages_checked else ""


def _robots(report: Report) -> str:
    robots = report.robots
    lines = [
        _heading("Robots and rules"),
        f"  {'robots.txt':<13} {count(robots.fetched)} answered, {plural(robots.unreachable, 'time')} unreachable, "
        f"{plural(robots.disallowed, 'URL')} forbidden",
        _counts("rules", robots.rules),
        _counts("excluded", report.left.excluded),
        f"  {'type refused':<13} {count(report.left.types_refused)}" if report.left.types_refused else "",
    ]
    return "\n".join(line for line in lines if line)


def _hosts(report: Report) -> str:
    hosts = report.hosts
    lines = [
        _heading("Hosts"),
        f"  {'known':<13} {count(hosts.known)}; {count(hosts.with_pages)} with pages, {count(hosts.dead)} dead, "
        f"{count(hosts.parked_count)} parked with URLs waiting, {count(hosts.without_address_count)} without address",
        _host_table("most errors", hosts.max_errors),
        _host_table("slowest", hosts.slowest),
        _host_table("slow down (429)", hosts.max_rate_limited),
        _without_address(hosts.without_address),
        _longest(hosts.longest),
        _parked(hosts.parked),
    ]
    return "\n".join(line for line in lines if line)


def _host_table(name: str, lines: Sequence[HostRow]) -> str:
    rows = [
        (
            printable(host.name, 60),
            count(host.pages),
            count(host.fetches),
            count(host.errors),
            count(host.rate_limited),
            f"{decimal(host.latency_ms, 0)} ms",
        )
        for host in lines[:5]
    ]
    return table([name, "pages", "fetches", "errors", "429", "first byte"], rows) if rows else ""


def _longest(lines: Sequence[HostRow]) -> str:
    rows = [
        (
            printable(host.name, 60),
            count(host.fetches),
            f"{host.delay_s:g} s",
            f"{decimal(host.latency_ms, 0)} ms",
            duration(host.min_s),
        )
        for host in lines[:5]
    ]
    return table(["what bounds the time", "fetches", "delay", "first byte", "at least"], rows) if rows else ""


def _without_address(lines: Sequence[HostRow]) -> str:
    rows = [
        (printable(host.name, 40), count(host.errors), count(host.queued), printable(host.park_reason, 34))
        for host in lines[:5]
    ]
    return table(["without address", "look-ups", "waiting", "<why"], rows) if rows else ""


def _parked(lines: Sequence[HostRow]) -> str:
    rows = [
        (printable(host.name, 40), count(host.queued), moment(host.parked_until), printable(host.park_reason, 34))
        for host in lines[:5]
    ]
    return table(["parked", "waiting", "until", "<why"], rows) if rows else ""


def _left(report: Report) -> str:
    left = report.left
    if not left.queued:
        return ""
    rows = [
        (
            printable(host.name, 60),
            queued_text(host),
            f"{host.delay_s:g} s",
            duration(host.wait_s) if host.wait_s else "now",
            duration(host.seconds) if host.urls else UNKNOWN,
        )
        for host in left.hosts[:_ROWS]
    ]
    share = left.queued / report.summary.urls_seen if report.summary.urls_seen else 0.0
    head = f"What is left: {plural(left.queued, 'URL')} ({percent(share)} of those known)"
    head += f"; at the pace of their hosts {duration(left.finish_s)}"
    return "\n".join([_heading(head), table(["host", "URLs", "delay", "starts in", "done in"], rows)])
