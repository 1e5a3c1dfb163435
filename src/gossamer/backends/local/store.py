"""Tables of bytes on LMDB, with the changes of the next commit laid over them.

**Overlay and seal.** A change is at first only in memory, in `_pending`, and every read looks there
before it reads LMDB. So changes are visible at once and cost no disk I/O. `seal` moves `_pending` to
`_writing` and creates an empty `_pending`; the write that follows runs in another thread, in one
LMDB transaction, while the event loop continues to read and change. During that time a read must
look at three layers, newest first: `_pending`, `_writing`, the committed tables.

Why no read can miss a change: the writing thread sets `_writing` to None only after its commit has
returned. A reader fetches the reference `_writing` once and begins its LMDB transaction after that.
If it got the layer, it reads from the layer, whether the commit has ended since or not: both have
the same values. If it got None, the commit had ended before, so the transaction that it begins
now sees it. The reverse order, transaction first, could begin before the commit and find None
after it: the change would be invisible to that read. Only one commit is in progress at a time,
since there is only one `_writing`.

If a write fails, `_writing` stays: reads still see its changes, and nothing can be sealed again.
The crawl ends then, with what was committed before.

Changes are stored per table and group (the first bytes of the key, as many as `groups` specifies, if
a table is read by host or by shard), so that the cost of reading a group depends on its changes only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

import lmdb

from gossamer.backends.local import damage
from gossamer.core.ledger.rows import SHARDED, UNSHARDED
from gossamer.core.url.identity import shard_of
from gossamer.foundation import failpoints
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError, DiskFullError, GossamerError
from gossamer.model.state import Row

DATA_FILE: Final = "data.mdb"
MAP_BYTES: Final = 1 << 40  # address space, not disk: the file is sparse and grows as it is used
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
        groups: Mapping[str, int],
        *,
        appended: frozenset[str] = frozenset(),
        is_readonly: bool,
        is_copy: bool = False,
    ) -> None:
        self._folder = folder
        self._names = tables
        self._group_bytes = groups  # by table: how many bytes of a key are its group
        self._appended = appended  # each new key is the greatest: pages of the tree are filled completely
        self._is_readonly = is_readonly
        self._is_copy = is_copy  # of what is durable elsewhere: nothing waits for the disk
        self._env: lmdb.Environment | None = None
        self._changing = Lock()
        self._tables: dict[str, Any] = {}
        self._pending = self._no_changes()
        self._writing: Changes | None = None

    def _no_changes(self) -> Changes:
        return {name: {} if name in self._group_bytes else {b"": {}} for name in self._names}

    def open(self) -> None:
        """Open or create the environment, and open the existing tables."""
        path = self._folder / DATA_FILE
        if self._is_readonly and (not path.exists() or not path.stat().st_size):
            raise CorruptFolderError(f"{path}: the ledger is empty{HOW_TO_REBUILD}")
        damage.watch(self._folder)
        try:
            self._env = lmdb.open(
                str(self._folder),
                map_size=MAP_BYTES,
                max_dbs=len(self._names),
                readonly=self._is_readonly,
                create=not self._is_readonly,
                max_readers=512,
                readahead=False,
                sync=not self._is_copy,
            )
            self._check_length()
            self._open_tables()
        except lmdb.Error as error:
            raise CorruptFolderError(f"{self._folder}: cannot open the ledger: {error}{HOW_TO_REBUILD}") from error

    def _check_length(self) -> None:
        """Raise if the file is shorter than its tree: reading what is missing would end the process (SIGBUS)."""
        assert self._env is not None
        expected = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        length = (self._folder / DATA_FILE).stat().st_size
        if length < expected:
            self.close()
            raise CorruptFolderError(
                f"{self._folder / DATA_FILE}: {length} bytes, but the ledger needs {expected}: the file was cut off"
                f"{HOW_TO_REBUILD}"
            )

    def create_tables(self) -> None:
        """Create missing tables. For a reader they are empty: an older version did not have them."""
        assert self._env is not None
        # In one transaction: 29 of their own would be as many syncs of the file, and 3 ms of CPU.
        with self._env.begin(write=True) as change:
            for name in self._names:
                if name not in self._tables:
                    self._tables[name] = self._env.open_db(name.encode(), change)

    def _open_tables(self) -> None:
        assert self._env is not None
        for name in self._names:
            with suppress(lmdb.NotFoundError):
                self._tables[name] = self._env.open_db(name.encode(), create=False)

    def close(self) -> None:
        """Close the environment; uncommitted changes are lost. Waits for a thread that writes."""
        with self._changing:
            if self._env is not None:
                self._env.close()
                self._env = None

    @property
    def is_open(self) -> bool:
        """Return whether it can be used."""
        return self._env is not None

    # -- reads ------------------------------------------------------------------------------------

    def _begin(self, table: str) -> Any:  # noqa: ANN401 - the stub declares bytes or memoryview everywhere
        assert self._env is not None
        return self._env.begin(self._tables[table])

    def _group_of(self, table: str, key: bytes) -> bytes:
        return key[: self._group_bytes.get(table, 0)]

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a value, or None."""
        group = self._group_of(table, key)
        # The tuple reads `_writing` once, before the transaction begins: see the module docstring.
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
        """Return the first entries with a prefix after a key, in order."""
        changed = self._changed(table, prefix)
        entries = [(key, value) for key, value in changed.items() if value is not None and key > after]
        if len(prefix) > self._group_bytes.get(table, 0):
            entries = [entry for entry in entries if entry[0].startswith(prefix)]
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
        group = self._group_of(table, prefix)
        changed: Group = {}
        for changes in (self._writing, self._pending):
            if changes is not None:
                changed.update(changes[table].get(group, {}))
        return changed

    def committed(
        self, table: str, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None
    ) -> Iterator[Item]:
        """Yield committed entries with a prefix, or from `start` up to `end`, in order.

        In slices: no read transaction stays open for long.
        """
        first = start
        after = b""
        while table in self._tables:
            with self._begin(table) as txn:
                items = _forwards(txn.cursor(), prefix, after, first)
                if end is not None:
                    items = takewhile(lambda item: item[0] < end, items)
                batch = list(islice(items, _SLICE))
            first = b""
            yield from batch
            if len(batch) < _SLICE:
                return
            after = batch[-1][0]

    def committed_keys(self, table: str, prefix: bytes = b"") -> Iterator[bytes]:
        """Yield all committed keys within one read transaction: for opening, when nothing is written."""
        return (key for key, _ in self.committed_views(table, prefix))

    def committed_views(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, memoryview]]:
        """Yield committed entries with a prefix, in one read transaction; a value is valid until the next is read."""
        if self._env is None or table not in self._tables:
            return
        with self._env.begin(self._tables[table], buffers=True) as txn:
            cursor = txn.cursor()
            if cursor.set_range(prefix) if prefix else cursor.first():
                for key, value in cursor.iternext():
                    if key[: len(prefix)] != prefix:
                        return
                    yield bytes(key), value

    def read_all(self) -> None:
        """Read all committed entries of all tables."""
        for name in self._names:
            for _ in self.committed(name):
                pass

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
        group_bytes = self._group_bytes.get(table)
        if group_bytes is None:
            groups[b""][key] = value
            return
        group = key[:group_bytes]
        changed = groups.get(group)
        if changed is None:
            changed = groups[group] = {}
        changed[key] = value

    def pending_count(self, table: str) -> int:
        """Return how many changes of a table wait for the next commit."""
        return sum(map(len, self._pending[table].values()))

    def changed_keys(self, table: str) -> list[bytes]:
        """Return the keys among the changes that are not committed."""
        both = [changes for changes in (self._writing, self._pending) if changes is not None]
        return [key for changes in both for changed in changes[table].values() for key in changed]

    def seal(self) -> SealedStore:
        if self._writing is not None:
            raise RuntimeError("the previous commit has not ended")
        changes = self._pending
        self._pending = self._no_changes()
        self._writing = changes
        return SealedStore(self, changes)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """Begin to write: in one thread at a time, and not while the store is being closed, which would never end."""
        with self._changing:
            if self._env is None:
                raise GossamerError(f"{self._folder}: the ledger is closed")
            with self._env.begin(write=True) as txn:
                yield txn

    def write_now(self) -> None:
        """Seal and write: for opening, when there are few other changes."""
        self.seal().write()

    def write(self, changes: Changes) -> None:
        """Write sealed changes in one transaction."""
        assert self._env is not None
        failpoints.reach("before_commit")
        try:
            with self._transaction() as txn:
                for name, groups in changes.items():
                    self._write_table(txn, name, groups)
                failpoints.reach("in_commit")
        except (lmdb.Error, OSError) as error:
            if isinstance(error, lmdb.MapFullError) or _is_disk_full(error, self._folder):
                raise DiskFullError(f"{self._folder}: no room for the ledger; free some space and resume") from error
            raise GossamerError(f"{self._folder}: the ledger cannot be written: {error}") from error
        self._writing = None
        failpoints.reach("after_commit")

    def load(self, rows: Sequence[Row]) -> None:
        """Add committed entries, unless there are entries with their keys. Not while a commit is written."""
        assert self._env is not None
        items: dict[str, list[Item]] = {}
        for table, key, value in rows:
            if value is not None:
                items.setdefault(table, []).append((key, value))
        with self._transaction() as txn:
            for table, found in items.items():
                with txn.cursor(self._tables[table]) as cursor:
                    cursor.putmulti(sorted(found), overwrite=False)

    def drop(self, tables: Sequence[str], ranges: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Remove committed entries from a key up to another, in several ranges."""
        assert self._env is not None
        with self._transaction() as txn:
            for table in tables:
                with txn.cursor(self._tables[table]) as cursor:
                    for start, end in ranges:
                        found = cursor.set_range(start)
                        while found and (end is None or cursor.key() < end):
                            found = cursor.delete()

    def _write_table(self, txn: lmdb.Transaction, name: str, groups: dict[bytes, Group]) -> None:
        items = [(key, value) for changed in groups.values() for key, value in changed.items() if value is not None]
        if len(items) < sum(map(len, groups.values())):
            gone = [key for changed in groups.values() for key, value in changed.items() if value is None]
            for key in sorted(gone):
                txn.delete(key, db=self._tables[name])
        if items:
            items.sort()  # adjacent keys share pages of the tree
            with txn.cursor(self._tables[name]) as cursor:
                # A call holds the GIL: a few at a time, so that the event loop can run in between.
                for start in range(0, len(items), _PUT_AT_ONCE):
                    cursor.putmulti(items[start : start + _PUT_AT_ONCE], append=name in self._appended)


class SealedStore:
    """See `gossamer.ports.SealedChanges`. The rows are gathered only on request, never on one machine."""

    def __init__(self, store: Store, changes: Changes) -> None:
        self._store = store
        self._changes = changes

    def by_shard(self) -> dict[int, list[Row]]:
        shards: dict[int, list[Row]] = {}
        for row in self._rows(SHARDED):
            shards.setdefault(shard_of(row.key), []).append(row)
        return shards

    def unsharded(self) -> list[Row]:
        return list(self._rows(UNSHARDED))

    def _rows(self, tables: tuple[str, ...]) -> Iterator[Row]:
        for table in sorted(tables):
            groups = self._changes[table]
            items = [item for changed in groups.values() for item in changed.items()]
            yield from (Row(table, key, value) for key, value in sorted(items))

    def write(self) -> None:
        self._store.write(self._changes)


def _some(items: Iterator[Item], changed: Group, count: int) -> list[Item]:
    """Return the first committed entries that are not changed."""
    kept: list[Item] = []
    for key, value in items:
        if key not in changed:
            kept.append((key, value))
            if len(kept) == count:
                break
    return kept


def _forwards(cursor: Any, prefix: bytes, after: bytes, first: bytes = b"") -> Iterator[Item]:  # noqa: ANN401 - lmdb's
    start = max(prefix, after, first)
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
    # LMDB reports a short write as an input/output error.
    free = os.statvfs(folder)
    return "Input/output error" in str(error) and free.f_bavail * free.f_frsize < MIN_FREE_BYTES
