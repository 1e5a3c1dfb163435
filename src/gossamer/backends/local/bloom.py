"""Was this URL certainly never seen? A Bloom filter in front of the exact set.

A "no" is certain and saves a look-up in the ledger; a "yes" is wrong at most once in a thousand
and is always checked there, so no new URL is lost. A look-up takes 0.03 µs, an addition 0.15.

**Size.** A Bloom filter cannot be enlarged: a larger one is filled anew. So there are 64 partitions, by digest,
and one is enlarged at a time, by a quarter, from its own digests in the ledger (`digest_log`). Their
capacities are staggered: at any time some are full, some have just been enlarged, and the rest are in
between. A full partition is wrong once in 600, a new one once in 2,700, all together once in 1,200. The
filter takes 4 % more than the bits that theory requires for one in a thousand, and 6 % while a partition is
enlarged. On average a URL is added four more times. The layers before it: `engine/admission/admission`.

**Slices.** `add` does the work: now and then it reads one row of the log, up to 4,094 digests, and
fills them into the new array. That is done long before the next partition is full; meanwhile the old array
is in use, a little too full.

**No digest is missed.** When a partition is started, all digests that are not in rows of the partition are filled
at once: those that were not written (`peek_new`), and those that are not distributed (`new`). Later ones are added
to both arrays. The rows of the partition are read after that, in slices; they are never changed or removed.
Rows that are written meanwhile contain only digests that are in both arrays already.

**With a limit in bytes** the arrays stay as large as it allows. They are filled anew with fewer probes as URLs
are added, so that the filter is wrong as rarely as its bits allow: more and more often, up to always.
Each time costs a look-up in the ledger, 2 µs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, log
from typing import Final, Protocol

from gossamer.backends.local.partitions import Partitions

PARTITIONS: Final = 64
MAX_PROBES: Final = 10
GROWTH: Final = 1.25
# Chosen so that the average over capacities of 1 to 1.25 times the number of URLs is 0.00083.
BITS_PER_URL: Final = 13.4
FIRST_CAPACITY: Final = 512  # of a partition
_MIN_BITS: Final = 8
_MAX_BITS: Final = (1 << 32) - 8
_DIGESTS_PER_ADD: Final = 16  # four are needed to be ready in time


class Digests(Protocol):
    """What the filter needs of its log: see `digest_log`."""

    def committed(self) -> Iterable[bytes | memoryview]:
        """Yield all digests."""
        ...

    def replace(self, keys: Iterator[bytes]) -> Iterable[bytes]:
        """Write the log anew, and yield the digests."""
        ...

    def append(self, found: bytes) -> None:
        """Add digests to the changes of the next commit."""
        ...

    def new(self) -> bytes:
        """Return the digests that are in no partition's rows."""
        ...

    def after(self, partition: int, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the first row of a partition after a key, with its key."""
        ...


class SeenFilter:
    """The filter; never forgets. Without `max_bytes` it grows without bound."""

    def __init__(self, digests: Digests, max_bytes: int | None = None, first_capacity: int = FIRST_CAPACITY) -> None:
        self.partitions = Partitions()  # `in` on it is one call of C
        self._digests = digests
        self._first_capacity = first_capacity
        # The array that replaces another is one more.
        self._max_bits = _MAX_BITS if max_bytes is None else max(_MIN_BITS, 8 * max_bytes // (PARTITIONS + 1) // 8 * 8)
        self._last_key = b""  # of the rows of the growing partition that are in its new array
        self._resize_all(0)

    def open(self, count: int, keys: Iterator[bytes]) -> None:
        """Fill the filter from the log, or from all keys if these are not the digests of so many."""
        if count or self.count:  # else it is as it was made
            self._resize_all(count)
        for found in self._digests.committed():
            self.partitions.load(found)
        if self.count != count:
            self.partitions.clear()
            for found in self._digests.replace(keys):
                self.partitions.load(found)

    def _resize_all(self, count: int) -> None:
        for partition in range(PARTITIONS):
            capacity = self._capacity(partition, count // PARTITIONS)
            self.partitions.start(partition, *self._shape(capacity), capacity)
            self.partitions.finish()

    def _capacity(self, partition: int, count: int) -> int:
        """Return the first of a partition's capacities that is enough."""
        offset = partition / PARTITIONS
        step = max(0, ceil(log(max(count, 1) / self._first_capacity, GROWTH) - offset))
        capacity = int(self._first_capacity * GROWTH ** (step + offset))
        return capacity if capacity >= count else int(capacity * GROWTH)

    def _shape(self, capacity: int) -> tuple[int, int]:
        """Return bits and probes of an array for so many, as precise as the limit allows."""
        wanted = ceil(capacity * BITS_PER_URL / 8) * 8
        if wanted <= self._max_bits:
            return wanted, MAX_PROBES
        return self._max_bits, max(1, min(MAX_PROBES, round(log(2) * self._max_bits / capacity)))

    def add(self, url_id: bytes) -> None:
        """Add an id that is not in the filter's table yet."""
        if self.partitions.add(url_id):
            self._advance()

    def _advance(self) -> None:
        """Do one slice of the work on a partition that is too full."""
        partitions = self.partitions
        if partitions.growing < 0 and not self._start(partitions.overfull()):
            return
        entry = self._digests.after(partitions.growing, self._last_key)
        if entry is not None:
            self._last_key, found = entry
            partitions.fill(found)
            partitions.set_wait(len(found) // 8 // _DIGESTS_PER_ADD)
            return
        partitions.finish()
        if partitions.overfull() >= 0:
            self._advance()

    def _start(self, partition: int) -> bool:
        """Begin to enlarge a partition; return False if its array stays as it is."""
        partitions = self.partitions
        bits, probes, _, count = partitions.shape(partition)
        capacity = self._capacity(partition, count)
        if self._shape(capacity) == (bits, probes):
            partitions.set_capacity(partition, capacity)
            return False
        partitions.start(partition, *self._shape(capacity), capacity)
        partitions.fill(partitions.peek_new())
        partitions.fill(self._digests.new())
        self._last_key = b""
        return True

    def seal(self) -> None:
        """Add the digests since the last call to the changes of the next commit."""
        self._digests.append(self.partitions.take_new())

    @property
    def count(self) -> int:
        """How many were added."""
        return sum(self.partitions.shape(partition)[3] for partition in range(PARTITIONS))

    @property
    def size_in_bytes(self) -> int:
        """Memory of all arrays."""
        return self.partitions.size_in_bytes
