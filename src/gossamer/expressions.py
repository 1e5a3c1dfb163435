"""Regular expressions that are compiled when they are first used.

To compile one takes 0.1 ms, and most of a module's are for what few pages have. An expression that every page needs is
compiled with `re.compile` instead: a call of this takes 0.01 µs longer.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast


class _Expression:
    """Becomes a compiled expression with the first attribute that is asked for: its methods are then its own."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the compiled expression, from now on without coming here."""
        compiled = re.compile(self._text, self._flags)  # `re` remembers it, if another attribute is asked for
        value: object = getattr(compiled, name)
        setattr(self, name, value)
        return value


def expression(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression that is compiled when it is first used. An error in it shows only then."""
    return cast("re.Pattern[AnyStr]", _Expression(text, flags))
