"""Is the filter of seen URLs as small and as right as it should be?

    python benchmarks/bloom.py [URLs, 10000000 unless told]

Once sized for all URLs at once, as when a crawl is resumed, once grown from nothing, as in a crawl;
beside them the theory (-n ln p / ln² 2 bits) and a Python set of URL strings, measured at a tenth.
Last, a ledger whose filter says "seen" to nearly everything: no new URL may be lost to it.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter

from rbloom import Bloom

from gossamer.backends.local.bloom import SeenFilter
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url import link_to
from gossamer.records import HostRecord, QueuedUrl

STRANGERS = 1_000_000
WANTED = 0.001
_LATER = 1 << 40


def url_ids(start: int, count: int) -> Iterator[bytes]:
    return (number.to_bytes(16, "big") for number in range(start, start + count))


def memory() -> int:
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def bytes_of_a_set(count: int) -> float:
    """Return the bytes per URL of a set of URL strings."""
    draw = Random(1)
    before = memory()
    urls = {f"https://www.example-{draw.randrange(10**5)}.com/articles/{number}/some-words" for number in range(count)}
    return (memory() - before) / len(urls)


def show(name: str, seen: SeenFilter, count: int, set_bytes: float) -> None:
    started = perf_counter()
    wrong = sum(url_id in seen for url_id in url_ids(_LATER, STRANGERS))
    look_up_us = (perf_counter() - started) / STRANGERS * 1e6
    missed = sum(url_id not in seen for url_id in url_ids(0, count))
    theory = -count * math.log(WANTED) / math.log(2) ** 2 / 8
    size = seen.size_in_bytes
    print(f"{name}")
    print(f"  false positives   {wrong / STRANGERS:8.4%}   (wanted: at most 0.1 %); false negatives {missed}")
    print(f"  memory            {size / 1e6:8.1f} MB  {size / theory - 1:+.1%} against theory at 0.1 %")
    saved = 1 - size / set_bytes / count
    print(f"  a set of strings  {set_bytes * count / 1e6:8.1f} MB  the filter is {saved:.1%} smaller (wanted: 97 %)")
    print(f"  a look-up         {look_up_us:8.2f} µs")


def measure_filters(count: int) -> None:
    set_bytes = bytes_of_a_set(count // 10)
    sized = SeenFilter(first_layer_urls=count)
    for url_id in url_ids(0, count):
        sized._layers[-1].add(url_id)
    show(f"{count:,} URLs in a filter of just that size", sized, count, set_bytes)
    grown = SeenFilter()
    for url_id in url_ids(0, count):
        grown.add(url_id)
    show(f"{count:,} URLs in a filter that grew from nothing, {len(grown._layers)} layers", grown, count, set_bytes)


def measure_losses(count: int = 100_000) -> None:
    """Admit URLs through a filter that is far too small."""
    with tempfile.TemporaryDirectory() as name:
        ledger = LocalLedger(Path(name) / "state")
        ledger.open()
        ledger.put_host(HostRecord("h.test", "h.test"))
        ledger._seen._layers = [Bloom(count // 10, WANTED)]
        links = [link_to(f"http://h.test/{number}") for number in range(count)]
        urls = [QueuedUrl(link.url, link.id, link.host, 0, seq, 1) for seq, link in enumerate(links)]
        claimed = admitted = 0
        for url in urls:
            claimed += url.id in ledger._seen
            admitted += len(ledger.admit([url]))
        print(f"{count:,} new URLs through a filter for a tenth of them")
        print(f"  called seen by the filter  {claimed / count:.1%}")
        print(f"  new URLs lost              {count - admitted}")
        print(f"  known URLs admitted again  {len(ledger.admit(urls))}")
        ledger.close()


if __name__ == "__main__":
    measure_filters(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
    measure_losses()
