"""The parts of a report's page about rules, hosts, and what is left."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gossamer.reading.aggregates import NamedCount
from gossamer.report.page import card, counts, moment, ms, named, safe, short, table
from gossamer.report.record import HostRow, Report
from gossamer.report.svg import Bar, bar_chart
from gossamer.telemetry.forecast import queued_text
from gossamer.telemetry.summary import HELD_BY
from gossamer.telemetry.text import UNKNOWN, agreeing, count, duration, plural

_LONGEST = (
    "<p>The requests of a host one after another, at its delay. No crawl at this pace could take less than the first "
    "needs; if that is much less than the whole time, something else was the limit.</p>"
)


def rule_cards(report: Report) -> list[str]:
    """Return what robots.txt and the crawl's own rules excluded."""
    robots = report.robots
    note = (
        f"<p>{count(robots.fetched)} answered, {plural(robots.unreachable, 'time')} unreachable, "
        f"{plural(robots.disallowed, 'URL')} forbidden.</p>"
    )
    of_links = "<p>links that were not queued; answers of a type that is not stored were cut off after the header: "
    of_links += f"{count(report.left.types_refused)}</p>"
    return [
        card("robots.txt", note + counts(robots.answers, "answer", "times")),
        card("Rules that forbade URLs", counts(robots.rules, "rule", is_code=True)),
        card("Excluded by the crawl's own rules", of_links + counts(report.left.excluded, "rule", "links")),
    ]


def host_cards(report: Report) -> list[str]:
    """Return the tables of hosts."""
    hosts = report.hosts
    all_of_them = f"gossamer hosts {shlex.quote(report.summary.out)}"
    note = (
        f"<p>{count(hosts.known)} known, {count(hosts.with_pages)} with pages, {count(hosts.dead)} dead, "
        f"{count(hosts.parked_count)} parked with URLs waiting, {count(hosts.without_address_count)} without a usable "
        f"address. All of them: <code>{safe(all_of_them)}</code></p>"
    )
    cards = [
        card("Most errors", note + _host_table(hosts.max_errors)),
        card("Slowest answers", "<p>time to the first byte, recently</p>" + _host_table(hosts.slowest)),
        card("What bounds the time", _LONGEST + _longest(hosts.longest)),
    ]
    if hosts.max_rate_limited:
        cards.append(card("Asked the crawler to slow down (429)", _limited(hosts.max_rate_limited)))
    if hosts.without_address:
        cards.append(card("Without a usable address", _without_address(hosts.without_address)))
    if hosts.parked:
        cards.append(card("Parked", _parked(hosts.parked)))
    return cards


def _host_table(lines: Sequence[HostRow]) -> str:
    rows = [(named(h.name), count(h.pages), count(h.fetches), count(h.errors), ms(h.latency_ms)) for h in lines]
    return table(["host", "pages", "fetches", "errors", "first byte"], rows, frozenset({1, 2, 3, 4}))


def _longest(lines: Sequence[HostRow]) -> str:
    rows = [(named(h.name), count(h.fetches), f"{h.delay_s:g} s", ms(h.latency_ms), duration(h.min_s)) for h in lines]
    return table(["host", "fetches", "delay", "first byte", "at least"], rows, frozenset({1, 2, 3, 4}))


def _limited(lines: Sequence[HostRow]) -> str:
    rows = [(named(h.name), count(h.rate_limited), count(h.fetches), f"{h.delay_s:g} s") for h in lines]
    return table(["host", "refusals", "fetches", "delay now"], rows, frozenset({1, 2, 3}))


def _without_address(lines: Sequence[HostRow]) -> str:
    rows = [(named(h.name), count(h.errors), count(h.queued), _why(h)) for h in lines]
    return table(["host", "look-ups", "URLs waiting", "why"], rows, frozenset({1, 2}))


def _why(host: HostRow) -> str:
    return f'<td class="text">{safe(host.park_reason, 160)}</td>'


def _parked(lines: Sequence[HostRow]) -> str:
    rows = [(named(h.name), count(h.queued), moment(h.parked_until), _why(h)) for h in lines]
    return table(["host", "URLs waiting", "until", "why"], rows, frozenset({1, 2}))


def left_cards(report: Report) -> list[str]:
    """Return what became of the URLs, and what is still to be fetched."""
    total = f"<p>{agreeing(report.summary.urls_seen, 'URL')} known; each is counted once.</p>"
    became = card("What became of the URLs", total + counts(report.urls, "now"))
    return [became, *_left_out(report), *_queued(report)]


def _left_out(report: Report) -> list[str]:
    """Return what is neither queued nor refused, though it was found: no card if there is nothing."""
    left = report.left
    lines = [NamedCount(f"held back by the {HELD_BY.get(one.name, one.name)}", one.count) for one in left.held]
    if left.held_dropped:
        lines.append(NamedCount("dropped: links beyond the cap of what a host may have held back", left.held_dropped))
    if left.evicted:
        lines.append(NamedCount("evicted by --max-queued ('gossamer retry' queues them again)", left.evicted))
    return [card("Held back, dropped and evicted", counts(lines, "by which rule"))] if lines else []


def _queued(report: Report) -> list[str]:
    left = report.left
    if not left.queued:
        return []
    rows = [
        (
            named(h.name),
            queued_text(h),
            f"{h.delay_s:g} s",
            duration(h.wait_s) if h.wait_s else "now",
            duration(h.seconds) if h.urls else UNKNOWN,
        )
        for h in left.hosts
    ]
    note = (
        f"<p>{agreeing(left.queued, 'URL')} queued. Bound by politeness alone that takes "
        f"{duration(left.finish_s)}: a host's wait, then its delay per request.</p>"
    )
    depths = [Bar(str(n), value, f"depth {n}: {plural(value, 'URL')}") for n, value in enumerate(left.queued_by_depth)]
    heads = ["host", "URLs", "delay", "starts in", "done in"]
    return [
        card("The hosts that take the longest", note + table(heads, rows, frozenset({1, 2, 3, 4}))),
        card("URLs queued by depth", bar_chart("URLs queued by depth", depths, short)),
    ]
