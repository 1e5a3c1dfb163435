"""One run of a crawl: what opening does, and what is left if it fails."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from gossamer import __version__
from gossamer.assembly.run import build_session, open_ledger
from gossamer.backends.local.folder import CrawlFolder
from gossamer.foundation import failpoints
from gossamer.model.commands import Stop
from gossamer.model.errors import CorruptFolderError, DiskFullError, FolderBusyError
from gossamer.model.events import Event, EventName
from gossamer.model.figures import Totals
from gossamer.model.records import UrlState
from gossamer.model.state import CrawlState
from gossamer.runtime.session.parts import Observer
from gossamer.runtime.session.session import Session
from gossamer.settings.load import completed, merged
from gossamer.settings.seeds import seeds_from
from gossamer.telemetry.event_log import read_events

SEED = "http://127.0.0.1:9/"


def session(out: Path, heard: list[Event] | None = None) -> Session:
    """Return a session over a folder; its events are written down."""

    def on_event(event: Event) -> bool:
        if heard is not None:
            heard.append(event)
        return True

    settings = completed(merged(("test", {"max_wait": 0.1, "politeness_ms": 100})), has_domain_list=False)
    return build_session(settings, CrawlFolder(out), seeds_from([SEED]), observer=Observer(on_event=on_event))


def test_an_opened_session_owns_its_folder_and_has_its_seeds_committed(tmp_path: Path) -> None:
    heard: list[Event] = []
    opened = session(tmp_path / "crawl", heard)
    assert not opened.is_open
    opened.open()
    assert opened.is_open
    with pytest.raises(FolderBusyError):
        session(tmp_path / "crawl").open()
    assert [(row.url, row.state) for _, row in opened.ledger.urls()] == [(SEED, UrlState.QUEUED)]
    state = opened.ledger.crawl_state()
    assert state is not None
    assert state.is_running
    assert state.opened_addresses == ["127.0.0.1"]
    assert [event.event for event in heard] == [EventName.STARTED]


def test_a_session_that_cannot_be_opened_gives_its_folder_back(tmp_path: Path) -> None:
    out = tmp_path / "crawl"
    (out / "archive").mkdir(parents=True)
    (out / "state").mkdir()
    with closing(open_ledger(out / "state", is_readonly=False)) as ledger:
        ledger.put_archive_end("crawl-1.warc.gz", 1000)
        ledger.put_crawl_state(CrawlState(totals=Totals(runs=1)))
    (out / "archive" / "crawl-1.warc.gz.open").write_bytes(b"short")
    with pytest.raises(CorruptFolderError, match="1000 were committed"):
        session(out).open()
    assert CrawlFolder(out).owner() is None


def test_events_of_opening_are_on_file_before_the_crawl_runs(tmp_path: Path) -> None:
    session(tmp_path / "crawl").open()
    (started,) = read_events(tmp_path / "crawl" / "events")
    assert (started.event, started.version) == (EventName.STARTED, __version__)


def test_a_session_that_is_stopped_before_it_runs_leaves_a_complete_folder(tmp_path: Path) -> None:
    opened = session(tmp_path / "crawl")
    opened.open()
    opened.submit(Stop("stopped"))
    summary = asyncio.run(opened.run(is_guest=True))
    assert (summary.finished, summary.fetches, summary.urls_queued) == ("stopped", 0, 1)
    assert not opened.is_open
    assert CrawlFolder(tmp_path / "crawl").owner() is None
    assert (tmp_path / "crawl" / "report.json").is_file()
    again = session(tmp_path / "crawl")
    again.open()
    assert asyncio.run(again.run(is_guest=True)).finished in ("parked", "exhausted")


def test_a_run_that_fails_gives_its_folder_back_and_the_next_one_goes_on(tmp_path: Path) -> None:
    opened = session(tmp_path / "crawl")
    opened.open()
    failpoints.arm("in_commit:full:1")
    try:
        with pytest.raises(DiskFullError):
            asyncio.run(opened.run(is_guest=True))
    finally:
        failpoints.arm("")
    assert not opened.is_open
    assert CrawlFolder(tmp_path / "crawl").owner() is None
    again = session(tmp_path / "crawl")
    again.open()
    assert [row.url for _, row in again.ledger.urls()] == [SEED]
    assert asyncio.run(again.run(is_guest=True)).finished in ("parked", "exhausted")
