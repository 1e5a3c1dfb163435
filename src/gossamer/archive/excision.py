"""Removes single records from an archive file that is no longer written.

Removals are collected first and applied together, by one copy of the file that replaces it: the
file exists with or without all of them. In between, positions can be translated: `final` is the
later position of a record, `present` the current position of one with a given later position.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from gossamer.archive.writer import sync_folder

SUFFIX = ".rewritten"  # not *.warc.gz*: no reader mistakes an unfinished copy for an archive file
_CHUNK_BYTES = 1 << 20


class _Gap(Struct, frozen=True):
    start: int
    end: int


class Excision:
    """The records to be removed from one file, in the order of their positions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gaps: list[_Gap] = []

    def remove(self, start: int, end: int) -> None:
        """Remove the bytes from `start` to `end`, after all that were removed before."""
        self._gaps.append(_Gap(start, end))

    def final(self, position: int) -> int:
        """Return the later position of the record at a current position."""
        return position - sum(gap.end - gap.start for gap in self._gaps if gap.end <= position)

    def present(self, position: int) -> int:
        """Return the current position of the record with a given later position."""
        for gap in self._gaps:
            if gap.start > position:
                break
            position += gap.end - gap.start
        return position

    def apply(self) -> None:
        """Replace the file by a copy without the removed records."""
        if not self._gaps:
            return
        copy = self._path.with_name(self._path.name.partition(".warc.gz")[0] + SUFFIX)
        with self._path.open("rb") as source, copy.open("wb") as target:
            for gap in self._gaps:
                _copy(source, target, gap.start - source.tell())
                source.seek(gap.end)
            _copy(source, target, os.fstat(source.fileno()).st_size - source.tell())
            target.flush()
            os.fsync(target.fileno())
        copy.replace(self._path)
        sync_folder(self._path.parent)
        self._gaps.clear()


def _copy(source: BinaryIO, target: BinaryIO, length: int) -> None:
    while length > 0:
        data = source.read(min(length, _CHUNK_BYTES))
        target.write(data)
        length -= len(data)


def remove_unfinished_copies(folder: Path) -> None:
    """Remove the copies of a process that died before it had replaced a file by its copy."""
    for copy in folder.glob(f"*{SUFFIX}"):
        copy.unlink()
