"""The Bloom filter in partitions: compiled if the package was built with a compiler, else in Python.

Both do the same (described in `_bloom.c`); `GOSSAMER_NO_KERNEL` in the environment selects the slow one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = ["IS_COMPILED", "Partitions", "digests", "split"]

IS_COMPILED = False
if TYPE_CHECKING:
    from gossamer.backends.local._bloom import Partitions, digests, split
else:
    try:
        if os.environ.get("GOSSAMER_NO_KERNEL"):
            raise ImportError
        from gossamer.backends.local._bloom import Partitions, digests, split

        IS_COMPILED = True
    except ImportError:
        from gossamer.backends.local.bloom_python import Partitions, digests, split
