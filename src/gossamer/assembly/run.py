"""Settings become objects here, and nowhere else.

Every function maps settings to a part; `build_session` returns a crawl that is ready to be opened.
Nothing is started here, and no part is changed after it is made.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gossamer import __version__
from gossamer.assembly.access import access_rules_of, check_plain_seeds, warnings_about
from gossamer.assembly.engine import budget_of, build_crawl, identity_of, ordering_of
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.backends.registry import (
    check_reachable_catalogs,
    check_topics,
    check_url_stores,
    open_catalog,
    open_topic,
)
from gossamer.core.links.intake import LinkHooks
from gossamer.core.politeness.other_crawls import CrawlContacts, HostContacts
from gossamer.core.spam.hosts import SpamUse
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.fetch.access import AccessRules, AccessTable
from gossamer.fetch.limits import FetchLimits, files_for, max_connections, raise_file_limit
from gossamer.fetch.names.dns import Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.trust import check_trust
from gossamer.model.commands import Submit
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.events import masked_event, masked_text
from gossamer.model.records import UrlRecord
from gossamer.reading.archive_access import archive_files
from gossamer.reading.rank_file import RANK_FILE_NAME
from gossamer.runtime.hub.config import CommitTargets, HubLimits
from gossamer.runtime.hub.hub import Hub
from gossamer.runtime.hub.observer import HubObserver, all_of
from gossamer.runtime.hub.run import Run
from gossamer.runtime.ranks.rank_job import RankJob
from gossamer.runtime.ranks.rank_watch import RankWatch
from gossamer.runtime.ranks.stored_ranks import StoredRanks
from gossamer.runtime.recovery.recovery import Recovery
from gossamer.runtime.recovery.rereader import Rereader
from gossamer.runtime.recovery.stored_results import ReadingRules
from gossamer.runtime.session import opt_out
from gossamer.runtime.session.clock import TimeLine
from gossamer.runtime.session.opt_out import OptOutFile, OptOutWatch
from gossamer.runtime.session.parts import Observer, RunPlan, RunServices, RunStorage
from gossamer.runtime.session.plugin_links import with_filters, with_policy
from gossamer.runtime.session.session import Session
from gossamer.runtime.stores.outage import OutageControl
from gossamer.runtime.stores.run_stores import RunStores
from gossamer.runtime.stores.sinks import SinkConfig
from gossamer.runtime.stores.upload_factory import UploadPlan, build_uploads
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.compiled import warning_of_missing
from gossamer.runtime.watch.conditions import Conditions
from gossamer.runtime.watch.crash import CrashFile
from gossamer.runtime.watch.event_tap import EventTap
from gossamer.runtime.watch.figures_source import FiguresSource, RunMeasures, RunSources
from gossamer.runtime.watch.forecasting import Forecasting
from gossamer.runtime.watch.gauges import Gauges
from gossamer.runtime.watch.heartbeat import Heartbeat
from gossamer.runtime.watch.machine import Machine
from gossamer.runtime.watch.memory_control import MemoryControl, MemoryLimits
from gossamer.runtime.watch.run_watch import RunWatch
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.runtime.workers.addresses import AddressFinder
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.runtime.workers.factory import WorkerConfig
from gossamer.runtime.workers.pool import WorkerSource
from gossamer.runtime.workers.source import LocalWorkers, WorkerLedger
from gossamer.settings.budget import Budget, usable_cores
from gossamer.settings.crawl_key import new_identity
from gossamer.settings.identity import robots_token_of
from gossamer.settings.model import PageTypes, PdfUse, RobotsUnreachable, Settings
from gossamer.settings.plugins import LINK_FILTER, ORDER, PARSER, SINK, check_plugins, of_kind, with_versions
from gossamer.settings.regions import rules_of, use_regions
from gossamer.settings.repeatable import Repeatability, is_repeatable
from gossamer.settings.rules import accepted_types, pace_of, rank_every_of
from gossamer.settings.seeds import Seed
from gossamer.settings.stores import has_url_stores
from gossamer.telemetry.bound_by import LoadLimits
from gossamer.telemetry.event_log import EventLog, Logs, file_stem

if TYPE_CHECKING:
    from gossamer.ports import Ledger
    from gossamer.runtime.cluster.node_agent import NodeAgent
    from gossamer.runtime.cluster.seat import Seat
    from gossamer.runtime.stores.publishing import CatalogPublisher, Publisher, Publishing
    from gossamer.telemetry.crawl_log import CrawlLog

MIN_FILES = 64  # with fewer, not even one connection is certain to find what it needs


def open_ledger(folder: CrawlFolder | Path, *, is_readonly: bool) -> Ledger:
    """Open the ledger of a crawl folder, or the one in a folder of its own; the caller closes it.

    A writer must own the crawl folder (`CrawlFolder.lock`); any number of readers may have it open at the same time.
    """
    path = folder.state if isinstance(folder, CrawlFolder) else folder
    ledger = LocalLedger(path, is_readonly=is_readonly)
    ledger.open()
    return ledger


class RunPlace(Struct, frozen=True):
    """Where a run takes place, if not on this machine alone."""

    seat: Seat | None = None  # in a cluster
    workers: WorkerSource | None = None  # instead of those that fetch
    goes_on: bool = False  # also if the operator has paused the crawl
    ledger: str = ""  # its URL, in a cluster
    contacts: HostContacts | None = None  # with other crawls of this process


class _Basis(Struct, frozen=True):
    settings: Settings
    budget: Budget
    folder: CrawlFolder
    observer: Observer
    time_line: TimeLine
    seat: Seat | None
    upload_plan: UploadPlan
    warnings: Mapping[str, str]  # what the operator must know when it begins, by the name of a warning; may be empty
    access: AccessRules


def build_session(
    settings: Settings,
    folder: CrawlFolder,
    seeds: Sequence[Seed],
    *,
    retries: Callable[[UrlRecord], bool] | None = None,
    hooks: LinkHooks | None = None,
    observer: Observer | None = None,
    place: RunPlace | None = None,
) -> Session:
    """Return one run of a crawl, ready to be opened."""
    place = place or RunPlace()
    check_plugins(settings.plugin)
    settings, plugin_changes = with_versions(settings)
    use_regions(settings)
    check_plain_seeds(settings, [seed.link.url for seed in seeds if not seed.is_guess])
    basis = _basis_of(settings, folder, observer or Observer(), place.seat)
    budget = basis.budget
    storage = _build_storage(basis)
    run = Run(_hub_limits(basis))
    hooks = with_filters(hooks, of_kind(settings.plugin, LINK_FILTER), run.fail_plugin)
    crawl = _build_engine(basis, storage, seeds, hooks, run.fail_plugin)
    if place.contacts is not None:
        line = basis.time_line
        crawl.frontier.share_pace(CrawlContacts(place.contacts, line.wall_at_start - line.monotonic_at_start))
    config = _worker_config(basis, reads_anchors=hooks is not None and hooks.are_set)
    rules = ReadingRules(config.rules, settings.max_bytes, archive_files(folder.archive, settings.store))
    now = basis.time_line.now
    masked = masked_text if settings.mask_queries else str
    warnings = WarningLog(storage.emitter, storage.crashes, now, basis.observer.on_warning, masked=masked)
    agent = _build_agent(basis, storage.ledger, crawl, warnings, run.fail)
    outage = OutageControl(run, warnings.warn)
    stores = _open_stores(basis, storage.ledger, rules, outage, (agent or storage.ledger).archive_ends)
    parts = (folder, storage.ledger, crawl, storage.emitter)
    recovery = Recovery(*parts, warnings=warnings, rules=rules, now=now, on_finished=stores.on_finished)

    policy = AddressPolicy(settings.allow_network)
    first_copies = WorkerLedger(storage.ledger.first_with_content, folder.state)
    workers = LocalWorkers(settings.workers or 1, config, policy, first_copies, recovery)
    resolver = Resolver(now, server=settings.dns or None, cache_size=budget.names, max_rate=settings.dns_rate)
    addresses = AddressFinder(resolver, policy, AccessTable(basis.access) if basis.access else None, now)

    gauges = Gauges()
    conditions = Conditions(warnings, gauges, connections=budget.connections, pace=crawl.frontier.pace)
    probe = _build_probe(basis, storage.ledger, crawl, run.submit, workers=workers, warnings=warnings)
    sources = RunSources(run, probe, gauges, warnings, resolver, outage.stats, workers)
    figures = FiguresSource(crawl, _measures(basis, sources), now)
    heartbeat = Heartbeat(figures, storage.emitter, now, basis.observer.on_beat)
    forecasting = Forecasting(crawl.frontier, gauges, figures.forecast_limits, lambda: run.limits.max_wait_s, now)
    watch = RunWatch(figures, gauges, conditions, forecasting, partial(_measured, folder.path, workers, probe))

    hub = Hub(
        run,
        crawl=crawl,
        targets=CommitTargets(stores.commits(storage.ledger if agent is None else agent.commits), storage.log),
        workers=_reviewed(basis.observer, place.workers or workers, crawl),
        addresses=addresses,
        now=now,
        observer=_build_observer(basis, stores, warnings, conditions, heartbeat.emit),
        send_until=None if agent is None else agent.send_until,
    )
    review = basis.observer.review
    rereader = Rereader(
        crawl.rereading, storage.ledger, rules, warnings=warnings, submit=run.submit, now=now, review=review
    )
    services = RunServices(
        run,
        hub,
        resolver,
        policy,
        probe,
        figures,
        heartbeat,
        opt_outs=OptOutWatch(OptOutFile(folder.path / opt_out.FILE_NAME, settings.block_host), run.submit),
        rereader=rereader,
        ranks=_build_rank_watch(basis, crawl, storage.emitter, warnings, run.submit, agent=agent, place=place),
        watch=watch,
        uploads=stores.watch(run.submit, warnings.warn),
        warnings=warnings,
        observer=basis.observer,
        publishers=stores.all,
    )
    begun = {**basis.warnings, "plugin_changed": plugin_changes and f"plugins have changed: {plugin_changes}"}
    plan = RunPlan(settings, seeds, retries, Repeatability.of(settings, budget), begun, place.goes_on)
    return Session(plan, storage=storage, crawl=crawl, recovery=recovery, services=services, now=now, agent=agent)


def _build_engine(
    basis: _Basis,
    storage: RunStorage,
    seeds: Sequence[Seed],
    hooks: LinkHooks | None,
    fail: Callable[[GossamerError], None],
) -> Crawl:
    settings = basis.settings
    ranks = {seed.link.host: seed.rank for seed in seeds if seed.rank is not None}
    how = with_policy(ordering_of(settings), of_kind(settings.plugin, ORDER), fail)
    parts = (settings, basis.budget, storage.ledger, storage.emitter)
    return build_crawl(*parts, host_ranks=ranks, hooks=hooks, how=how)


def _open_stores(
    basis: _Basis, ledger: Ledger, rules: ReadingRules, outage: OutageControl, ends: Callable[[], Mapping[str, int]]
) -> RunStores:
    node = "" if basis.seat is None else basis.seat.node.name
    publishers = _open_publishers(basis, rules, node, ledger) if has_url_stores(basis.settings.store) else []
    catalogs = _open_catalogs(basis, node, ledger) if basis.settings.catalog else []
    feeds = _open_feeds(basis, ledger, outage) if basis.settings.feed else []
    uploads = build_uploads(basis.upload_plan, basis.folder, ends)
    return RunStores(publishers, catalogs, feeds, uploads, basis.upload_plan, outage)


def _open_publishers(basis: _Basis, rules: ReadingRules, node: str, ledger: Ledger) -> list[Publisher]:
    from gossamer.runtime.stores.publishing import open_publishers

    return open_publishers(basis.settings, rules.files, node, ledger)


def _open_catalogs(basis: _Basis, node: str, ledger: Ledger) -> list[CatalogPublisher]:
    from gossamer.reading.catalog_rows import CatalogRows
    from gossamer.runtime.stores.publishing import CatalogPublisher

    rows = CatalogRows(ledger.look_up, node)
    return [CatalogPublisher(open_catalog(url), rows, basis.time_line.now) for url in basis.settings.catalog]


def _open_feeds(basis: _Basis, ledger: Ledger, outage: OutageControl) -> list[Publishing]:
    from gossamer.handover.feed.topic_feed import FeedPublisher, OwnCrawl  # 50 ms: documents are read from trees
    from gossamer.reading.node_folders import one_folder

    crawl = OwnCrawl(str(basis.folder.path), one_folder(basis.folder), ledger, basis.settings)
    return [FeedPublisher(open_topic(url), crawl, outage.warn) for url in basis.settings.feed]


def _build_observer(
    basis: _Basis, stores: RunStores, warnings: WarningLog, conditions: Conditions, on_beat: Callable[[], None]
) -> HubObserver:
    on_result = all_of(basis.observer.on_page, stores.on_result)
    on_request = conditions.check_request if pace_of(basis.settings).has_delay else None
    return HubObserver(on_result, warnings.warn, warnings.crash, on_beat, basis.observer.is_needed, on_request)


def _reviewed(observer: Observer, workers: WorkerSource, crawl: Crawl) -> WorkerSource:
    if observer.review is None:
        return workers
    from gossamer.runtime.hub.reviewing import ReviewedWorkers

    return ReviewedWorkers(workers, crawl.task, observer.review)


def _build_rank_watch(
    basis: _Basis,
    crawl: Crawl,
    emitter: EventEmitter,
    warnings: WarningLog,
    submit: Submit,
    *,
    agent: NodeAgent | None,
    place: RunPlace,
) -> RankWatch:
    async def count_pages() -> int | None:
        return crawl.totals.pages if agent is None else await agent.count_pages()

    now = basis.time_line.now
    folder = basis.folder.path
    stored = StoredRanks(folder / RANK_FILE_NAME, crawl, warnings, submit, now)
    job = RankJob(place.ledger or str(folder))
    every = rank_every_of(basis.settings)
    return RankWatch(every, job, count_pages, stored, emitter=emitter, warnings=warnings, now=now)


def _build_agent(
    basis: _Basis, ledger: Ledger, crawl: Crawl, warnings: WarningLog, on_failure: Callable[[GossamerError], None]
) -> NodeAgent | None:
    if basis.seat is None:
        return None
    from gossamer.fetch.names.countries import open_countries
    from gossamer.runtime.cluster.node_agent import NodeAgent

    regions = use_regions(basis.settings)
    if regions is not None and regions.has_countries:
        crawl.shards.learn_countries(regions, open_countries(basis.settings.geoip), crawl.state)
    parts = basis.seat, crawl, ledger
    return NodeAgent(
        *parts,
        max_wait_s=basis.settings.max_wait,
        regions=regions,
        now=basis.time_line.now,
        on_failure=on_failure,
        warn=warnings.warn,
    )


def _basis_of(settings: Settings, folder: CrawlFolder, observer: Observer, seat: Seat | None) -> _Basis:
    """Return what a run is built from; raise if the machine lacks what the settings need."""
    check_trust(settings.ca_file)
    if settings.pdf is PdfUse.DEEP:
        from gossamer.parse.pdf.deep import check_deep

        check_deep(parses_pdf=settings.parse_pdf_links)
    is_new = seat is None and not folder.settings_path.is_file()
    check_url_stores(settings.store, is_new=is_new)
    crawl = folder.path.absolute().name if seat is None else seat.crawl
    check_reachable_catalogs(settings.catalog, crawl, is_new=is_new, is_node=seat is not None)
    check_topics(settings.feed)
    files = raise_file_limit()
    possible = _within_files(settings, files)
    access = access_rules_of(settings, os.environ)
    warnings = {**warnings_about(access), "not_compiled": warning_of_missing()}
    if possible.connections < settings.connections:
        warnings["few_files"] = (
            f"only {files} files may be open at once: {possible.connections} connections per worker are used instead "
            f"of {settings.connections}; 'ulimit -n {files_for(settings.connections)}' allows all of them"
        )
    if too_many := warning_of_workers(settings.workers, usable_cores()):
        warnings["many_workers"] = too_many
    time_line = TimeLine.begin() if seat is None else seat.time_line
    node = "" if seat is None else seat.node.name
    plan = UploadPlan.of(settings, folder, run=file_stem(time_line.wall_at_start), node=node)
    return _Basis(settings, budget_of(possible), folder, observer, time_line, seat, plan, warnings, access)


def warning_of_workers(workers: int, cores: int) -> str:
    """Return what somebody should know who asks for more workers than there are cores; empty if there is nothing."""
    if workers <= cores:
        return ""
    has = "1 core executes" if cores == 1 else f"{cores} cores execute"
    return (
        f"--workers {workers}: a worker is a process, not a thread, and {has} no more than {cores} at once; "
        "for more requests at the same time: --connections N (per worker), and --host-connections N for one host"
    )


def _within_files(settings: Settings, files: int) -> Settings:
    """Return the settings with connections limited by the number of open files allowed."""
    if files < MIN_FILES:
        raise UsageError(f"only {files} files may be open at once; expected at least {MIN_FILES}: ulimit -n 1024")
    return replace(settings, connections=min(settings.connections, max_connections(files)))


def _build_storage(basis: _Basis) -> RunStorage:
    budget = basis.budget
    folder = basis.folder
    started_at = basis.time_line.wall_at_start
    limits = LedgerLimits(budget.seen, budget.near_pages, budget.names)
    log = EventLog(folder.events, file_stem(started_at))
    tap = EventTap(log, basis.observer.on_event)
    is_masked = basis.settings.mask_queries
    identity = (
        new_identity(is_repeatable=basis.settings.connections == 1) if basis.seat is None else basis.seat.record.ids
    )
    ledger = LocalLedger(folder.state, limits=limits, is_copy=basis.seat is not None, identity=identity)
    fetches = _crawl_log(basis, ledger)
    emit = (lambda event: tap.emit(masked_event(event))) if is_masked else tap.emit
    emitter = EventEmitter(emit, started_at, fetches)
    crashes = CrashFile(folder.events, masked_text if is_masked else str)
    return RunStorage(folder, ledger, Logs(log, fetches), tap, emitter, crashes)


def _crawl_log(basis: _Basis, ledger: Ledger) -> CrawlLog | None:
    if not basis.settings.crawl_log:
        return None
    from gossamer.telemetry.crawl_log import FILE_NAME, CrawlLog

    mask = masked_text if basis.settings.mask_queries else None
    return CrawlLog(basis.folder.path / FILE_NAME, ledger.look_up, mask)


def _worker_config(basis: _Basis, *, reads_anchors: bool) -> WorkerConfig:
    """Return the configuration of all workers, except their numbers and the addresses that seeds allow."""
    settings = basis.settings
    budget = basis.budget
    identity = identity_of(settings)
    return WorkerConfig(
        rules=WorkerRules(
            parses_pdf=settings.parse_pdf_links,
            parses_pdf_deep=settings.pdf is PdfUse.DEEP,
            accepts=accepted_types(settings),
            html_only=settings.types is PageTypes.HTML,
            robots_token=robots_token_of(settings),
            previews=basis.observer.previews,
            near_dup=settings.near_dup,
            max_hrefs=budget.hrefs,
            sketches=settings.revisit,
            judges_spam=settings.spam is not SpamUse.OFF,
            parsers=of_kind(settings.plugin, PARSER),
            reads_anchors=reads_anchors,
            checks_only=settings.check_only,
            max_requisites=settings.max_requisites_per_page if settings.requisites else 0,
        ),
        limits=replace(
            FetchLimits.from_timeout(settings.timeout, settings.max_bytes),
            max_idle_connections=budget.max_idle_connections,
        ),
        identity=identity,
        allowed_networks=settings.allow_network,
        allowed_addresses=(),
        time_line=basis.time_line,
        sinks=_sink_config(basis, identity.user_agent),
        ca_file=settings.ca_file,
        copies=budget.copies,
        regions=rules_of(settings),
        access=basis.access,
    )


def _sink_config(basis: _Basis, user_agent: str) -> SinkConfig:
    settings = basis.settings
    folder = basis.folder.path
    return SinkConfig(
        stores=settings.store,
        out=str(folder),
        archive_prefix=basis.upload_plan.archive_prefix,
        save_interval=settings.save_interval,
        warcinfo={
            "software": f"Gossamer/{__version__}",
            "robots": _robots_policy(settings),
            "http-header-user-agent": user_agent,
            "operator": settings.contact or "unknown",
            "hostname": socket.gethostname() or "localhost",
            "isPartOf": folder.name,
        },
        max_file_bytes=basis.upload_plan.max_file_bytes,
        plugins=of_kind(settings.plugin, SINK),
    )


def _robots_policy(settings: Settings) -> str:
    """Return how robots.txt is obeyed, as the archive files state it."""
    is_strict = settings.robots_unreachable is RobotsUnreachable.DENY
    own = f"not obeyed at own hosts: {' '.join(settings.own_host)}" if settings.own_host else ""
    return ", ".join(filter(None, ("RFC 9309", "" if is_strict else "unreachable=allow", own)))


def _hub_limits(basis: _Basis) -> HubLimits:
    return HubLimits(
        workers=basis.settings.workers or 1,
        connections=basis.budget.connections,
        max_time_s=basis.settings.max_time,
        max_wait_s=basis.settings.max_wait,
        task_limit_s=max(HubLimits().task_limit_s, 20 * basis.settings.timeout),
        ends_by_itself=basis.seat is None,
    )


def _measured(folder: Path, workers: LocalWorkers, probe: vitals.StallProbe) -> Machine:
    return Machine.measured(folder, workers.pids(), max(probe.take_longest_s(), workers.take_stall_s()))


def _build_probe(
    basis: _Basis, ledger: LocalLedger, crawl: Crawl, submit: Submit, *, workers: LocalWorkers, warnings: WarningLog
) -> vitals.StallProbe:
    """Return the probe of the event loop, which also calls memory control."""
    budget = basis.budget
    limits = MemoryLimits(
        ceiling_bytes=budget.whole,
        min_connections=budget.safe_connections,
        max_connections=budget.connections,
        body_bytes=budget.bodies,
        max_pending=budget.changes,
        forgets_pages=not is_repeatable(basis.settings),
    )
    memory = MemoryControl(
        limits,
        crawl=crawl,
        ledger=ledger,
        warn=warnings.warn,
        submit=submit,
        now=basis.time_line.now,
    )
    return vitals.StallProbe(memory=vitals.MemoryWatch(workers.pids, memory.on_memory))


def _measures(basis: _Basis, sources: RunSources) -> RunMeasures:
    return RunMeasures(
        out=str(basis.folder.path),
        started_at=basis.time_line.wall_at_start,
        max_wait_s=basis.settings.max_wait,
        memory_ceiling_bytes=basis.budget.whole,
        sources=sources,
        load_limits=LoadLimits(
            host_connections=basis.settings.host_connections,
            address_connections=basis.settings.address_connections,
            domain_connections=basis.settings.domain_connections,
            has_gate_delay=bool(basis.settings.address_politeness_ms or basis.settings.domain_politeness_ms),
            dns_rate=basis.settings.dns_rate,
        ),
        is_node=basis.seat is not None,
    )
