"""How much sooner are pages in MongoDB if they are written in batches of 50, a millisecond away?

    python benchmarks/mongodb_batches.py [--pages 2000] [--urls 1000000]

The server (`make engines`) is on this machine, behind a proxy in a process of its own that adds a round trip of 1 ms.
The same documents, made before, are inserted one by one and in batches, through the proxy and without it: the time
without it is the server's and the driver's own. A line shows what a page costs in all, with its compression. Last, the
memory of the filter of seen URLs beside a set of strings.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event
from time import perf_counter

from pymongo import monitoring

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bloom import batch as urls_from
from benchmarks.bloom import bytes_of_a_set
from tests.servers import engines
from tests.servers.mongodb import running
from tests.servers.tcp_proxy import TcpProxy

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.mongodb.connect import Document
from gossamer.backends.mongodb.store import MongoPages, content_documents, metadata_document
from gossamer.core.url.forms import link_to
from gossamer.ports.page_store import PageCopy
from gossamer.runtime.stores.publishing import BATCH_PAGES

ROUND_TRIP_S = 0.001
MIN_RATIO = 20
WORDS_PER_PAGE = (300, 1500)  # the larger pages are, the more of the time is the server's own


class RoundTrips(monitoring.CommandListener):
    """Counts the commands that write."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count += event.command_name == "insert"

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass  # an insert raises


def made_pages(count: int, length: int) -> list[PageCopy]:
    draw, pages = Random(1), []
    words = ["".join(draw.choices("aeinorstul", k=draw.randint(2, 9))) for _ in range(5000)]
    for number in range(count):
        link = link_to(f"http://h{number % 100}.test/articles/{number}")
        content = ("<p>" + " ".join(draw.choices(words, k=length)) + "</p>").encode()
        title = f"Article {number}"
        place = (link.url, link.host, link.host, title, f"{number:064x}", 200)
        measures = (1.7e9 + number, 1, len(content), 20, "text/html")
        pages.append(PageCopy(link.id, 1, *place, *measures, 0, "", b"", content))
    return pages


def insert(store: MongoPages, pages: Sequence[tuple[Document, Document]], per_batch: int) -> None:
    """Insert bodies, then metadata, that many pages at a time."""
    for at in range(0, len(pages), per_batch):
        some = pages[at : at + per_batch]
        if per_batch == 1:
            store.content.insert_one(some[0][0])
            store.metadata.insert_one(some[0][1])
        else:
            store.content.insert_many([body for body, _ in some], ordered=False)
            store.metadata.insert_many([metadata for _, metadata in some], ordered=False)


def put_all(store: MongoPages, pages: Sequence[PageCopy]) -> None:
    for at in range(0, len(pages), BATCH_PAGES):
        store.put(pages[at : at + BATCH_PAGES])


def seconds(act: Callable[[], object]) -> float:
    started = perf_counter()
    act()
    return perf_counter() - started


@contextmanager
def proxied(port: int) -> Iterator[int]:
    """Run the proxy in a process of its own; yield its port."""
    command = [sys.executable, __file__, "--proxy", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve_proxy(port: int) -> None:
    with TcpProxy(port, round_trip_s=ROUND_TRIP_S) as proxy:
        print(proxy.port, flush=True)
        Event().wait()


class Measured:
    """The time of one way to insert pages, with the proxy and without."""

    def __init__(self, per_batch: int, pages: Sequence[tuple[Document, Document]], trips: RoundTrips) -> None:
        self._per_batch = per_batch
        self._pages = pages
        self._trips = trips
        self.rate = self.own_rate = 0.0

    def run(self, urls: Sequence[str]) -> None:
        away, near = (MongoPages(url) for url in urls)
        for store in (away, near):
            store.check()
        before = self._trips.count
        self.rate = len(self._pages) / seconds(lambda: insert(away, self._pages, self._per_batch))
        trips = self._trips.count - before
        self.own_rate = len(self._pages) / seconds(lambda: insert(near, self._pages, self._per_batch))
        away.close()
        near.close()
        print(
            f"  {self._per_batch:>2} at a time: {self.rate:8,.0f} pages/s, {trips:,} round trips for "
            f"{len(self._pages):,} pages; without the proxy {self.own_rate:,.0f} pages/s: "
            f"server and driver are {self.rate / self.own_rate:.0%} of the time",
            flush=True,
        )


def measure_batches(count: int, length: int) -> float:
    """Insert pages both ways; return how many times as many pages batches store."""
    pages, trips = made_pages(count, length), RoundTrips()
    documents = [(content_documents(page)[0], metadata_document(page)) for page in pages]
    body_bytes = sum(len(body["html_compressed"]) for body, _ in documents) / count
    print(f"{count:,} pages of {pages[0].size / 1e3:.1f} kB, {body_bytes / 1e3:.1f} kB compressed", flush=True)
    monitoring.register(trips)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server, proxied(server.port) as port:
        ping = MongoPages(server.url("ping", port))
        command = ping.metadata.database.command
        command("ping")
        times = sorted(seconds(lambda: command("ping")) for _ in range(100))
        print(f"  a round trip takes {1e3 * times[50]:.2f} ms through the proxy", flush=True)
        ping.close()
        single, batched = Measured(1, documents, trips), Measured(BATCH_PAGES, documents, trips)
        for number, each in enumerate((single, batched)):
            each.run([server.url(f"away{number}", port), server.url(f"near{number}")])
        whole = MongoPages(server.url("whole", port))
        whole.check()
        rate = count / seconds(lambda: put_all(whole, pages))
        whole.close()
    print(f"  with compression, as in a crawl: {rate:,.0f} pages/s", flush=True)
    return batched.rate / single.rate


def measure_filter(count: int) -> None:
    """Compare the memory of the filter of seen URLs with that of a set."""
    per_url = bytes_of_a_set(count // 10)
    with tempfile.TemporaryDirectory() as folder:
        ledger = LocalLedger(Path(folder))
        ledger.open()
        for start in range(0, count, 2500):
            ledger.admit(urls_from(start, 2500))
            ledger.commit()
        size = ledger._seen.size_in_bytes
        ledger.close()
    print(
        f"{count:,} seen URLs: the filter takes {size / 1e6:.2f} MB ({size / count:.2f} bytes per URL), "
        f"a set of strings {per_url * count / 1e6:.0f} MB ({per_url:.0f}): {per_url * count / size:.0f} times as much"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--proxy", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.proxy:
        serve_proxy(arguments.proxy)
    engines.allow("mongodb")
    ratios = []
    for length in WORDS_PER_PAGE:
        ratios.append(measure_batches(arguments.pages, length))
        print(f"  batches of {BATCH_PAGES} store {ratios[-1]:.1f} times as many pages")
    measure_filter(arguments.urls)
    return 0 if max(ratios) >= MIN_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
