"""Users' patterns for URLs: regular expressions that are matched in linear time.

Every link is compared with them, and links are written by strangers: with an engine that backtracks, one pattern such
as `(a+)+$` and one link could stop a crawl for hours. RE2 needs time in proportion to the link, whatever both are
(docs/decisions/019). What is accepted is what Python and RE2 both accept and understand alike.
1.5 µs per URL for all patterns of a list together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, cast

from gossamer.expressions import expression

Search = Callable[[str], object]

_EXPECTED: Final = "expected RE2 syntax: no look-around, no back references, repetitions up to 1000"
# What makes an engine try again. Without any of these Python's own engine is linear too, and takes a fifth of the time.
_CHOICE: Final = expression(r"[*+?{(|\\]")
_OPEN_REPETITION: Final = expression(r"(?<!\\)\{,\d+\}")  # for RE2 these are just characters


def pattern_fault(pattern: str) -> str:
    """Return what is wrong with a pattern and what would be right, on one line; empty if nothing is."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression: {error}"
    if _OPEN_REPETITION.search(pattern):
        return "a repetition without its minimum; expected {0,n} instead of {,n}"
    import re2  # 1.5 ms: most crawls have no patterns

    try:
        _compiled(pattern)
    except re2.error as error:
        detail = (
            error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        )
        return f"cannot be matched in linear time ({detail}); {_EXPECTED}"
    return ""


def union(patterns: Sequence[str]) -> Search | None:
    """Return a function that searches a URL for any of the patterns; None if there are none."""
    if len(patterns) == 1:
        return _compiled(patterns[0])
    return _compiled("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def first_match(patterns: Sequence[str], url: str) -> str:
    """Return the first of the patterns that matches, or the empty string."""
    return next((pattern for pattern in patterns if _compiled(pattern)(url)), "")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Search:
    if not _CHOICE.search(pattern):
        return re.compile(pattern).search
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # quicker; and two patterns may name a group alike
    return cast("Search", re2.compile(pattern, options).search)
