"""The digests of everything that a filter contains, on disk: to fill it at once, and to enlarge it in pieces.

Table `digests`, digests of 8 bytes one after the other as values, under two kinds of keys:

    filter 1, partition 1, number 8    the digests of one partition; written once, never changed
    filter 1, 255, number 8            new ones of all partitions; the last row is written anew until it is large enough

New digests are written in the same commit as what they stand for. When the rows of new ones contain enough of them,
the same commit distributes them over the partitions and removes those rows. So a commit writes one row and not 64, and
an entry takes about 9 bytes on disk, however few URLs a commit has.

Everything here follows from the table whose keys are in the filter. If the numbers of entries differ (a folder of an
earlier version, or one that such a version has continued), the log is written anew from those keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gossamer.backends.local.partitions import digests, split
from gossamer.backends.local.store import Store

TABLE = "digests"
GROUP_BYTES = 2  # filter and partition
DIGEST_BYTES = 8
# LMDB stores a large value in whole pages of 4096 bytes, with a header of 16. At this threshold the digests of a
# partition need two of them, room for 1,022 digests.
_MAX_NEW_BYTES = 59_000 * DIGEST_BYTES
_ROW_BYTES = 4096 - 16
_PART_BYTES = 8 * 4096 - 16  # the most in a row of a partition: reading it is one slice of work
_KEYS_PER_COMMIT = 500_000
_NEW = b"\xff"
_ALL = 1 << 30


class DigestLog:
    """The rows of one filter."""

    def __init__(
        self, store: Store, filter_name: bytes, *, max_new_bytes: int = _MAX_NEW_BYTES, part_bytes: int = _PART_BYTES
    ) -> None:
        self._store = store
        self._name = filter_name
        self._max_new_bytes = max_new_bytes
        self._part_bytes = part_bytes
        self._number = 1  # of the last row
        self._row = b""  # the last row of new digests, if it is not large enough
        self._new_bytes = 0  # in all rows of new digests

    # -- opening ----------------------------------------------------------------------------------

    def committed(self) -> Iterator[memoryview]:
        """Yield all digests, sorted by partition except the last; a view is valid until the next one."""
        self._number = 1
        self._row = b""
        self._new_bytes = 0
        for key, value in self._store.committed_views(TABLE, self._name):
            self._number = max(self._number, int.from_bytes(key[2:], "big"))
            if key[1:2] == _NEW:
                self._new_bytes += len(value)
                self._row = bytes(value) if len(value) < _ROW_BYTES else b""
            yield value
        if not self._row:
            self._number += 1

    def replace(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        """Write the log anew from the keys that are in the filter, and yield their digests."""
        for key in self._store.committed_keys(TABLE, self._name):
            self._store.put(TABLE, key, None)
        self._number = 1
        self._row = b""
        self._new_bytes = 0
        while ids := b"".join(islice(keys, _KEYS_PER_COMMIT)):
            found = digests(ids)
            self._put_sorted(found)
            self._store.write_now()
            yield found

    # -- changes ----------------------------------------------------------------------------------

    def append(self, found: bytes) -> None:
        """Add new digests to the changes of the next commit."""
        if not found:
            return
        self._row += found
        self._new_bytes += len(found)
        self._store.put(TABLE, self._key(_NEW), self._row)
        if self._new_bytes >= self._max_new_bytes:
            self._distribute()
        elif len(self._row) >= _ROW_BYTES:
            self._row = b""
            self._number += 1

    def _distribute(self) -> None:
        entries = self._store.first(TABLE, self._name + _NEW, b"", _ALL)
        for key, _ in entries:
            self._store.put(TABLE, key, None)
        self._put_sorted(b"".join([value for _, value in entries]))
        self._row = b""
        self._new_bytes = 0

    def _put_sorted(self, found: bytes) -> None:
        for partition, part in enumerate(split(found)):
            for start in range(0, len(part), self._part_bytes):
                self._number += 1
                self._store.put(TABLE, self._key(bytes((partition,))), part[start : start + self._part_bytes])
        self._number += 1

    def _key(self, partition: bytes) -> bytes:
        return self._name + partition + self._number.to_bytes(8, "big")

    # -- reads ------------------------------------------------------------------------------------

    def new(self) -> bytes:
        """Return the digests that are not distributed over the partitions yet."""
        return b"".join([value for _, value in self._store.first(TABLE, self._name + _NEW, b"", _ALL)])

    def after(self, partition: int, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the first row of a partition after a key, with its key."""
        entries = self._store.first(TABLE, self._name + bytes((partition,)), key, 1)
        return entries[0] if entries else None
