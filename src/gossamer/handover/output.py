"""Where an export goes: to stdout, or to a file that is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from gossamer.errors import UsageError

_GZIP_LEVEL = 6


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its name when all is written; after an error or Ctrl-C nothing is left."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        file = unfinished.open("wb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with file:
            yield file
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def write_lines(lines: Iterable[bytes], out: Path | None) -> int:
    """Write lines, each with its newline, to a file (compressed where named .gz) or to stdout; return how many."""
    if out is None:
        return _to_stdout(lines)
    with whole_file(out) as file:
        if out.suffix != ".gz":
            return write_stream(lines, file)
        # No name and no time in it: the same pages give the same bytes.
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
            return write_stream(lines, cast("BinaryIO", packed))


def write_stream(lines: Iterable[bytes], file: BinaryIO) -> int:
    """Write one after another; return how many."""
    count = 0
    for line in lines:
        file.write(line)
        count += 1
    return count


def _to_stdout(lines: Iterable[bytes]) -> int:
    count = write_stream(lines, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return count
