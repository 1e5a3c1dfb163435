"""The ledger of one machine, row by row: what `gossamer migrate` reads and writes.

Nothing is decoded, and no filter is filled: the filters of seen URLs are made from their tables when the ledger is
next opened. A lot of rows and the mark how far the copy has got are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from gossamer.backends.local.store import Store
from gossamer.core.ledger import rows
from gossamer.ports import Row

_MARK = b"migration"


class RawLedger:
    """The tables of a ledger; use it with `with`."""

    def __init__(self, folder: Path, *, is_readonly: bool) -> None:
        self._is_readonly = is_readonly
        self._store = Store(folder, rows.TABLES, {}, is_readonly=is_readonly)

    def __enter__(self) -> RawLedger:
        self._store.open()
        if not self._is_readonly:
            self._store.create_tables()
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def rows(self, table: str, after: bytes = b"") -> Iterator[Row]:
        """Yield the rows of a table after a key, in order."""
        start = after + b"\0" if after else b""
        return (Row(table, key, value) for key, value in self._store.committed(table, b"", start))

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return a row."""
        return self._store.get(table, key)

    def identity(self) -> str:
        """Return a text that is different for every crawl, and for every state of a crawl."""
        digest = sha256(self.get("meta", rows.CRAWL_KEY) or b"")
        for _, key, value in self.rows("archives"):
            digest.update(key + b"\0" + (value or b""))
        for table in rows.TABLES:
            digest.update(self._store.committed_count(table).to_bytes(8, "big"))
        return digest.hexdigest()

    # -- the copy ---------------------------------------------------------------------------------

    @property
    def mark(self) -> str:
        """How far the copy has got."""
        return (self.get("meta", _MARK) or b"").decode()

    def add(self, lot: Sequence[Row], mark: str) -> None:
        """Write rows and the mark, durable on return."""
        for table, key, value in lot:
            self._store.put(table, key, value)
        self._store.put("meta", _MARK, mark.encode())
        self._store.write_now()

    def remove_mark(self) -> None:
        """Remove the mark: the copy is complete."""
        self._store.put("meta", _MARK, None)
        self._store.write_now()
