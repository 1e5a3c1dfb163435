"""Pages of other nodes that a commit's pages nearly repeat, on Redis Cluster: two round trips for all of them.

The rules are those of `lua/pages.lua`, which does the same on one server inside the commit. Two nodes that commit
pages like each other at the same time both look before the other has written: both are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gossamer.backends.redis import ranges
from gossamer.backends.redis.cluster_calls import Call, ClusterCalls
from gossamer.backends.redis.ranges import KeyRanges
from gossamer.core.dedup.bands import band_keys
from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES, equal_lanes
from gossamer.records import UrlId

MAX_EQUAL, MAX_COMPARED, ID = 4, 4, 16
Nearest = tuple[UrlId, UrlId, int]  # page, the one that it nearly repeats, equal lanes


class NearPages:
    """Signatures of all nodes' pages, as far as those of one commit need them."""

    def __init__(self, calls: ClusterCalls, keys: KeyRanges, signatures: Mapping[UrlId, bytes]) -> None:
        self._calls = calls
        self._keys = keys
        self._bands = {page: band_keys(signature) for page, signature in signatures.items()}
        self._pages = self._pages_by_band({band for bands in self._bands.values() for band in bands})
        ranked = {other for page in signatures for other in self._ranked(page)}
        self._known = self._stored_signatures(ranked | signatures.keys())
        self.similar: list[Nearest] = []
        self.added: dict[UrlId, list[bytes]] = {}  # pages that repeat no other, with their bands
        for page, signature in signatures.items():
            self._add(page, signature)

    def _pages_by_band(self, bands: set[bytes]) -> dict[bytes, list[UrlId]]:
        by_range: dict[int, list[bytes]] = {}
        for band in bands:
            by_range.setdefault(ranges.of_content(band), []).append(band)
        asked: list[Call] = [("candidates", self._keys.prefix(each), ["", *some]) for each, some in by_range.items()]
        found: dict[bytes, list[UrlId]] = {}
        for some, answers in zip(by_range.values(), self._calls.run_many(asked), strict=True):
            for band, pages in zip(some, answers, strict=True):
                found[band] = [pages[start : start + ID] for start in range(0, len(pages), ID)]
        return found

    def _stored_signatures(self, pages: Iterable[UrlId]) -> dict[UrlId, bytes]:
        by_key: dict[str, list[UrlId]] = {}
        for page in pages:
            by_key.setdefault(self._keys.prefix(ranges.of_signature(page)) + signatures_key(page), []).append(page)
        answers = self._calls.pipelined([("HMGET", key, *some) for key, some in by_key.items()])
        return {
            page: signature
            for some, found in zip(by_key.values(), answers, strict=True)
            for page, signature in zip(some, found, strict=True)
            if signature is not None
        }

    def _ranked(self, page: UrlId) -> list[UrlId]:
        """Return the pages that share the most bands with one."""
        shared = Counter(other for band in self._bands[page] for other in self._pages[band] if other != page)
        return sorted(shared, key=lambda other: (-shared[other], other))[:MAX_COMPARED]

    def _add(self, page: UrlId, signature: bytes) -> None:
        best, lanes = b"", 0
        for other in self._ranked(page):
            known = self._known.get(other)
            equal = equal_lanes(signature, known) if known else 0
            if equal > lanes:
                best, lanes = other, equal
        if lanes >= MIN_SIMILARITY * LANES:
            self.similar.append((page, best, lanes))
        elif page not in self._known:
            self._known[page] = signature
            self.added[page] = self._bands[page]
            for band in self._bands[page]:
                self._pages[band] = [*self._pages[band], page][-MAX_EQUAL:]


def signatures_key(page: UrlId) -> str:
    """Return the hash with a page's signature."""
    return f"signatures:{page[-1:].hex()}"
