"""One pass over a page's markup: compiled if the package was built with a compiler, else in Python.

Both do the same (described in `scan_python`); `GOSSAMER_NO_KERNEL` in the environment selects the slow one.
A page of 46 KB: 51 µs compiled, 1 ms in Python, 520 µs by way of a tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.parse.html.scan_python import Scan

__all__ = ["scan"]


def _choose() -> Callable[[bytes, bool], Scan | None]:
    if not os.environ.get("GOSSAMER_NO_KERNEL"):
        try:
            from gossamer.parse.html import _scan
        except ImportError:
            pass
        else:
            return _scan.scan
    from gossamer.parse.html import scan_python

    return scan_python.scan


scan = _choose()
