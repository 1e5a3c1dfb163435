"""Is the filter of seen URLs as small and as right as it should be, and how soon is it there again?

    python benchmarks/bloom.py [URLs, 10000000 unless told]

The URLs are admitted to a ledger, 2,500 per commit, as in a crawl, and the filter is measured as it grows:
its bytes beside theory (-n ln p / ln² 2 bits), its false positives, and the longest admission. Then the
ledger is opened again. Beside it a Python set of URL strings, measured at a tenth. Last, a ledger whose
filter has a limit that is far too small: no new URL may be lost to it.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter

from gossamer.backends.local.ledger import LedgerLimits, LocalLedger
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id, url_id_from
from gossamer.model.records import HostRecord, QueuedUrl

STRANGERS = 1_000_000
WANTED = 0.001
MAX_TIMES_THEORY = 1.1
MAX_OPEN_S = 2.0
PER_COMMIT = 2500
URLS_PER_HOST = 500
TIMED = 100_000  # URLs beyond these, admitted one by one


def memory() -> int:
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def bytes_of_a_set(count: int) -> float:
    """Return the bytes per URL of a set of URL strings."""
    draw = Random(1)
    before = memory()
    urls = {f"https://www.example-{draw.randrange(10**5)}.com/articles/{number}/some-words" for number in range(count)}
    return (memory() - before) / len(urls)


def theory(count: int) -> float:
    return -count * math.log(WANTED) / math.log(2) ** 2 / 8


def batch(start: int, count: int) -> list[QueuedUrl]:
    urls = []
    for number in range(start, start + count):
        host = f"h{number // URLS_PER_HOST}.test"
        key = f"{host}/articles/{number}"
        urls.append(QueuedUrl(f"http://{key}", url_id_from(host_id(host), key), host, 0, number, 1))
    return urls


def grow(state: Path, count: int) -> bool:
    """Admit URLs; print the filter's figures at every tenth; return whether the limits were kept."""
    ledger = LocalLedger(state)
    ledger.open()
    seen, largest, slowest_s, adding_s, is_right = ledger._seen, 0.0, 0.0, 0.0, True
    for start in range(0, count, PER_COMMIT):
        urls = batch(start, PER_COMMIT)
        ledger.admit(urls)
        ledger.commit()
        done = start + PER_COMMIT
        if done > 100_000:
            largest = max(largest, seen.size_in_bytes / theory(done))
        if done % (count // 10) == 0:
            is_right = report(ledger, done) and is_right
    for number, url in enumerate(batch(count, TIMED), 1):
        started = perf_counter()
        ledger.admit([url])
        took = perf_counter() - started
        slowest_s, adding_s = max(slowest_s, took), adding_s + took
        if number % PER_COMMIT == 0:
            ledger.commit()
    print(f"  largest at any size beyond 100,000   {largest - 1:+.1%} against theory (at most +10 %)")
    print(f"  a new URL is admitted in {adding_s / TIMED * 1e6:.2f} µs, the longest {slowest_s * 1e3:.2f} ms")
    ledger.close()
    return is_right and largest < MAX_TIMES_THEORY


def report(ledger: LocalLedger, count: int) -> bool:
    seen = ledger._seen
    strangers = [url.id for url in batch(1 << 40, STRANGERS)]
    started = perf_counter()
    wrong = sum(url_id in seen.partitions for url_id in strangers) / STRANGERS
    look_up_us = (perf_counter() - started) / STRANGERS * 1e6
    size, ideal = seen.size_in_bytes, theory(count)
    print(
        f"  {count:>12,} URLs: {size / 1e6:6.2f} MB, theory {ideal / 1e6:6.2f} MB ({size / ideal - 1:+.1%}); "
        f"false positives {wrong:.4%}; a look-up {look_up_us:.3f} µs",
        flush=True,
    )
    return wrong < WANTED * 1.1


def open_again(state: Path, count: int) -> bool:
    """Open the ledger; return whether that was quick and nothing is missing."""
    ledger = LocalLedger(state)
    before, started = memory(), perf_counter()
    ledger.open()
    seconds = perf_counter() - started
    grown = memory() - before
    seen = ledger._seen.partitions
    missed = sum(
        url.id not in seen for start in range(0, count + TIMED, PER_COMMIT) for url in batch(start, PER_COMMIT)
    )
    print(f"  opened in {seconds:.2f} s (at most {MAX_OPEN_S:.0f}); private memory +{grown / 1e6:.1f} MB")
    print(f"  false negatives {missed}")
    ledger.abandon()
    return seconds < MAX_OPEN_S and not missed


def measure_losses(count: int = 100_000) -> bool:
    """Admit URLs through a filter that is far too small."""
    with tempfile.TemporaryDirectory() as name:
        ledger = LocalLedger(Path(name) / "state", limits=LedgerLimits(seen_bytes=count // 10))
        ledger.open()
        ledger.put_host(HostRecord("h.test", "h.test"))
        links = [link_to(f"http://h.test/{number}") for number in range(count)]
        urls = [QueuedUrl(link.url, link.id, link.host, 0, seq, 1) for seq, link in enumerate(links)]
        claimed = admitted = 0
        for url in urls:
            claimed += url.id in ledger._seen.partitions
            admitted += len(ledger.admit([url]))
        again = len(ledger.admit(urls))
        print(f"{count:,} new URLs through a filter of {count // 10:,} bytes")
        print(f"  called seen by the filter  {claimed / count:.1%}")
        print(f"  new URLs lost              {count - admitted}")
        print(f"  known URLs admitted again  {again}")
        ledger.close()
        return admitted == count and not again


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    set_bytes = bytes_of_a_set(count // 10)
    saved = 1 - theory(count) * MAX_TIMES_THEORY / set_bytes / count
    print(f"{count:,} URLs; a set of strings takes {set_bytes * count / 1e6:.0f} MB, the filter is {saved:.1%} smaller")
    with tempfile.TemporaryDirectory() as name:
        is_met = grow(Path(name), count)
        is_met = open_again(Path(name), count) and is_met
    is_met = measure_losses() and is_met
    print("met" if is_met else "NOT MET")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
