"""What do the first pages of a crawl say? Their titles and first words, for whoever watches it begin.

Two lines per page, above the view on a terminal, and plain lines elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from gossamer.model.records import Order, OrderKind, Result
from gossamer.telemetry.screen import Screen
from gossamer.telemetry.text import printable

FIRST_PAGES = 3
PREVIEWS = 10  # per worker: some are copies of others
_COLUMNS = 120  # of what is no terminal
_LEAST_COLUMNS = 20


class FirstPages:
    """Prints the beginning of the first pages; results without first words cost it a look."""

    def __init__(self, screen: Screen, shown: Callable[[str], str] = str) -> None:
        self._screen = screen
        self._shown = shown  # a URL as it may be shown
        self._left = FIRST_PAGES

    def __call__(self, order: Order, result: Result) -> None:
        """Print a page, if it is one of the first."""
        if not result.preview or not self._left or order.kind is not OrderKind.PAGE or result.duplicate_of:
            return
        self._left -= 1
        room = self._screen.size().columns - 1 if self._screen.is_terminal else _COLUMNS
        room = max(room, _LEAST_COLUMNS)
        rest = " …" if result.words > len(result.preview.split()) else ""
        title = printable(f"{result.title or 'without a title'} · {self._shown(order.url)}", room)
        with suppress(OSError):  # the terminal is gone: no reason to stop a crawl
            self._screen.print(f"{title}\n    {printable(result.preview + rest, room - 4)}")
