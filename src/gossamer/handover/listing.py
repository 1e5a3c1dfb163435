"""An answer as lines for other programs: JSON lines that begin with the counts, or CSV.

In CSV, names of fields are the header; lists are joined by spaces, and cells that a spreadsheet would treat as formulas
are prefixed with `'`. Rows wait on disk, sorted, until all of them are counted (`SortedSpool`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from gossamer.handover.findings.link_table import enough_room
from gossamer.handover.findings.links import csv_line, safe_cells

Row = TypeVar("Row", bound=Struct)
_encode = msgspec.json.Encoder().encode


class SortedSpool(Generic[Row]):
    """Rows that wait on disk, in the order of their places and URLs: the same in every crawl. Use with `with`."""

    def __init__(self, kind: type[Row]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self.count = 0

    def __enter__(self) -> SortedSpool[Row]:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; CREATE TABLE rows (place, url TEXT, line BLOB); BEGIN"
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add(self, row: Row, url: str, place: float | str = 0) -> None:
        """Add a row; among rows of one place the URL decides."""
        self.count += 1
        with enough_room():
            self._db.execute("INSERT INTO rows VALUES (?, ?, ?)", (place, url, _encode(row)))

    def rows(self) -> Iterator[Row]:
        """Yield the rows in order."""
        with enough_room():
            for (line,) in self._db.execute("SELECT line FROM rows ORDER BY place, url, rowid"):
                yield self._decode(line)


def json_lines(head: Struct, rows: Iterable[Struct]) -> Iterator[bytes]:
    """Yield the counts, then a line per row."""
    yield _encode(head) + b"\n"
    for row in rows:
        yield _encode(row) + b"\n"


def csv_lines(kind: type[Struct], rows: Iterable[Struct]) -> Iterator[bytes]:
    """Yield a header and a line per row."""
    yield csv_line(list(kind.__struct_encode_fields__))
    for row in rows:
        yield csv_line(safe_cells(_cell(getattr(row, name)) for name in kind.__struct_fields__))


def _cell(value: Any) -> str:  # noqa: ANN401 - any field
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)
