"""How fast is a crawl handed over, and with how much memory?

Makes a crawl folder of N pages (about 8 KB of HTML with 40 links each, over N/500 hosts), or
takes one, and hands it over in every form, each in a process of its own.

    python benchmarks/export.py [--pages 100000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gossamer.archive.warc import Identified
from gossamer.archive.writer import ArchiveWriter
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ChangeKind, HostRecord, Outcome, QueuedUrl, UrlState
from gossamer.reading.folder import CrawlReader
from gossamer.settings.load import completed, merged, to_toml

PAGES_PER_HOST = 500
LINKS_PER_PAGE = 40
COMMIT_EVERY = 2000
STARTED_AT = 1_777_593_600.0
WORDS = (
    "the of and to in is that it was for on are as with they at be this have from or by but not what all were when "
    "bridge council river stone market morning letter garden winter harbour teacher window mountain copper journey "
    "village engine captain summer kitchen station history painter evening forest library question answer machine"
).split()


def page_html(rng: random.Random, host: str, number: int) -> bytes:
    def words(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    menu = "".join(f'<li><a href="/p/{n}">{words(2)}</a>' for n in range(LINKS_PER_PAGE))
    body = "".join(f"<h2>{words(4)}</h2><p>{words(90)}, {words(60)}.</p>" for _ in range(7))
    return (
        f'<!doctype html><html lang="en"><head><title>{words(6)} {number}</title><meta name=description '
        f'content="{words(12)}"></head><body><nav><ul>{menu}</ul></nav><main><h1>{words(5)}</h1>{body}</main>'
        f"<footer>{host}</footer></body></html>"
    ).encode()


def fill(path: Path, pages: int) -> None:
    """Make a folder as a crawl leaves it."""
    folder = CrawlFolder(path)
    folder.lock()
    folder.write("crawl.toml", to_toml(completed(merged(("benchmark", {})), has_domain_list=False)).encode())
    ledger = LocalLedger(folder.state)
    ledger.open()
    archive = ArchiveWriter(folder.archive, folder.index, prefix="bench", worker=0, warcinfo={"software": "benchmark"})
    rng = random.Random(1)
    for number in range(pages):
        host = f"h{number // PAGES_PER_HOST}.test"
        link = link_to(f"http://{host}/p/{number % PAGES_PER_HOST}")
        content = page_html(rng, host, number)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(content)}\r\n\r\n"
        exchange = Exchange(
            url=link.url, outcome=Outcome.OK, status=200, response_head=head.encode(), body=content, content=content
        )
        stored = archive.write(exchange, date=STARTED_AT + number / 100, identified=Identified("text/html"))
        url = QueuedUrl(link.url, link.id, host, priority=0, seq=number + 1, depth=1)
        row = record_of(url)
        row.state, row.outcome, row.status, row.content_type = UrlState.DONE, "ok", 200, "text/html"
        row.archived, row.content_bytes, row.fetched_at = stored.span, len(content), STARTED_AT + number / 100
        ledger.admit([url])
        ledger.finish(url, row)
        ledger.put_archive_end(stored.span.file, stored.end)
        ledger.record_change(link.id, ChangeKind.UPSERT)
        if number % PAGES_PER_HOST == 0:
            ledger.put_host(HostRecord(host, host, pages=PAGES_PER_HOST))
        if number % COMMIT_EVERY == 0:
            ledger.commit()
    archive.close()
    ledger.close()
    folder.release()


def measure(name: str, words: list[str], out: str, pages: int) -> None:
    """Run a verb and tell its speed and its peak memory."""
    started = time.monotonic()
    with Path(out).open("wb") as target:
        process = subprocess.Popen([sys.executable, "-m", "gossamer.cli.main", *words], stdout=target)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    cpu_ms = 1000 * (usage.ru_utime + usage.ru_stime) / pages
    if status:
        sys.exit(f"{name}: exit status {status}")
    print(
        f"{name:<16} {pages / seconds:>8,.0f} pages/s  {cpu_ms:6.2f} ms CPU per page"
        f"  peak memory {usage.ru_maxrss / 1024:6.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = arguments.folder or Path(scratch) / "crawl"
        if not path.exists():
            started = time.monotonic()
            fill(path, arguments.pages)
            print(f"made {arguments.pages:,} pages in {time.monotonic() - started:.0f} s")
        with CrawlReader(path) as crawl:
            pages = crawl.ledger.last_change()
        folder = str(path)
        for form in ("jsonl", "links", "wet", "cdxj"):
            measure(form, ["export", folder, "--format", form], f"{scratch}/out", pages)
        for name, more in (("parquet", []), ("parquet, text", ["--with-text"])):
            words = ["export", folder, "--format", "parquet", "-o", f"{scratch}/pages.parquet", *more]
            measure(name, words, os.devnull, pages)
        measure("feed", ["feed", folder], f"{scratch}/out", pages)
        (path / "search.sqlite").unlink(missing_ok=True)
        measure("search, first", ["search", folder, "bridge river"], os.devnull, pages)
        measure("search, second", ["search", folder, '"bridge council" captain*'], os.devnull, pages)


if __name__ == "__main__":
    main()
