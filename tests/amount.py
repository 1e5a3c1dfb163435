"""How much is tested?

By default as much as finds nearly every fault within minutes. With `GOSSAMER_TESTS=all` (`make test-all`) the same
tests take more seeds, rounds and examples; no test runs only then.
"""

from __future__ import annotations

import os

IS_ALL = os.environ.get("GOSSAMER_TESTS") == "all"


def amount(few: int, many: int) -> int:
    """Return how many seeds, rounds or examples a test takes."""
    return many if IS_ALL else few
