"""Lines of files of events, of which none is longer in memory than an event can be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

MAX_LINE_BYTES = 8 << 20  # an event is smaller; a longer line comes in pieces, which no decoder accepts


def bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file. A file that is one line of gigabytes, or a hole, takes time but no memory."""
    return iter(partial(file.readline, MAX_LINE_BYTES), b"")
