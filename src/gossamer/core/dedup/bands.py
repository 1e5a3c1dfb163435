"""Which pages share a band of their signatures? Sixteen bands of eight lanes.

Two texts with a Jaccard similarity s share at least one band with probability 1 - (1 - s**8)**16:
0.9999 at 0.9, 0.64 at 0.7, 0.06 at 0.5. A page that shares one is a candidate, to be compared in full.

The table is in memory only. An entry is 8 bytes: a fingerprint of the band's hash, and the
page's number + 1; empty slots are 0. It is in the slot that its fingerprint, scaled to the
capacity, points to, or in the next free slot. `SHARDS` such tables grow one by one, so that no
insertion takes long (0.2 ms in C, 1 to 2 ms here, with a million pages). 150 to 250 bytes per page.

A band value that many pages share is boilerplate: only the latest `MAX_EQUAL` pages are stored, so
that a page is found by its variants, which come soon after, however large the site.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Final

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.core.dedup.minhash import SIGNATURE_BYTES
from gossamer.foundation.kernel import Bands, kernel

BANDS: Final = 16
MAX_EQUAL: Final = 32
MAX_CANDIDATES: Final = 16
SHARDS: Final = 1 << 12
_BAND_BYTES: Final = SIGNATURE_BYTES // BANDS
_FIRST_CAPACITY: Final = 16


class PlainBandTable:
    """The table in pure Python."""

    def __init__(self) -> None:
        self._shards = [array("Q") for _ in range(SHARDS)]
        self._used = array("I", bytes(4 * SHARDS))

    def add(self, number: int, signature: bytes, /) -> None:
        for shard, fingerprint in _shards_and_fingerprints(signature):
            entry = fingerprint << 32 | (number + 1)
            found = self._pages(shard, fingerprint)
            if len(found) == MAX_EQUAL:
                _, oldest = min(found)
                self._shards[shard][oldest] = entry
                continue
            if 5 * (self._used[shard] + 1) > 4 * len(self._shards[shard]):
                self._grow(shard)
            _put(self._shards[shard], entry)
            self._used[shard] += 1

    def add_many(self, first: int, records: bytes, stride: int, /) -> None:
        if stride < SIGNATURE_BYTES or len(records) % stride:
            raise ValueError("records of equal length, each ending with a signature, are added")
        for number, end in enumerate(range(stride, len(records) + 1, stride), first):
            self.add(number, records[end - SIGNATURE_BYTES : end])

    def candidates(self, signature: bytes, /) -> list[int]:
        """Return the pages that share bands: those that share the most first, then by number."""
        shared = Counter(number for band in _shards_and_fingerprints(signature) for number, _ in self._pages(*band))
        return sorted(shared, key=lambda number: (-shared[number], number))[:MAX_CANDIDATES]

    def size_in_bytes(self) -> int:
        return sum(8 * len(entries) for entries in self._shards)

    def _pages(self, shard: int, fingerprint: int) -> list[tuple[int, int]]:
        """Return the numbers of the pages in a band, and their slots."""
        entries = self._shards[shard]
        found: list[tuple[int, int]] = []
        if not entries:
            return found
        slot = fingerprint * len(entries) >> 32
        while (entry := entries[slot]) and len(found) < MAX_EQUAL:
            if entry >> 32 == fingerprint:
                found.append(((entry & 0xFFFFFFFF) - 1, slot))
            slot = slot + 1 if slot + 1 < len(entries) else 0
        return found

    def _grow(self, shard: int) -> None:
        entries = self._shards[shard]
        larger = array("Q", bytes(8 * (len(entries) + len(entries) // 2 or _FIRST_CAPACITY)))
        for entry in entries:
            if entry:
                _put(larger, entry)
        self._shards[shard] = larger


def band_keys(signature: bytes) -> list[bytes]:
    """Return 8 bytes per band, the same for signatures that share it: for an index of the pages of many nodes."""
    bands = range(BANDS)
    return [xxh3_64_digest(signature[band * _BAND_BYTES : (band + 1) * _BAND_BYTES], band) for band in bands]


def _shards_and_fingerprints(signature: bytes) -> list[tuple[int, int]]:
    """Return shard and fingerprint of each band."""
    if len(signature) != SIGNATURE_BYTES:
        raise ValueError(f"a MinHash signature has {SIGNATURE_BYTES} bytes, not {len(signature)}")
    hashes = [
        xxh3_64_intdigest(signature[band * _BAND_BYTES : (band + 1) * _BAND_BYTES], band) for band in range(BANDS)
    ]
    return [(value & SHARDS - 1, value >> 32) for value in hashes]


def _put(entries: array[int], entry: int) -> None:
    slot = (entry >> 32) * len(entries) >> 32
    while entries[slot]:
        slot = slot + 1 if slot + 1 < len(entries) else 0
    entries[slot] = entry


def band_table() -> Bands:
    """Return an empty table, the compiled one if it is available."""
    return kernel.band_table() if kernel is not None else PlainBandTable()
