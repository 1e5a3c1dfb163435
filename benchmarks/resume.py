"""How long until a crawl with many known URLs is ready to go on?

Makes a ledger with N known URLs over N/500 hosts (a tenth of them queued), then opens it as
`gossamer resume` does: ledger, filter of seen URLs, hosts into memory, first tasks.

    python benchmarks/resume.py 1000000 [10000000 …]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from gossamer.assembly.engine import budget_of, build_crawl
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.engine.event_emitter import EventEmitter
from gossamer.model.records import HostRecord, QueuedUrl, UrlState
from gossamer.runtime.watch.vitals import private_bytes
from gossamer.settings.load import completed, merged

URLS_PER_HOST = 500
QUEUED_SHARE = 10


def fill(folder: Path, urls: int) -> None:
    ledger = LocalLedger(folder)
    ledger.open()
    seq = 0
    for host_number in range(urls // URLS_PER_HOST):
        host = f"h{host_number}.test"
        batch = []
        for page in range(URLS_PER_HOST):
            seq += 1
            link = link_to(f"http://{host}/articles/{page}/some-words-in-a-path")
            batch.append(QueuedUrl(link.url, link.id, host, priority=page % 7, seq=seq, depth=page % 7))
        for number, url in enumerate(ledger.admit(batch)):
            if number % QUEUED_SHARE:
                row = record_of(url)
                row.state, row.status, row.content_type = UrlState.DONE, 200, "text/html"
                ledger.finish(url, row)
        ledger.put_host(HostRecord(host, host, queued=URLS_PER_HOST // QUEUED_SHARE, pages=450, delay_s=1.0))
        if host_number % 100 == 99:
            ledger.commit()
    ledger.close()


def open_again(folder: Path) -> tuple[float, float, int]:
    started, cpu = time.monotonic(), time.process_time()
    settings = completed(merged(("benchmark", {"scope": "any", "max_pages": 10**9})), has_domain_list=False)
    ledger = LocalLedger(folder)
    ledger.open()
    crawl = build_crawl(settings, budget_of(settings), ledger, EventEmitter(lambda _event: None, 0.0), host_ranks={})
    now = time.time()
    crawl.restore(now, was_clean=True)
    tasks = crawl.tasks(now, 256)
    ready = len(tasks) + len(crawl.take_resolves())
    return time.monotonic() - started, time.process_time() - cpu, ready


def main() -> None:
    for text in sys.argv[1:] or ["1000000"]:
        urls = int(text)
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            fill(Path(folder), urls)
            filled_s = time.monotonic() - started
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            before = private_bytes()
            seconds, cpu, ready = open_again(Path(folder))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{urls:,} URLs: ready in {seconds:.2f} s ({cpu:.2f} s of CPU), {ready} hosts asked for; "
                f"private memory +{(private_bytes() - before) / 1e6:.0f} MB, RSS peak {peak:.0f} MiB; "
                f"{size / urls:.0f} bytes of ledger per URL, filled at {1e6 * filled_s / urls:.1f} µs per URL"
            )


if __name__ == "__main__":
    main()
