"""The parts of a run: its input, what it writes, what is active during it. Built by `assembly`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.engine.event_emitter import EventEmitter
from gossamer.fetch.names.dns import Resolver
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import FetchTask, Result, UrlRecord
from gossamer.runtime.hub.hub import Hub
from gossamer.runtime.hub.run import Run
from gossamer.runtime.ranks.rank_watch import RankWatch
from gossamer.runtime.recovery.rereader import Rereader
from gossamer.runtime.session.opt_out import OptOutWatch
from gossamer.runtime.watch.crash import CrashFile
from gossamer.runtime.watch.event_tap import EventTap, OnEvent
from gossamer.runtime.watch.figures_source import FiguresSource
from gossamer.runtime.watch.heartbeat import Heartbeat, OnBeat
from gossamer.runtime.watch.run_watch import RunWatch
from gossamer.runtime.watch.vitals import StallProbe
from gossamer.runtime.watch.warning_log import OnWarning, WarningLog
from gossamer.settings.model import Settings
from gossamer.settings.repeatable import Repeatability
from gossamer.settings.seeds import Seed
from gossamer.telemetry.event_log import Logs

if TYPE_CHECKING:
    from gossamer.runtime.hub.reviewing import Review
    from gossamer.runtime.stores.publishing import Publishing
    from gossamer.runtime.stores.upload_watch import UploadWatch


class Observer(Struct, frozen=True):
    """Callbacks while a crawl runs."""

    on_page: Callable[[FetchTask, Result], None] | None = None  # every result, after the engine has completed it
    previews: int = 0  # pages whose results have their first words, per worker
    on_event: OnEvent | None = None
    on_warning: OnWarning | None = None
    on_beat: OnBeat | None = None
    on_notice: Callable[[str], None] | None = None  # what the operator asked for, or must know at once; any thread
    review: Review | None = None  # is asked about the links of every answer before it is completed
    is_needed: Callable[[], bool] | None = None  # whether somebody may still add URLs: it does not end by itself then


class RunPlan(Struct, frozen=True):
    """The input of one run."""

    settings: Settings
    seeds: Sequence[Seed] = ()
    retries: Callable[[UrlRecord], bool] | None = None  # dead letters to queue again
    task: Repeatability = Repeatability()
    warnings: Mapping[str, str] = {}  # what the operator must know when it begins, by name; empty ones do not count
    goes_on: bool = False  # also if the operator has paused the crawl


class RunStorage(Struct, frozen=True):
    """What a run writes besides the archive."""

    folder: CrawlFolder
    ledger: LocalLedger
    log: Logs
    tap: EventTap
    emitter: EventEmitter
    crashes: CrashFile


class RunServices(Struct, frozen=True):
    """The parts that are active while a crawl runs."""

    run: Run
    hub: Hub
    resolver: Resolver
    policy: AddressPolicy
    probe: StallProbe
    figures: FiguresSource
    heartbeat: Heartbeat
    opt_outs: OptOutWatch
    rereader: Rereader
    ranks: RankWatch
    watch: RunWatch
    uploads: UploadWatch | None
    warnings: WarningLog
    observer: Observer
    publishers: Sequence[Publishing] = ()  # to stores on other machines
