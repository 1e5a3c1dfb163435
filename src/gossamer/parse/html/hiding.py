"""Which parts of a page does a style of their own hide?

Only what the markup itself says is known: `style` and `hidden`. Stylesheets are not fetched. `_scan.c` does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

Position: TypeAlias = tuple[int, int]  # in the text, in bytes, and in the list of targets

REMOVED = 1  # not shown; shown elsewhere; shown too small to be read
DISGUISED = 2
SMALL = 3
MAX_PARTS = 64
MAX_STYLE_BYTES = 256
# Their end tags are not optional, except that of p, which the next p ends.
_CAN_HIDE = frozenset(
    "article aside b blockquote center details div dl em figure font footer form h1 h2 h3 h4 h5 h6 header i main nav "
    "ol p pre section small span strong table u ul".split()
)
_BLANKS = bytes(range(0x21))
_FAR_OUT = re.compile(rb"(?:text-indent|left|top):-(\d{1,6})")
_TINY = re.compile(rb"font-size:(?:1px|0(?![.0-9]))")
_MIN_DISTANCE = 999


class HiddenParts:
    """The hidden parts of one page; those within others do not count."""

    def __init__(self, position: Callable[[], Position]) -> None:
        self._position = position
        self.parts: list[tuple[int, int, int, int, int]] = []
        self._tag = ""  # of the element that hides what is read
        self._depth = 0
        self._how = 0
        self._begin: Position = (0, 0)

    def start(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if self._tag == tag:
            self._depth += 1
            if tag == "p":
                self.close()
        if "style" not in attributes and "hidden" not in attributes:
            return
        style = (attributes.get("style") or "").encode()[:MAX_STYLE_BYTES].translate(None, _BLANKS).lower()
        if self._tag:
            if self._how == SMALL and b"font-size:" in style:
                self._how = 0  # what is in it has a size of its own: a trick of layout
            return
        how = _hides(style, is_hidden="hidden" in attributes) if len(self.parts) < MAX_PARTS else 0
        if how and tag in _CAN_HIDE:
            self._tag, self._depth, self._how, self._begin = tag, 1, how, self._position()

    def end(self, tag: str) -> None:
        if self._tag == tag:
            self._depth -= 1
            if not self._depth:
                self.close()

    def close(self) -> None:
        """End the part that is open, if any."""
        if self._tag and self._how:
            begin = self._begin
            end = self._position()
            if end != begin:
                self.parts.append((self._how, begin[0], end[0], begin[1], end[1]))
        self._tag = ""


def _hides(style: bytes, *, is_hidden: bool) -> int:
    if is_hidden or b"display:none" in style or b"visibility:hidden" in style:
        return REMOVED
    if any(int(distance) >= _MIN_DISTANCE for distance in _FAR_OUT.findall(style)):
        return DISGUISED
    size = style.find(b"font-size:")
    return SMALL if size >= 0 and _TINY.match(style, size) else 0
