"""A crawl folder as a killed process leaves it: queued URLs in the ledger, whole answers in the archive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.reader import ArchiveReader
from gossamer.archive.warc import RefersTo
from gossamer.archive.writer import ArchiveWriter
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import link_to
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.events import Event
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, UrlRecord
from gossamer.runtime.recovery.recovery import Recovery
from gossamer.runtime.recovery.stored_results import ReadingRules
from gossamer.runtime.watch.crash import CrashFile
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.sim.scenarios import START, ImaginedSites, Scenario

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def page(url: str, body: bytes = b"") -> Exchange:
    """Return an answer; each URL has its own text."""
    body = body or f"<p>This is {url}</p>".encode()
    return Exchange(
        url,
        Outcome.OK,
        status=200,
        address="192.0.2.1",
        http_version="1.1",
        request_head=b"GET / HTTP/1.1\r\n\r\n",
        response_head=HEAD,
        body=body,
        content=body,
    )


class CrashedFolder:
    """A crawl folder whose process is dead. Answers are written as workers write them."""

    def __init__(self, path: Path, queued: Sequence[str]) -> None:
        self.folder = CrawlFolder(path)
        self.folder.lock()
        self.ledger = LocalLedger(self.folder.state)
        self.ledger.open()
        self.events: list[Event] = []
        self.crawl = Scenario(ImaginedSites(), queued, ledger=self.ledger, events=self.events).prepare()[0]
        self.crawl.totals.runs = 1
        self.ledger.put_crawl_state(self.crawl.state)
        self.ledger.commit()
        self._date = START

    def writer(self, number: int = 0) -> ArchiveWriter:
        """Return the archive writer of a worker."""
        return ArchiveWriter(
            self.folder.archive, self.folder.index, prefix="crawl", worker=number, warcinfo={"software": "test"}
        )

    def store(self, writer: ArchiveWriter, url: str, body: bytes = b"", *, repeats: str = "") -> int:
        """Store an answer, later than all before; `repeats` makes it a revisit. Return where its record starts."""
        self._date += 1.0
        original = RefersTo(repeats, START) if repeats else None
        return writer.write(page(url, body), date=self._date, duplicate_of=original).span.offset

    def recover(self) -> None:
        """Do what a restart does."""
        recovery = self.recovery()
        recovery.prepare(was_clean=False)
        recovery.finish()
        self.ledger.commit()

    def recovery(self) -> Recovery:
        """Return the recovery of this folder."""
        emitter = EventEmitter(self.events.append, START)
        rules = ReadingRules(WorkerRules(), 1 << 20, ArchiveFiles(self.folder.archive))
        warnings = WarningLog(emitter, CrashFile(self.folder.events), lambda: START + 100)
        return Recovery(
            self.folder, self.ledger, self.crawl, emitter, warnings=warnings, rules=rules, now=lambda: START + 100
        )

    def row(self, url: str) -> UrlRecord:
        """Return the catalog's row of a URL."""
        row = self.ledger.look_up(link_to(url).id)
        assert row is not None
        return row

    def stored(self) -> list[str]:
        """Return the URLs of all captures in the archive, file by file."""
        return [
            record.target
            for path in sorted(self.folder.archive.iterdir())
            for record in ArchiveReader(path)
            if record.type in ("response", "revisit")
        ]
