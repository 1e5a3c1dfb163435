"""`gossamer hosts DIR [NAME]`: the hosts of a crawl, or everything about one and every request to it."""

from __future__ import annotations

import argparse
import heapq
import sys
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from gossamer.cli.opening import add_crawl, open_view, warn_of_elsewhere
from gossamer.core.url.forms import canonical, host_of
from gossamer.model.errors import UsageError
from gossamer.model.records import HostRecord
from gossamer.reading.host_states import OVER_BUDGET
from gossamer.reading.host_view import HostView, host_view
from gossamer.reading.pace_view import PaceView, pace_view
from gossamer.reading.requests.host_requests import HostRequest, host_requests
from gossamer.reading.view import CrawlView
from gossamer.report.terminal import moment, table
from gossamer.telemetry.text import UNKNOWN, count, duration, plural, printable, size

SHOWN = 50
SORT_KEYS: dict[str, Callable[[HostRecord], float]] = {
    "name": lambda host: 0.0,  # ties are by name
    "errors": lambda host: host.errors,
    "pages": lambda host: host.pages,
    "queued": lambda host: host.queued,
    "latency": lambda host: host.latency_s,
}


class HostPage(Struct, kw_only=True):
    """One host with every request made to it."""

    host: HostView
    requests: list[HostRequest]


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a host: show every request made to it")
    parser.add_argument(
        "--sort", choices=sorted(SORT_KEYS), default="pages", help="highest first (pages), then by name"
    )
    parser.add_argument("--top", type=int, metavar="N", help=f"show N hosts, 0 = all ({SHOWN}; with --json all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: the host is not in this crawl."""
    if arguments.top is not None and arguments.top < 0:
        raise UsageError(f"--top {arguments.top}: not a number of hosts; expected 0 or more")
    with open_view(arguments) as crawl:
        if arguments.name is not None:
            return _show_one(crawl, _host_named(arguments.name), as_json=arguments.json)
        _show_all(crawl, arguments)
    return 0


def _host_named(text: str) -> str:
    """Return the host of a name or URL, in canonical form."""
    url = canonical(text if "://" in text else f"http://{text}/")
    if url is None:
        raise UsageError(f"{printable(text, 80)!r}: not a host name; expected example.org")
    return host_of(url)


# -- all hosts ------------------------------------------------------------------------------------


def _show_all(crawl: CrawlView, arguments: argparse.Namespace) -> None:
    limit = arguments.top if arguments.top is not None else 0 if arguments.json else SHOWN
    hosts, known = _best(crawl, SORT_KEYS[arguments.sort], limit)
    views = [host_view(crawl, host) for host in hosts]
    if arguments.json:
        print(msgspec.json.encode({"known": known, "hosts": views}).decode())
        return
    print(_table(views))
    if known > len(views):
        print(f"  and {count(known - len(views))} more; --top 0 shows all")


def _best(crawl: CrawlView, score: Callable[[HostRecord], float], limit: int) -> tuple[list[HostRecord], int]:
    """Return the hosts with the highest score (0: all of them), ties by name, and how many there are."""
    known = 0

    def counted(host: HostRecord) -> tuple[float, str]:
        nonlocal known
        known += 1
        return -score(host), host.name

    hosts = crawl.ledger.hosts()
    best = heapq.nsmallest(limit, hosts, key=counted) if limit else sorted(hosts, key=counted)
    return best, known


def _table(views: Sequence[HostView]) -> str:
    rows = [
        (
            printable(view.name, 253),
            count(view.pages),
            count(view.queued),
            count(view.errors),
            _first_byte(view),
            f"{view.delay_s:g} s",
            _robots_cell(view),
            _next(view),
        )
        for view in views
    ]
    return table(
        ["host", "pages", "queued", "errors", "first byte", "delay", "<robots.txt", "<next"], rows, most=1 << 20
    )


def _next(view: HostView) -> str:
    """Return when the next request to a host may be made, or why there will be none."""
    if view.state == "parked":
        return f"parked {duration(view.next_in_s)}: {printable(view.park_reason, 300)}"
    if view.state in ("idle", "dead", OVER_BUDGET):
        return view.state.replace("_", " ")
    return f"in {duration(view.next_in_s)}" if view.next_in_s else "now"


def _done(view: HostView) -> str:
    if view.state == OVER_BUDGET:
        return ", over budget and not fetched"
    over = f", {count(view.over_budget)} of them over budget and not fetched" if view.over_budget else ""
    return f"{over}, done in {duration(view.time_left_s)}" if view.queued else ""


def _first_byte(view: HostView) -> str:
    return UNKNOWN if view.latency_ms is None else f"{view.latency_ms:,.0f} ms"


def _robots_cell(view: HostView) -> str:
    if not view.robots:
        return "unreachable" if view.robots_tries else "unknown"
    first = view.robots[0]
    more = f" +{len(view.robots) - 1}" if len(view.robots) > 1 else ""
    return f"{first.status or first.outcome}, {duration(first.age_s)} old{more}"


# -- one host -------------------------------------------------------------------------------------


def _show_one(crawl: CrawlView, name: str, *, as_json: bool) -> int:
    host = crawl.ledger.host(name)
    if host is None:
        print(f"gossamer hosts: {printable(name)}: not a host of this crawl", file=sys.stderr)
        return 1
    view = host_view(crawl, host)
    warn_of_elsewhere(crawl, "the requests")
    if as_json:
        page = HostPage(host=view, requests=list(host_requests(crawl.folders.events, name)))
        print(msgspec.json.encode(page).decode())
        return 0
    print(_described(view, pace_view(crawl, name, host)))
    made = 0
    for request in host_requests(crawl.folders.events, name):
        made += 1
        print(_request_line(request))
    print(f"  {plural(made, 'request')}")
    return 0


def _described(view: HostView, pace: PaceView) -> str:
    rows = [
        ("host", f"{printable(view.name)} (domain {printable(view.domain)}), {view.state}"),
        ("pages", f"{count(view.pages)}, {size(view.bytes)} received"),
        (
            "requests",
            f"{count(view.fetches)}, {plural(view.errors, 'error')}, first byte {_first_byte(view)}; "
            f"{plural(view.server_errors_24h, 'answer')} with 5xx in 24 h",
        ),
        *(("pace", printable(line, 400)) for line in pace.lines()),
        ("rank", f"{view.rank:.2f}" + (", blocked: never contacted" if view.is_blocked else "")),
        *([("spam", printable(view.spam, 400))] if view.spam else []),
        ("queued", plural(view.queued, "URL") + _done(view)),
        *([("waits for", printable(view.waits_for, 400))] if view.waits_for else []),
        ("next", _next(view)),
        ("known since", f"{moment(view.first_seen_at)} UTC, last request {moment(view.last_fetch_at)}"),
        ("addresses", ", ".join(view.addresses) or "not looked up"),
    ]
    rows += [
        (
            "robots.txt",
            f"{robots.origin}: {robots.status or robots.outcome}, {size(robots.bytes)}, "
            f"{duration(robots.age_s)} old, valid for {duration(max(0.0, robots.expires_in_s))}",
        )
        for robots in view.robots
    ]
    return "\n".join(f"  {name:<12} {text}" for name, text in rows) + "\n"


def _request_line(request: HostRequest) -> str:
    what = str(request.status) if request.status else request.outcome
    again = f" (sent {request.requests} times)" if request.requests > 1 else ""
    reason = f" {printable(request.reason, 80)}" if request.reason and request.reason != request.outcome else ""
    return (
        f"  {moment(request.at)}.{int(request.at % 1 * 1000):03d} {what:>4} {request.total_ms:>6} ms "
        f"{size(request.bytes):>9}  {printable(request.url)}  [{request.purpose}]{reason}{again}"
    )
