"""How is a folder completed whose rows were copied from a shared ledger? By what was on its way between nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain

from msgspec.structs import replace

from gossamer.assembly.run import build_session, open_ledger
from gossamer.backends.local.folder import CrawlFolder
from gossamer.control.record import warn_once
from gossamer.model.figures import Figures, RunState
from gossamer.model.state import CrawlRecord, CrawlState
from gossamer.reading.host_states import HostTally
from gossamer.report.build import write_report
from gossamer.settings.model import Settings


def complete_copy(
    settings: Settings, folder: CrawlFolder, messages: Iterator[tuple[int, bytes]], record: CrawlRecord
) -> None:
    """Have the engine accept the messages; then complete state and report."""
    first = next(messages, None)
    if first is not None or record.requests:
        waiting = chain([] if first is None else [first], messages)
        for text in build_session(settings, folder, []).deliver(waiting, record.requests):
            warn_once(text)
    with closing(open_ledger(folder, is_readonly=False)) as ledger:
        state = ledger.crawl_state() or CrawlState()
        hosts = HostTally(time.time(), settings.max_wait)
        for host in ledger.hosts():
            hosts.add(host)
        if state.figures is not None:
            state.figures = replace(state.figures, out=str(folder.path))
        else:
            state.figures = _figures(state, folder, hosts, record)
        ledger.put_crawl_state(state)
        write_report(folder.path, ledger, state.figures, settings)


def _figures(state: CrawlState, folder: CrawlFolder, hosts: HostTally, record: CrawlRecord) -> Figures:
    return Figures(
        totals=state.totals,
        out=str(folder.path),
        state=RunState.FINISHED,
        finished=record.ended or "signal",
        max_pages=record.budgets.get("pages"),
        urls_queued=hosts.urls_queued,
        urls_parked=hosts.urls_parked,
        requisites_queued=hosts.requisites_queued,
        hosts=hosts.states,
    )
