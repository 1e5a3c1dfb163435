"""Standard output as a target: its name, and what to do when its reader has closed it (`gossamer export … | head`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT = "-"  # as the value of --out


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End the block silently if the reader has closed stdout."""
    try:
        yield
    except BrokenPipeError:
        # The rest of the buffer is flushed at exit, and must not fail there again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
