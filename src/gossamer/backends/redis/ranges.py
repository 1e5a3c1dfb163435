"""Which keys of a crawl are together on Redis Cluster: the control keys, and 64 ranges.

A range has 64 shards with their rows and messages, and 1/64 of the contents, signatures and bands of pages, by the
first or last byte of their keys. All keys of a range have its hash tag, so one script can change them.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.core.url.identity import SHARD_COUNT
from gossamer.model.records import UrlId

SHARD_BITS = 6
PART_BITS = 2  # 256 hashes of contents: 4 per range
RANGES = range(SHARD_COUNT >> SHARD_BITS)


class KeyRanges:
    """The prefixes of a crawl's keys."""

    def __init__(self, name: str) -> None:
        self.control = f"gossamer:{name}:{{{name}}}:"
        self._prefixes = [f"gossamer:{name}:{{{name}/{number}}}:" for number in RANGES]

    def prefix(self, number: int) -> str:
        """Return the prefix of the keys of a range."""
        return self._prefixes[number]


def of_shard(shard: int) -> int:
    """Return the range of a shard."""
    return shard >> SHARD_BITS


def of_content(key: bytes) -> int:
    """Return the range of a content hash, or of a band of a signature."""
    return key[0] >> PART_BITS


def of_signature(page: UrlId) -> int:
    """Return the range of a page's signature."""
    return page[-1] >> PART_BITS


def journals_of(servers: Mapping[int, str], of_control: str) -> dict[str, int]:
    """Return for each server the range that has the journal of what it stores, on another server if there is one.

    `servers` are those of the ranges, `of_control` the one of the control keys.
    """
    first: dict[str, int] = {}
    for number, server in servers.items():
        first.setdefault(server, number)
    ring = sorted(first)
    journals = {server: first[after] for server, after in zip(ring, [*ring[1:], ring[0]], strict=True)}
    journals.setdefault(of_control, first[ring[0]])
    return journals
