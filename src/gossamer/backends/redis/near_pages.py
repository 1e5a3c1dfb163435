"""Pages of other nodes that a commit's pages nearly repeat, on Redis Cluster: two round trips for all of them.

The rules are those of `core/dedup/shared_pages`; on one server `lua/pages.lua` follows them inside the commit. Two
nodes that commit pages like each other at the same time both look before the other has written: both are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gossamer.backends.redis import ranges
from gossamer.backends.redis.cluster_calls import Call, ClusterCalls
from gossamer.backends.redis.ranges import KeyRanges
from gossamer.core.dedup.shared_pages import Nearest, NearPages, bands_of
from gossamer.model.records import UrlId

ID = 16


class StoredNearPages:
    """Signatures of all nodes' pages, as far as those of one commit need them."""

    def __init__(self, calls: ClusterCalls, keys: KeyRanges, signatures: Mapping[UrlId, bytes]) -> None:
        self._calls = calls
        self._keys = keys
        bands = {page: bands_of(signature) for page, signature in signatures.items()}
        near = NearPages(self._pages_by_band({band for some in bands.values() for band in some}))
        ranked = {other for page in signatures for other in near.ranked(page, bands[page])}
        near.signatures = self._stored_signatures(ranked | signatures.keys())
        self.similar: list[Nearest] = []
        self.added: dict[UrlId, Sequence[bytes]] = {}  # pages that repeat no other, with their bands
        for page, signature in signatures.items():
            if found := near.nearest(page, signature, bands[page]):
                self.similar.append(found)
            elif near.add(page, signature, bands[page]):
                self.added[page] = bands[page]

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


def signatures_key(page: UrlId) -> str:
    """Return the hash with a page's signature."""
    return f"signatures:{page[-1:].hex()}"
