"""What to do when the reader of a pipe closes it: `gossamer export … | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End the block silently if stdout is no longer read."""
    try:
        yield
    except BrokenPipeError:
        # What is left in the buffer is flushed at exit, and must not fail there again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
