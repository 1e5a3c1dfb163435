"""Which of the stored pages is most similar to this one?

Only pages that repeat no other are stored, so a page that an index returns is the first of its
kind, and similarity does not drift from copy to copy. Pages are numbered from 0 in the order in
which they were stored; the signatures themselves are elsewhere and are read by number (`Read`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from gossamer.core.dedup.bands import band_table
from gossamer.core.dedup.minhash import LANES, SIGNATURE_BYTES, equal_lanes
from gossamer.core.dedup.scheme import SCHEMES, NearDup
from gossamer.core.dedup.simhash import BITS

MIN_SIMILARITY: Final = 0.9
MAX_DISTANCE: Final = 3

Read: TypeAlias = Callable[[int], bytes]


class Match(Struct, frozen=True, gc=False):
    """A stored page, and the share of its signature that is equal."""

    number: int
    similarity: float


class NearIndex(Protocol):
    """Finds similar signatures. `nearest` returns the most similar page; of equally similar ones, the first."""

    signature_bytes: int

    def nearest(self, signature: bytes, read: Read) -> Match | None:
        """Return the page that a signature repeats, or None."""
        ...

    def add(self, number: int, signature: bytes) -> None:
        """Add a page."""
        ...

    def add_many(self, first: int, records: bytes, stride: int) -> None:
        """Add pages with consecutive numbers; each record ends with a signature."""
        ...

    def size_in_bytes(self) -> int:
        """Return the memory used."""
        ...


class MinHashIndex:
    """By 128 lanes: candidates by bands, then the share of equal lanes. 200 bytes and 5 µs per page."""

    signature_bytes = SIGNATURE_BYTES

    def __init__(self) -> None:
        table = band_table()
        self.add = table.add
        self.add_many = table.add_many
        self.size_in_bytes = table.size_in_bytes
        self._candidates = table.candidates

    def nearest(self, signature: bytes, read: Read) -> Match | None:
        candidates = self._candidates(signature)
        if not candidates:
            return None
        equal, number = max((equal_lanes(signature, read(number)), -number) for number in candidates)
        similarity = equal / LANES
        return Match(-number, similarity) if similarity >= MIN_SIMILARITY else None


class SimHashIndex:
    """By 64 bits: two that differ in at most 3 share one of four blocks of 16. 28 bytes per page.

    Pages with the same block are chained, newest first, through `_before`: four numbers per page.
    """

    signature_bytes = BITS // 8
    _BLOCKS: Final = 4
    _BLOCK_BITS: Final = 16

    def __init__(self) -> None:
        self._signatures = array("Q")
        self._numbers = array("I")
        self._before = array("I")
        self._newest = array("I", bytes(4 * self._BLOCKS << self._BLOCK_BITS))  # entry + 1; 0: none

    def _heads(self, value: int) -> list[int]:
        mask = (1 << self._BLOCK_BITS) - 1
        return [block << self._BLOCK_BITS | value >> self._BLOCK_BITS * block & mask for block in range(self._BLOCKS)]

    def nearest(self, signature: bytes, read: Read) -> Match | None:
        value = int.from_bytes(signature, "little")
        best: tuple[int, int] | None = None
        for block, head in enumerate(self._heads(value)):
            entry = self._newest[head]
            while entry:
                distance = (self._signatures[entry - 1] ^ value).bit_count()
                if distance <= MAX_DISTANCE and (best is None or (distance, entry) < best):
                    best = distance, entry
                entry = self._before[self._BLOCKS * (entry - 1) + block]
        return Match(self._numbers[best[1] - 1], 1 - best[0] / BITS) if best is not None else None

    def add(self, number: int, signature: bytes) -> None:
        value = int.from_bytes(signature, "little")
        self._signatures.append(value)
        self._numbers.append(number)
        for head in self._heads(value):
            self._before.append(self._newest[head])
            self._newest[head] = len(self._signatures)

    def add_many(self, first: int, records: bytes, stride: int) -> None:
        for number, end in enumerate(range(stride, len(records) + 1, stride), first):
            self.add(number, records[end - self.signature_bytes : end])

    def size_in_bytes(self) -> int:
        arrays = (self._signatures, self._numbers, self._before, self._newest)
        return sum(len(values) * values.itemsize for values in arrays)


class NewestIndex:
    """Only the newest of many pages: two indexes, of which the newer is filled; when it is full, the older is dropped.

    So between half of `max_pages` and all of them are compared, and no page is moved. A look-up costs two.
    """

    def __init__(self, new_index: Callable[[], NearIndex], max_pages: int) -> None:
        self._new_index = new_index
        self._max_in_one = max(1, max_pages // 2)
        self._older: NearIndex | None = None
        self._newer = new_index()
        self._in_newer = 0
        self.signature_bytes = self._newer.signature_bytes
        self.has_forgotten = False

    def nearest(self, signature: bytes, read: Read) -> Match | None:
        found = self._newer.nearest(signature, read)
        older = self._older.nearest(signature, read) if self._older is not None else None
        # Of equally similar pages the first, which is in the older index.
        return found if older is None or (found is not None and found.similarity > older.similarity) else older

    def add(self, number: int, signature: bytes) -> None:
        if self._in_newer >= self._max_in_one:
            self._turn()
        self._newer.add(number, signature)
        self._in_newer += 1

    def forget_older(self) -> None:
        self.has_forgotten |= self._older is not None
        self._older = None

    def _turn(self) -> None:
        self.forget_older()
        self._older, self._newer, self._in_newer = self._newer, self._new_index(), 0

    def add_many(self, first: int, records: bytes, stride: int) -> None:
        while records:
            if self._in_newer >= self._max_in_one:
                self._turn()
            count = min(self._max_in_one - self._in_newer, len(records) // stride)
            self._newer.add_many(first, records[: count * stride], stride)
            self._in_newer += count
            first = first + count
            records = records[count * stride :]

    def size_in_bytes(self) -> int:
        return self._newer.size_in_bytes() + (self._older.size_in_bytes() if self._older is not None else 0)


def index_of(edition: str) -> NearIndex:
    return SimHashIndex() if edition == SCHEMES[NearDup.SIMHASH].edition else MinHashIndex()
