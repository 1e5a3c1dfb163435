"""Crawl folders to look at: made once, by a real crawl of a small synthetic web; a test that breaks one copies it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from gossamer.assembly.run import build_session
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.cli.main import main
from gossamer.model.events import Event, EventName
from gossamer.model.records import UrlRecord
from gossamer.reading.folder import CrawlReader
from gossamer.settings.load import completed, merged
from gossamer.settings.seeds import seeds_from
from gossamer.sim.web.web import preset
from gossamer.telemetry.summary import Summary
from tests.servers.web import RunningWeb

PAGES = 160


class Crawled(msgspec.Struct):
    """A folder and what its crawl said of itself."""

    path: Path
    summary: Summary

    def copied(self, to: Path) -> Path:
        """Return a copy of the folder, to be broken."""
        shutil.copytree(self.path, to)
        return to

    def rows(self) -> dict[str, UrlRecord]:
        """Return the catalog by URL."""
        with CrawlReader(self.path) as crawl:
            return {row.url: row for _, row in crawl.ledger.urls()}


def crawl(web: RunningWeb, out: Path, **settings: Any) -> Crawled:
    """Crawl a web into a folder."""
    values = {"dns": web.dns_address, "allow_network": ("127.0.0.0/8",), "politeness_ms": 20, "max_wait": 5, **settings}
    chosen = completed(merged(("test", values)), has_domain_list=False)
    session = build_session(chosen, CrawlFolder(out), seeds_from(web.seeds()))
    session.open()
    return Crawled(out, uvloop.run(session.run()))


@pytest.fixture(scope="module")
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=PAGES, slow=0.0)) as web:
        yield web


@pytest.fixture(scope="module")
def finished(small_web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A crawl that fetched everything within reach."""
    return crawl(small_web, tmp_path_factory.mktemp("finished") / "crawl")


@pytest.fixture(scope="module")
def stopped(small_web: RunningWeb, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A crawl that stopped at its page limit, with URLs left in its queues."""
    return crawl(small_web, tmp_path_factory.mktemp("stopped") / "crawl", max_pages=40)


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own a crawl folder for a while, as a running crawl does."""
    folder = CrawlFolder(path)
    folder.lock()
    try:
        yield
    finally:
        folder.release()


@contextmanager
def ledger_of(path: Path) -> Iterator[LocalLedger]:
    """Open the ledger of a folder to change it; committed at the end."""
    ledger = LocalLedger(path / "state")
    ledger.open()
    try:
        yield ledger
    finally:
        ledger.close()


def event(name: EventName, **fields: Any) -> Event:
    """Return an event; what is not given is empty."""
    empty: dict[str, Any] = {
        "ts": 1_700_000_000.0,
        "url": "",
        "host": "",
        "depth": 0,
        "status": 0,
        "bytes": 0,
        "content_type": "",
        "worker": 0,
        "t_ms_from_start": 0,
        "reason": "",
    }
    return Event(event=name, **{**empty, **fields})


def write_events(folder: Path, name: str, events: list[Event]) -> None:
    """Write an event file as a run does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in events))


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the program; return its exit status, and what it said on stdout and stderr."""
    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as end:
        status = int(end.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def is_one_line(text: str) -> bool:
    """Return whether an error is one line without a traceback."""
    return text.count("\n") == 1 and "Traceback" not in text
