"""Copies a crawl, compares the copy with its source, and only then lets it be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from gossamer.migration.checksums import TableSum, source_parts, sums_of
from gossamer.migration.parts import CrawlSource, CrawlTarget
from gossamer.ports import Row
from gossamer.telemetry.text import count, plural

OnProgress = Callable[[str, int], None]  # what is done, and how many rows


class TableLine(Struct, frozen=True):
    """A table in the result."""

    name: str
    rows: int
    bytes: int


class Migrated(Struct, kw_only=True):
    """The result of a migration."""

    source: str
    target: str
    is_complete: bool
    rows: int  # of all tables
    copied: int  # of them, in this run: an earlier one may have copied others
    bytes: int  # of all rows
    file_bytes: int  # of archive and event files that were copied or linked
    seconds: float
    rows_per_second: float
    tables: list[TableLine] = []
    differences: list[str] = []
    notes: list[str] = []


def migrate(source: CrawlSource, target: CrawlTarget, name: str, on_progress: OnProgress) -> Migrated:
    """Copy a crawl; `name` is that of the target, for people."""
    began = time.monotonic()
    copied = 0
    after = target.begin()
    if after is not None:
        for lot in source.lots(after):
            target.add(lot)
            copied += len(lot.rows)
            on_progress("copying", copied)
        target.add_rest()
    sums, differences = ({}, []) if after is None else _compare(source, target, on_progress)
    source.check_unchanged()
    if differences:
        target.begin_anew()
    else:
        target.finish()
    seconds = time.monotonic() - began
    rows = sum(each.rows for each in sums.values())
    return Migrated(
        source=source.name,
        target=name,
        is_complete=not differences,
        rows=rows,
        copied=copied,
        bytes=sum(each.bytes for each in sums.values()),
        file_bytes=target.file_bytes,
        seconds=round(seconds, 3),
        rows_per_second=round(copied / seconds, 1) if seconds else 0.0,
        tables=[TableLine(table, each.rows, each.bytes) for table, each in sums.items() if each.rows],
        differences=differences,
        notes=[*source.notes, *target.notes],
    )


def _compare(
    source: CrawlSource, target: CrawlTarget, on_progress: OnProgress
) -> tuple[Mapping[str, TableSum], list[str]]:
    """Return the sums of the source, and what is different in the copy."""

    def watched(parts: Iterable[Sequence[Row]]) -> Iterator[Sequence[Row]]:
        read = 0
        for part in parts:
            target.keep_alive()
            read += len(part)
            on_progress("comparing", read)
            yield part

    tables = target.tables
    expected = sums_of(watched(source_parts(source)), tables)
    found = sums_of(watched(target.parts()), tables)
    suspects = [table for table in tables if expected[table] != found[table]]
    if suspects:
        expected |= sums_of(watched(source_parts(source)), suspects, is_unique=True)
        found |= sums_of(watched(target.parts()), suspects, is_unique=True)
    return expected, [
        _difference(table, expected[table], found[table]) for table in suspects if expected[table] != found[table]
    ]


def _difference(table: str, expected: TableSum, found: TableSum) -> str:
    if expected.rows != found.rows:
        return f"{table}: {plural(found.rows, 'row')} instead of {count(expected.rows)}"
    return f"{table}: {plural(found.rows, 'row')}, but not all of them are the same"
