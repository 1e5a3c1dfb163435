"""What does a running crawl answer when it is asked? Nothing is computed until somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.frontier.workbench import HostState
from gossamer.engine.crawl import Crawl
from gossamer.model.commands import AskFigures, AskHost, Query
from gossamer.model.errors import UsageError
from gossamer.model.figures import Totals
from gossamer.runtime.watch.figures_source import FiguresSource
from gossamer.settings.model import Settings
from gossamer.telemetry.text import printable

if TYPE_CHECKING:
    from gossamer.ports import Ledger
    from gossamer.reading.host_view import HostView

_IN_PROGRESS = {HostState.BUSY: "busy", HostState.BLOCKED: "at_limit"}


class _Moment(Struct, frozen=True):
    """A running crawl, now: see `reading.host_view.HostSource`."""

    ledger: Ledger
    settings: Settings
    totals: Totals
    now: float


class Answers:
    """Answers the queries of clients, in the event loop of the crawl."""

    def __init__(
        self,
        crawl: Crawl,
        ledger: Ledger,
        figures: FiguresSource,
        settings: Callable[[], Settings],
        now: Callable[[], float],
    ) -> None:
        self._crawl = crawl
        self._ledger = ledger
        self._figures = figures
        self._settings = settings
        self._now = now

    def answer(self, query: Query) -> msgspec.Raw:
        """Return the answer as JSON. Raises `UsageError` if there is none."""
        match query:
            case AskFigures():
                return msgspec.Raw(msgspec.json.encode(self._figures.read_live()))
            case AskHost(name):
                return msgspec.Raw(msgspec.json.encode(self._host(name)))

    def _host(self, name: str) -> HostView:
        from gossamer.reading.host_view import host_view

        slot = self._crawl.frontier.view.host(name)
        record = self._ledger.host(name) if slot is None else slot.record
        if record is None:
            raise UsageError(f"{printable(name)}: not a host of this crawl")
        view = host_view(_Moment(self._ledger, self._settings(), self._crawl.totals, self._now()), record)
        if slot is None:
            return view
        state = _IN_PROGRESS.get(slot.state, view.state)
        waits_for = self._crawl.frontier.view.waits_for(slot)
        delay_s = round(slot.delay_s(), 3)
        return replace(view, state=state, in_flight=slot.in_flight, delay_s=delay_s, waits_for=waits_for)
