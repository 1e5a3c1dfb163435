"""Reads a crawl on many machines from outside: its shared ledger, and the folders of its nodes that can be reached.

See `reading/folder` for one machine: both offer a `CrawlView`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from gossamer.core.cluster.regions import Regions, labels_in
from gossamer.core.ledger.rows import decode_crawl
from gossamer.core.ledger.tables import HOMES
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import shard_of
from gossamer.model.figures import RUNNING, BoundBy, Figures, Forecast, Resource, RunState, Throughput, Totals
from gossamer.model.records import UrlId, UrlRecord
from gossamer.model.state import ORIGIN_NODE, CrawlRecord, CrawlState, NodeLoad
from gossamer.ports.shared_ledger import NodeId, NodeView, SharedLedger
from gossamer.reading.cluster_catalog import SharedCatalog
from gossamer.reading.folder import INTERRUPTED
from gossamer.reading.host_states import HostTally
from gossamer.reading.node_folders import NodeFolders, find_folders
from gossamer.reading.outlook import outlook_of
from gossamer.reading.why.life import NodePlace
from gossamer.settings.load import settings_for_node
from gossamer.settings.model import Settings
from gossamer.settings.regions import use_regions
from gossamer.telemetry.forecast import KNOWN_NOW, NOTHING_QUEUED
from gossamer.telemetry.text import agreeing, plural, roughly


class SharedReader:
    """A crawl on many machines, open for reading; use it with `with`. It closes the shared ledger."""

    def __init__(
        self, shared: SharedLedger, record: CrawlRecord, name: str, given: Mapping[str, Path], now: float
    ) -> None:
        self.name = name
        self.shared = shared
        self.record = record
        self.ledger = SharedCatalog(shared, record)
        self.now = now
        self.settings = Settings()
        self.regions: Regions | None = None
        self._countries: Mapping[str, str] = {}
        self.state = CrawlState()
        self.nodes: Mapping[NodeId, NodeView] = {}
        self.folders = NodeFolders({})
        self._given = given
        self._hosts: HostTally | None = None

    def __enter__(self) -> SharedReader:
        self.settings = settings_for_node(self.record.settings, self.name, [])
        self.regions = use_regions(self.settings)
        self.ledger.identify()
        if self.regions is not None and self.regions.has_countries:
            self._countries = self.regions.learn_homes(self.ledger.records(HOMES))
            self.ledger.has_homes = True
        self.nodes = self.shared.nodes()
        from_origin = () if self.record.origin is None else self.shared.archive_ends(ORIGIN_NODE)
        self.folders = find_folders(self.nodes, self._given, self.record.origin, from_origin)
        self.state = self.ledger.crawl_state()
        return self

    def again(self, now: float) -> SharedReader:
        """Return the crawl as it is now. It reads from the same open ledger, which this one closes."""
        record = self.shared.record() or self.record
        return SharedReader(self.shared, record, self.name, self._given, now).__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shared.close()

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        return self.state.totals

    @property
    def is_running(self) -> bool:
        """Whether any node is alive, and the crawl is not over."""
        return not self.record.ended and any(view.is_live for view in self.nodes.values())

    def is_running_now(self) -> bool:
        """Return whether any node is alive now."""
        record = self.shared.record()
        return record is not None and not record.ended and any(view.is_live for view in self.shared.nodes().values())

    def place_of(self, url_id: UrlId, host: str, row: UrlRecord | None) -> NodePlace:
        """Return which node owns a URL, and which has its bytes."""
        shard = shard_of(url_id)
        owner = self.shared.ownership(shard)
        stored_on = self.folders.node_of(row.archived.file) if row is not None and row.archived is not None else ""
        label = self.regions.label_of_shard(shard) if self.regions is not None else ""
        country = self._countries.get(registrable_domain(host), "")
        place = NodePlace(
            shard=shard, owner="", stored_on=stored_on, label=label, country=country, lacks_label=self._lacks(label)
        )
        if owner is None:
            return place
        return replace(place, owner=owner.node.name, epoch=owner.epoch, is_live=owner.is_live)

    def _lacks(self, label: str) -> bool:
        """Return whether what has a label waits for a node with it."""
        if not label or self.regions is None or not self.regions.is_strict:
            return False
        return not any(view.is_live and label in labels_in(view.status.label) for view in self.nodes.values())

    def figures(self) -> Figures:
        """Return the figures of the whole crawl, each node counted once."""
        hosts = self.hosts()
        state = self._run_state()
        loads = {node.name: view.status.load for node, view in self.nodes.items() if view.is_live}
        return Figures(
            totals=self.state.totals,
            out=self.name,
            state=state,
            finished=RUNNING if self.is_running else self.record.ended or self._finished_before(),
            max_pages=self.record.budgets.get("pages"),
            urls_queued=hosts.urls_queued,
            urls_parked=hosts.urls_parked,
            urls_over_budget=hosts.urls_over_budget,
            urls_retried=sum(load.retried_urls for load in loads.values()),
            requisites_queued=hosts.requisites_queued,
            hosts=hosts.states,
            forecast=None if state is RunState.PAUSED or self.settings.revisit else self._forecast(loads.values()),
            rates={"10s": Throughput(pages=sum(load.pages_per_second for load in loads.values()))} if loads else {},
            bound_by=_bound_by(loads.values()),
            private_bytes=sum(load.private_bytes for load in loads.values()),
            in_flight=sum(view.status.in_flight for view in self.nodes.values() if view.is_live),
            warnings=[
                replace(each, text=f"{name}: {each.text}") for name, load in loads.items() for each in load.warnings
            ],
        )

    def _forecast(self, loads: Collection[NodeLoad]) -> Forecast:
        """Return how long what is queued takes: as the nodes see it, or if none is alive from what is committed."""
        max_pages = self.record.budgets.get("pages")
        return forecast_of_nodes(loads, self.totals, max_pages) or self.hosts().forecast()

    def _run_state(self) -> RunState:
        if not self.is_running:
            return RunState.FINISHED
        return RunState.PAUSED if self.record.is_paused else RunState.RUNNING

    def _finished_before(self) -> str:
        """Return why the last run ended, if that was before the crawl was migrated."""
        others = any(view.totals.fetches for node, view in self.nodes.items() if node.name != ORIGIN_NODE)
        if self.record.origin is None or others:
            return INTERRUPTED
        figures = decode_crawl(self.record.origin.state).figures
        return INTERRUPTED if figures is None else figures.finished

    def hosts(self) -> HostTally:
        """Return the hosts counted by state. One pass over the hosts, made once."""
        if self._hosts is None:
            max_pages = self.record.budgets.get("pages")
            outlook = outlook_of(self.settings, self.totals, self.ledger.domains(), self.now, max_pages)
            self._hosts = HostTally(self.now, self.settings.max_wait, outlook)
            for host in self.ledger.hosts():
                self._hosts.add(host)
        return self._hosts


def forecast_of_nodes(loads: Collection[NodeLoad], totals: Totals, max_pages: int | None) -> Forecast | None:
    """Return how long a crawl needs, from what its nodes report; None if one of them has not reported it.

    Nodes crawl at the same time, so it takes as long as the one that takes longest: each knows its retries, budgets and
    errors. The limit of pages is shared, and ends the crawl at the pace of all.
    """
    if not loads or any(load.forecast_s is None for load in loads):
        return None
    seconds = max(load.forecast_s or 0.0 for load in loads)
    urls = sum(load.forecast_urls for load in loads)
    rate = sum(load.pages_per_second for load in loads)
    pages_left = None if max_pages is None else max(0, max_pages - totals.pages)
    parts = {
        "over budget and not fetched": sum(load.over_budget_urls for load in loads),
        "at parked hosts and not counted": sum(load.parked_urls for load in loads),
    }
    rest = "".join(f"; {agreeing(number, 'URL')} {what}" for what, number in parts.items() if number)
    if pages_left is not None and pages_left < rate * seconds:
        seconds = pages_left / rate
        return Forecast(seconds, text=f"--max-pages ends it in about {roughly(seconds)} {KNOWN_NOW}{rest}")
    if not urls:
        return Forecast(seconds, text=f"{NOTHING_QUEUED}{rest}")
    nodes = f" on {plural(len(loads), 'node')}" if len(loads) > 1 else ""
    text = f"{agreeing(urls, 'queued URL')} done in about {roughly(seconds)}{nodes} {KNOWN_NOW}{rest}"
    return Forecast(seconds, text=text)


def _bound_by(loads: Collection[NodeLoad]) -> BoundBy | None:
    """Return what most nodes are bound by."""
    known = Counter(load.bound_by for load in loads if load.bound_by in set(Resource))
    if not known:
        return None
    (resource, nodes), *_ = known.most_common(1)
    evidence = next(load.evidence for load in loads if load.bound_by == resource)
    return BoundBy(Resource(resource), f"{nodes} of {plural(len(loads), 'node')}; {evidence}")
