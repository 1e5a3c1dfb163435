"""Reads a crawl folder from outside, while its crawl may be running.

The ledger is opened for reading and shows what is committed, at most a second or two old.
Takes no lock, writes nothing.
"""

from __future__ import annotations

import time
from copy import copy
from pathlib import Path
from types import TracebackType

import lmdb
import msgspec
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.local.store import DATA_FILE
from gossamer.core.ledger.tables import HOMES
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError
from gossamer.model.figures import RUNNING, Figures, Forecast, RunState, Totals
from gossamer.model.state import CrawlState
from gossamer.reading.host_states import HostTally
from gossamer.reading.node_folders import one_folder
from gossamer.reading.outlook import outlook_of
from gossamer.settings.load import completed, from_file, merged
from gossamer.settings.model import Settings
from gossamer.settings.regions import use_regions

INTERRUPTED = "interrupted"


class CrawlReader:
    """A crawl folder, open for reading; use it with `with`."""

    def __init__(self, path: Path) -> None:
        self.folder = CrawlFolder(path)
        self.folders = one_folder(self.folder)
        self.name = str(path)
        self.ledger = LocalLedger(self.folder.state, is_readonly=True)
        self.settings = Settings()
        self.state = CrawlState()
        self.owner: int | None = None  # the process that runs the crawl now
        self.now = 0.0
        self._file = (0, 0)  # that was opened: device and inode
        self._hosts: HostTally | None = None

    def __enter__(self) -> CrawlReader:
        self.folder.require_crawl()
        self._read_outside()
        regions = use_regions(self.settings)  # of the node whose folder it is
        try:
            self.ledger.open()
            self._file = self._file_now()
            if regions is not None and regions.has_countries:
                regions.learn_homes(self.ledger.records(HOMES))
            self.state = self.ledger.crawl_state() or CrawlState()
        except lmdb.Error as error:
            raise CorruptFolderError(f"{self.folder.state}: cannot read the ledger: {error}") from error
        if not self.state.totals.runs and self.folder.has_archive():
            self.ledger.close()
            raise CorruptFolderError(
                f"{self.folder.state}: the ledger is empty, but there is an archive{HOW_TO_REBUILD}"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ledger.close()
        if isinstance(error, (lmdb.Error, msgspec.DecodeError)):
            raise CorruptFolderError(f"{self.folder.path}: the ledger cannot be read: {error}") from error

    def _read_outside(self) -> None:
        """Read what is not in the ledger: the settings, and who runs the crawl."""
        self.now = time.time()
        path = self.folder.settings_path
        source = str(path), from_file(path)
        self.settings = completed(merged(source), source, has_domain_list=False)
        self.owner = self.folder.owner()
        self._hosts = None

    def again(self) -> CrawlReader:
        """Return the crawl as it is now. It reads from the same open ledger, which this one closes."""
        newer = copy(self)
        newer._read_outside()
        newer.state = self.ledger.crawl_state() or CrawlState()
        return newer

    def is_replaced(self) -> bool:
        """Return whether the ledger is no longer the file that was opened: it was removed, or made anew."""
        return self._file_now() != self._file

    def _file_now(self) -> tuple[int, int]:
        try:
            found = (self.folder.state / DATA_FILE).stat()
        except OSError:
            return 0, 0
        return found.st_dev, found.st_ino

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        return self.state.totals

    @property
    def is_running(self) -> bool:
        """Whether a process was running the crawl when it was opened."""
        return self.owner is not None

    def figures(self) -> Figures:
        """Return the figures of the last run if it has ended, else those of what is committed."""
        if self.owner is None and not self.state.is_running and self.state.figures is not None:
            figures = self.state.figures
            if not figures.urls_queued:
                return figures
            return replace(figures, forecast=self._forecast(), urls_over_budget=self.hosts().urls_over_budget)
        hosts = self.hosts()
        return Figures(
            totals=self.state.totals,
            out=str(self.folder.path),
            state=self._run_state(),
            finished=INTERRUPTED if self.owner is None else RUNNING,
            max_pages=self.settings.max_pages,
            urls_queued=hosts.urls_queued,
            urls_parked=hosts.urls_parked,
            urls_over_budget=hosts.urls_over_budget,
            requisites_queued=hosts.requisites_queued,
            hosts=hosts.states,
            forecast=self._forecast(),
        )

    def _forecast(self) -> Forecast | None:
        """Return how long what is queued takes; None if known pages are fetched again, without an end."""
        return None if self.settings.revisit else self.hosts().forecast()

    def _run_state(self) -> RunState:
        if self.owner is None:
            return RunState.FINISHED
        return RunState.PAUSED if self.state.is_paused else RunState.RUNNING

    def hosts(self) -> HostTally:
        """Return the hosts counted by state. One pass over the hosts, made once."""
        if self._hosts is None:
            settings = self.settings
            totals = self.state.totals
            outlook = outlook_of(settings, totals, self.ledger.domains(), self.now, settings.max_pages)
            self._hosts = HostTally(self.now, settings.max_wait, outlook)
            for host in self.ledger.hosts():
                self._hosts.add(host)
        return self._hosts
