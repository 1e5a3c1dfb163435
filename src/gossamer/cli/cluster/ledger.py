"""The status of a crawl on many machines, for people and for programs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from gossamer.control.record import open_crawl, shown_url
from gossamer.model.figures import Forecast
from gossamer.model.state import NodeLoad, Waiting
from gossamer.ports.shared_ledger import NodeView
from gossamer.reading.cluster import SharedReader, forecast_of_nodes
from gossamer.telemetry.summary import SHARED_REASONS
from gossamer.telemetry.text import UNKNOWN, count, percent, plural, printable, size, waiting_for


class NodeStatus(Struct):
    """A node, in the status of its crawl."""

    name: str
    is_live: bool
    pages: int
    queued: int = 0
    in_flight: int = 0
    restoring: int = 0
    label: str = ""  # its labels, separated by commas
    load: NodeLoad = NodeLoad()


class LedgerStatus(Struct):
    """A crawl on many machines."""

    ledger: str
    state: str
    pages: int
    max_pages: int | None
    fetches: int
    errors: int
    bytes: int
    urls_seen: int
    urls_queued: int
    nodes: list[NodeStatus]
    waiting: dict[str, Waiting] = {}  # by label, for a node with it: regions are strict
    pages_per_second: float | None = None  # on average, as in the summary
    recent_pages_per_second: float = 0.0  # of all nodes, over the last ten seconds
    bound_by: dict[str, int] = {}  # resource -> nodes that are bound by it
    private_bytes: int = 0  # of all nodes
    warnings: list[str] = []  # that last, each with its node
    urls_over_budget: int = 0  # of those queued: their host or domain has as many pages as it may
    urls_retried: int = 0  # of those queued: they wait to be tried again; known of nodes that are alive
    urls_parked: int = 0  # of those queued, at hosts that are parked for longer than the crawl waits
    forecast: Forecast | None = None  # None: not known yet, or it is paused, or it fetches again without an end


def ledger_status(url: str) -> LedgerStatus:
    """Return the status of a crawl on many machines."""
    with SharedReader(*open_crawl(url), shown_url(url), {}, time.time()) as crawl:
        return _status(crawl)


def _status(crawl: SharedReader) -> LedgerStatus:
    record = crawl.record
    totals = crawl.totals
    lines: dict[str, NodeStatus] = {}
    for node, view in crawl.nodes.items():
        _add(lines, node.name, view)
    live = [line for line in lines.values() if line.is_live]
    queue, forecast = _queue_of_nodes(crawl, live) if live else _committed_queue(crawl)
    is_known = not record.is_paused and not crawl.settings.revisit
    return LedgerStatus(
        ledger=crawl.name,
        state=record.ended or ("no node is alive" if not live else "paused" if record.is_paused else "running"),
        pages=totals.pages,
        max_pages=record.budgets.get("pages"),
        fetches=totals.fetches,
        errors=totals.errors,
        bytes=totals.bytes,
        urls_seen=totals.urls_seen,
        urls_queued=queue.all,
        urls_over_budget=queue.over_budget,
        urls_retried=queue.retried,
        urls_parked=queue.parked,
        forecast=forecast if is_known else None,
        nodes=sorted(lines.values(), key=lambda line: line.name),
        waiting=_added([view.status.waiting for view in crawl.nodes.values() if view.is_live]),
        pages_per_second=round(totals.pages / totals.seconds, 2) if totals.seconds else None,
        recent_pages_per_second=round(sum(line.load.pages_per_second for line in live), 2),
        bound_by=dict(Counter(line.load.bound_by for line in live if line.load.bound_by)),
        private_bytes=sum(line.load.private_bytes for line in live),
        warnings=[f"{line.name}: {each.text}" for line in live for each in line.load.warnings],
    )


class _Queue(Struct, frozen=True):
    """What is queued, and what of it is not simply fetched next."""

    all: int
    over_budget: int
    retried: int
    parked: int


def _queue_of_nodes(crawl: SharedReader, live: Sequence[NodeStatus]) -> tuple[_Queue, Forecast | None]:
    """Return what the nodes report, without reading a row of the ledger."""
    loads = [line.load for line in live]
    queue = _Queue(
        sum(line.queued for line in live),
        sum(load.over_budget_urls for load in loads),
        sum(load.retried_urls for load in loads),
        sum(load.parked_urls for load in loads),
    )
    return queue, forecast_of_nodes(loads, crawl.totals, crawl.record.budgets.get("pages"))


def _committed_queue(crawl: SharedReader) -> tuple[_Queue, Forecast | None]:
    """Return what is committed, in one pass over the hosts."""
    hosts = crawl.hosts()
    return _Queue(hosts.urls_queued, hosts.urls_over_budget, 0, hosts.urls_parked), hosts.forecast()


def _added(reports: Sequence[Mapping[str, Waiting]]) -> dict[str, Waiting]:
    """Return what waits for each label, at all nodes together."""
    found: dict[str, Waiting] = {}
    for report in reports:
        for label, part in report.items():
            before = found.get(label, Waiting())
            found[label] = Waiting(before.shards + part.shards, before.urls + part.urls)
    return found


def _add(lines: dict[str, NodeStatus], name: str, view: NodeView) -> None:
    line = lines.setdefault(name, NodeStatus(name, is_live=False, pages=0))
    line.pages += view.totals.pages
    if view.is_live:
        line.is_live = True
        line.queued = view.status.queued
        line.in_flight = view.status.in_flight
        line.restoring = view.status.restoring
        line.label = view.status.label
        line.load = view.status.load


def render(status: LedgerStatus) -> str:
    """Return the status for people."""
    limit = f" of at most {count(status.max_pages)}" if status.max_pages else ""
    errors = percent(status.errors / status.fetches) if status.fetches else UNKNOWN
    is_live = any(line.is_live for line in status.nodes)
    rows = [
        ("state", SHARED_REASONS.get(status.state, status.state)),
        ("pages", f"{count(status.pages)}{limit}" + (f", {status.recent_pages_per_second:.1f}/s" if is_live else "")),
        ("queued", f"{plural(status.urls_queued, 'URL')} of {count(status.urls_seen)} known{_parts(status)}"),
        ("errors", f"{count(status.errors)} of {plural(status.fetches, 'fetch')} ({errors})"),
        ("volume", f"{size(status.bytes)} received"),
    ]
    if status.bound_by:
        bound = (f"{resource} ({plural(nodes, 'node')})" for resource, nodes in status.bound_by.items())
        rows.append(("bound by", ", ".join(bound)))
    if status.forecast is not None and status.forecast.text:
        rows.append(("forecast", ("" if is_live else "at most: ") + printable(status.forecast.text)))
    if is_live:
        rows.append(("memory", f"{size(status.private_bytes)} private, all nodes"))
    rows += [("warning", printable(text)) for text in status.warnings]
    rows += [("waiting", waiting_for(label, waiting)) for label, waiting in status.waiting.items()]
    rows += [(f"node {line.name}"[:20], _node(line)) for line in status.nodes if line.is_live or line.pages]
    width = max(len(name) for name, _ in rows)
    return "\n".join([f"Crawl {printable(status.ledger)}", *(f"  {name:<{width}} {text}" for name, text in rows)])


def _parts(status: LedgerStatus) -> str:
    parts = (
        (status.urls_over_budget, "over budget"),
        (status.urls_retried, "waiting for a retry"),
        (status.urls_parked, "at parked hosts"),
    )
    return "".join(f", {count(number)} {what}" for number, what in parts if number)


def _node(line: NodeStatus) -> str:
    if not line.is_live:
        return f"{plural(line.pages, 'page')}; not alive"
    reading = f", reading {plural(line.restoring, 'shard')}" if line.restoring else ""
    work = f"{plural(line.queued, 'URL')} queued, {plural(line.in_flight, 'request')} in flight{reading}"
    label = f"; label {line.label.replace(',', ', ')}" if line.label else ""
    bound = f"; bound by {line.load.bound_by}: {printable(line.load.evidence)}" if line.load.bound_by else ""
    memory = f", {size(line.load.private_bytes)} of memory" if line.load.private_bytes else ""
    return f"{plural(line.pages, 'page')}, {line.load.pages_per_second:.1f}/s, {work}{memory}{label}{bound}"


def to_json(status: LedgerStatus) -> str:
    """Return the status as one JSON object."""
    return msgspec.json.encode(status).decode()
