"""Where an export goes: to stdout, or to a file that is written atomically.

A device or a named pipe is written to, never replaced. A link stays a link: the file that it points to is replaced.
"""

from __future__ import annotations

import errno
import gzip
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from gossamer.model.errors import DiskFullError, UsageError
from gossamer.telemetry.text import safe

_GZIP_LEVEL = 6


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name when it is complete; after an error or Ctrl-C nothing is left."""
    if path.exists() and not path.is_file():
        with _opened(path, path) as file, disk_full_at(path):
            yield file
        return
    final = path.resolve()
    unfinished = final.with_name(f".{final.name}.tmp")
    file = _opened(unfinished, path)
    try:
        with disk_full_at(path), file:
            yield file
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(final)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _opened(path: Path, named: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise UsageError(f"{named}: cannot be written: {error.strerror or error}") from error


@contextmanager
def disk_full_at(where: Path | str) -> Iterator[None]:
    """Turn a full disk into an error that names the path: it need not be on the disk of the crawl."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(f"{where}: no room left") from error


def write_lines(lines: Iterable[bytes], out: Path | None) -> int:
    """Write lines, each with its newline, to a file (compressed if named .gz) or to stdout; return how many."""
    if out is None:
        return _to_stdout(lines)
    with whole_file(out) as file:
        if out.suffix != ".gz":
            return write_stream(lines, file)
        # Without name and time: the same pages result in the same bytes.
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
    with disk_full_at("stdout"):
        if sys.stdout.isatty():
            lines = (safe(line.decode("utf-8", "replace").replace("\r\n", "\n")).encode() for line in lines)
        count = write_stream(lines, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return count
