"""Are near copies found that two nodes fetch, on every shared ledger? Planted pairs, one page of each on each node.

    python -m benchmarks.near_pairs [--pairs 2000] [--only redis,postgresql,kafka]

Two nodes commit their pages at the same time, in commits of fifty, each in an order of its own. Of every pair the one
that is committed later must be reported as similar to the other. Pairs are counted by the similarity that their texts
have (Jaccard, of runs of words, as the signatures estimate it); below 0.9 pages are not called similar.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.servers import engines
from tests.servers.kafka_cassandra import running_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import running

from gossamer.backends.registry import open_shared
from gossamer.core.dedup.minhash import LANES, equal_lanes, minhash
from gossamer.model.figures import Totals
from gossamer.model.records import UrlId
from gossamer.model.state import CrawlRecord, Terms
from gossamer.ports.shared_ledger import Commit, NodeId

WORDS = 600
PAGES_PER_COMMIT = 50
BANDS = (0.95, 0.9)  # similarity from which on pairs are counted together


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    program = engines.redis_or_valkey()
    with running(program, folder / "redis") as server:
        yield f"{server.url}/pairs"


@contextmanager
def _postgresql(_: Path) -> Iterator[str]:
    with running_postgres() as server:
        yield f"{server.url}/pairs"


@contextmanager
def _kafka(folder: Path) -> Iterator[str]:
    with running_both(folder) as both:
        yield both.prepared("pairs")


LEDGERS = {"redis": _redis, "postgresql": _postgresql, "kafka": _kafka}


def main() -> int:
    """Count what is found on each ledger."""
    parser = argparse.ArgumentParser(prog="near_pairs", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--only", default=",".join(LEDGERS))
    arguments = parser.parse_args()
    pairs = _pairs(arguments.pairs, random.Random(7))
    for name in arguments.only.split(","):
        with tempfile.TemporaryDirectory(prefix="gossamer-pairs-") as scratch, LEDGERS[name](Path(scratch)) as url:
            found = _found(url, pairs)
        print(f"{name}: " + "; ".join(_told(pairs, found)), flush=True)
    return 0


def _pairs(count: int, rng: random.Random) -> list[tuple[bytes, bytes]]:
    """Return signatures of pairs of texts, of which some words differ."""
    made = []
    for number in range(count):
        words = [f"{number}w{rng.randrange(10_000)}" for _ in range(WORDS)]
        changed = list(words)
        for place in rng.sample(range(WORDS), rng.randrange(0, 25)):
            changed[place] = f"x{rng.randrange(10_000)}"
        made.append((minhash(" ".join(words)), minhash(" ".join(changed))))
    return made


def _page(number: int, side: int) -> UrlId:
    return (number * 2654435761 % (1 << 32)).to_bytes(4, "big") + number.to_bytes(8, "big") + side.to_bytes(4, "big")


def _found(url: str, pairs: Sequence[tuple[bytes, bytes]]) -> set[int]:
    """Return the pairs of which one page was reported as similar to the other."""
    ledgers = [open_shared(url) for _ in range(2)]
    ledgers[0].start(CrawlRecord(Terms(1, "2", "rules"), b""))

    def commit_all(side: int) -> set[int]:
        ledger, node = ledgers[side], NodeId(f"n{side}", "1")
        ledger.join(node, "", 600.0)
        order = random.Random(side).sample(range(len(pairs)), len(pairs))
        found: set[int] = set()
        for number, start in enumerate(range(0, len(order), PAGES_PER_COMMIT), 1):
            some = {_page(pair, side): pairs[pair][side] for pair in order[start : start + PAGES_PER_COMMIT]}
            known = ledger.commit(node, Commit(number, Totals(), signatures=some))
            found |= {_number(page) for page, other in known.similar.items() if _number(page) == _number(other.url_id)}
        return found

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(commit_all, range(2)))
    for ledger in ledgers:
        ledger.close()
    return set().union(*results)


def _number(page: UrlId) -> int:
    return int.from_bytes(page[4:12], "big")


def _told(pairs: Sequence[tuple[bytes, bytes]], found: set[int]) -> Iterator[str]:
    counts: Mapping[float, Counter[bool]] = {band: Counter() for band in BANDS}
    for number, (one, other) in enumerate(pairs):
        similarity = equal_lanes(one, other) / LANES
        band = next((each for each in BANDS if similarity >= each), None)
        if band is not None:
            counts[band][number in found] += 1
    for band, counted in counts.items():
        if total := counted.total():
            yield f"from {band:g} on {counted[True]} of {total} ({counted[True] / total:.1%})"


if __name__ == "__main__":
    sys.exit(main())
