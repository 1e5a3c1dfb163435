"""Tables of bytes on LMDB, with the changes of the next commit laid over them.

Invariants: a read sees every change at once, committed or not; a commit is all or nothing.
`seal` closes the changes so far and returns the function that writes them: that function
is the only thing that writes or waits for the disk, and may run in another thread while
reads and further changes go on. One commit is under way at a time.

Changes are kept by table and group (the first 8 bytes of the key, a host's id, where a
table is read by host), so that reading a host's part costs what that host has changed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import lmdb

from gossamer import failpoints
from gossamer.errors import CorruptFolderError, DiskFullError, GossamerError

MAP_BYTES: Final = 1 << 40  # address space, not disk: the file is sparse and grows as it is used
GROUP_BYTES: Final = 8
MIN_FREE_BYTES: Final = 4 << 20
_PUT_AT_ONCE: Final = 128
_SLICE: Final = 2000

Item: TypeAlias = tuple[bytes, bytes]
Group: TypeAlias = dict[bytes, bytes | None]  # None removes the entry
Changes: TypeAlias = dict[str, dict[bytes, Group]]


class Store:
    """Named tables in one LMDB environment."""

    def __init__(
        self,
        folder: Path,
        tables: tuple[str, ...],
        grouped: frozenset[str],
        *,
        appended: frozenset[str] = frozenset(),
        is_readonly: bool,
    ) -> None:
        self._folder = folder
        self._names = tables
        self._grouped = grouped
        self._appended = appended  # each new key is the greatest: pages of the tree are filled to the brim
        self._is_readonly = is_readonly
        self._env: lmdb.Environment | None = None
        self._tables: dict[str, Any] = {}
        self._pending = self._no_changes()
        self._writing: Changes | None = None

    def _no_changes(self) -> Changes:
        return {name: {} if name in self._grouped else {b"": {}} for name in self._names}

    def open(self) -> None:
        """Open the environment, or make it."""
        try:
            self._env = lmdb.open(
                str(self._folder),
                map_size=MAP_BYTES,
                max_dbs=len(self._names),
                readonly=self._is_readonly,
                create=not self._is_readonly,
                max_readers=512,
                readahead=False,
            )
            for name in self._names:
                # A folder of an earlier version lacks the newer tables until a crawl goes on in it: they are empty.
                with suppress(lmdb.NotFoundError):
                    self._tables[name] = self._env.open_db(name.encode(), create=not self._is_readonly)
        except lmdb.Error as error:
            raise CorruptFolderError(f"{self._folder}: cannot open the ledger: {error}") from error

    def close(self) -> None:
        """Let go; what is not committed is lost."""
        if self._env is not None:
            self._env.close()
            self._env = None

    @property
    def is_open(self) -> bool:
        """Tell whether it can be used."""
        return self._env is not None

    # -- reads ------------------------------------------------------------------------------------

    def _begin(self, table: str) -> Any:  # noqa: ANN401 - the stub says bytes or memoryview of everything
        assert self._env is not None
        return self._env.begin(self._tables[table])

    def _group_of(self, table: str, key: bytes) -> bytes:
        return key[:GROUP_BYTES] if table in self._grouped else b""

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a value, or None."""
        group = self._group_of(table, key)
        # `_writing` is read once, and before the transaction begins: the thread that writes lets go of it
        # when its commit is done, so whoever does not find it sees the commit.
        for changes in (self._pending, self._writing):
            if changes is not None:
                changed = changes[table].get(group)
                if changed is not None and key in changed:
                    return changed[key]
        if table not in self._tables:
            return None
        with self._begin(table) as txn:
            value: bytes | None = txn.get(key)
            return value

    def first(self, table: str, prefix: bytes, after: bytes, count: int) -> list[Item]:
        """Return the first entries with a prefix beyond a key, in order."""
        changed = self._changed(table, prefix)
        entries = [(key, value) for key, value in changed.items() if value is not None and key > after]
        if table not in self._tables:
            return []
        with self._begin(table) as txn:
            entries += _some(_forwards(txn.cursor(), prefix, after), changed, count)
        entries.sort()
        return entries[:count]

    def last(self, table: str, prefix: bytes, count: int) -> list[Item]:
        """Return the last entries with a prefix, last first."""
        changed = self._changed(table, prefix)
        entries = [(key, value) for key, value in changed.items() if value is not None]
        if table not in self._tables:
            return []
        with self._begin(table) as txn:
            entries += _some(_backwards(txn.cursor(), prefix), changed, count)
        entries.sort(reverse=True)
        return entries[:count]

    def _changed(self, table: str, prefix: bytes) -> Group:
        """Return what is changed in a group (or in a table without groups), newest last."""
        group = prefix[:GROUP_BYTES] if table in self._grouped else b""
        changed: Group = {}
        for changes in (self._writing, self._pending):
            if changes is not None:
                changed.update(changes[table].get(group, {}))
        return changed

    def committed(self, table: str, prefix: bytes = b"") -> Iterator[Item]:
        """Yield committed entries in order, in slices: no read transaction lasts."""
        after = b""
        while table in self._tables:
            with self._begin(table) as txn:
                items = _forwards(txn.cursor(), prefix, after)
                batch = [item for item, _ in zip(items, range(_SLICE), strict=False)]
            yield from batch
            if len(batch) < _SLICE:
                return
            after = batch[-1][0]

    def committed_keys(self, table: str) -> Iterator[bytes]:
        """Yield all committed keys within one read transaction: for opening, when nobody writes."""
        if table not in self._tables:
            return
        with self._begin(table) as txn:
            keys: Iterator[bytes] = txn.cursor().iternext(keys=True, values=False)
            yield from keys

    def committed_count(self, table: str) -> int:
        """Return how many entries are committed."""
        assert self._env is not None
        if table not in self._tables:
            return 0
        with self._env.begin() as txn:
            count: int = txn.stat(self._tables[table])["entries"]
            return count

    # -- changes ----------------------------------------------------------------------------------

    def put(self, table: str, key: bytes, value: bytes | None) -> None:
        """Set a value with the next commit; None removes the key."""
        groups = self._pending[table]
        if table not in self._grouped:
            groups[b""][key] = value
            return
        group = key[:GROUP_BYTES]
        changed = groups.get(group)
        if changed is None:
            changed = groups[group] = {}
        changed[key] = value

    def pending_count(self, table: str) -> int:
        """Return how many changes of a table without groups wait for the next commit."""
        return len(self._pending[table][b""])

    def changed_keys(self, table: str) -> list[bytes]:
        """Return the keys among the changes that are not committed."""
        both = [changes for changes in (self._writing, self._pending) if changes is not None]
        return [key for changes in both for changed in changes[table].values() for key in changed]

    def seal(self) -> Callable[[], None]:
        """Close the changes so far; return the function that writes them."""
        if self._writing is not None:
            raise RuntimeError("the commit before has not ended")
        changes, self._pending = self._pending, self._no_changes()
        self._writing = changes
        return lambda: self._write(changes)

    def _write(self, changes: Changes) -> None:
        assert self._env is not None
        failpoints.reach("before_commit")
        try:
            with self._env.begin(write=True) as txn:
                for name, groups in changes.items():
                    self._write_table(txn, name, groups)
                failpoints.reach("in_commit")
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.MapFullError) or _is_disk_full(error, self._folder):
                raise DiskFullError(f"{self._folder}: no room for the ledger; free some space and resume") from error
            raise GossamerError(f"{self._folder}: the ledger cannot be written: {error}") from error
        self._writing = None
        failpoints.reach("after_commit")

    def _write_table(self, txn: lmdb.Transaction, name: str, groups: dict[bytes, Group]) -> None:
        items = [(key, value) for changed in groups.values() for key, value in changed.items() if value is not None]
        if len(items) < sum(map(len, groups.values())):
            gone = [key for changed in groups.values() for key, value in changed.items() if value is None]
            for key in sorted(gone):
                txn.delete(key, db=self._tables[name])
        if items:
            items.sort()  # neighbours share pages of the tree
            with txn.cursor(self._tables[name]) as cursor:
                # A call keeps the GIL: a few at a time, so that the event loop gets its turn in between.
                for start in range(0, len(items), _PUT_AT_ONCE):
                    cursor.putmulti(items[start : start + _PUT_AT_ONCE], append=name in self._appended)


