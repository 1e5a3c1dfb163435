"""Sorts more rows than fit into memory: Cassandra lists a table in an order of its own.

Lots of rows are sorted and written to a temporary file, and then merged. Memory: one lot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, TypeAlias

import msgspec

LOT = 100_000
Row: TypeAlias = tuple[Any, ...]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Any, ...]).decode


def sorted_rows(rows: Iterable[Row], lot: int = LOT) -> Iterator[Row]:
    """Yield rows of texts, bytes and numbers in their order."""
    remaining = iter(rows)
    first = sorted(islice(remaining, lot))
    if len(first) < lot:
        yield from first
        return
    files = [_written(first)]
    del first
    while some := sorted(islice(remaining, lot)):
        files.append(_written(some))
    try:
        yield from merge(*(_read(file) for file in files))
    finally:
        for file in files:
            file.close()


def _written(rows: Iterable[Row]) -> IO[bytes]:
    file = TemporaryFile()  # noqa: SIM115 - closed by `sorted_rows`
    for row in rows:
        encoded = _encode(row)
        file.write(len(encoded).to_bytes(4, "big") + encoded)
    return file


def _read(file: IO[bytes]) -> Iterator[Row]:
    file.seek(0)
    while head := file.read(4):
        yield _decode(file.read(int.from_bytes(head, "big")))
