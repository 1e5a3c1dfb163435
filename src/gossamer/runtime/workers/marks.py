"""Which answers was a worker process reading when it died?

Five numbers in memory that the hub shares with each worker process: the task whose answer is being decoded, read or
stored in the event loop, the one that is being read in the thread for big bodies, the one that is being decoded in a
thread, the PDF that is being read deeply, and the one that is stored in a thread; 0: none. A worker sets them with a
store to memory, so they are right after any death, also if a crash in native code or the kernel ended the process. The
hub reads them then. Cost: four stores per page.
"""

from __future__ import annotations

import os
from array import array
from mmap import mmap
from typing import Final

from gossamer.fetch.transfer import Marks

__all__ = ["Marks", "SharedMarks", "new_marks", "open_marks"]

_TYPECODE: Final = "Q"
_BYTES = 40


def new_marks() -> Marks:
    """Return marks that nobody else sees: of a worker in the hub's own process."""
    return array(_TYPECODE, bytes(_BYTES))


class SharedMarks:
    """Marks of a worker process, as its hub has them."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("gossamer-marks")  # for the process to inherit
        os.ftruncate(self.fd, _BYTES)
        self._memory = mmap(self.fd, _BYTES)

    def close_fd(self) -> None:
        """Close the file descriptor, once the process has inherited it; the marks stay."""
        os.close(self.fd)

    def read(self) -> list[int]:
        """Return the tasks whose answers are being read."""
        numbers = array(_TYPECODE, self._memory[:])
        return [number for number in dict.fromkeys(numbers) if number]


def open_marks(fd: int) -> Marks:
    """Return the marks behind an inherited file descriptor: of this worker process."""
    return memoryview(mmap(fd, _BYTES)).cast(_TYPECODE)