def _some(items: Iterator[Item], changed: Group, count: int) -> list[Item]:
    """Return the first committed entries that no change speaks of."""
    kept: list[Item] = []
    for key, value in items:
        if key not in changed:
            kept.append((key, value))
            if len(kept) == count:
                break
    return kept


def _forwards(cursor: Any, prefix: bytes, after: bytes) -> Iterator[Item]:  # noqa: ANN401 - lmdb's cursor
    start = max(prefix, after)
    if not (cursor.set_range(start) if start else cursor.first()):
        return
    for key, value in cursor.iternext():
        if not key.startswith(prefix):
            return
        if key > after or not after:
            yield key, value


def _backwards(cursor: Any, prefix: bytes) -> Iterator[Item]:  # noqa: ANN401 - lmdb's cursor
    if not (cursor.set_range(prefix + b"\xff" * 32) or cursor.last()):
        return
    for key, value in cursor.iterprev():
        if key.startswith(prefix):
            yield key, value
        elif key < prefix:
            return


def _is_disk_full(error: Exception, folder: Path) -> bool:
    if "No space left" in str(error) or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT):
        return True
    # LMDB calls a write that came out short an input/output error.
    free = os.statvfs(folder)
    return "Input/output error" in str(error) and free.f_bavail * free.f_frsize < MIN_FREE_BYTES
