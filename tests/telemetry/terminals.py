"""A terminal that shows what is written to it, as far as our control sequences go."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|([\s\S])")


@dataclass(slots=True)
class Row:
    """A row of the screen. One that goes on in the next row keeps that mark when it is overwritten, as in tmux."""

    text: str = ""
    goes_on: bool = False


class FakeTerminal(io.StringIO):
    """A terminal of some width. One that reflows wraps its lines anew if the width changes; xterm leaves its rows."""

    def __init__(self, columns: int = 80, *, reflows: bool = True) -> None:
        super().__init__()
        self.columns = columns
        self.writes: list[str] = []
        self._reflows = reflows
        self._rows = [Row()]
        self._row = 0  # of the cursor
        self._column = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes.append(text)
        for match in _TOKEN.finditer(text):
            number, command, character = match.groups()
            if command is not None:
                self._control(int(number or 1) if command == "A" else 0, command)
            else:
                self._put(character)
        return len(text)

    def shown(self) -> list[str]:
        """Return the lines without empty ones at the end."""
        return "\n".join(line.rstrip() for line in self._lines(self._rows)).rstrip("\n").split("\n")

    def resize(self, columns: int) -> None:
        """Change the width; the cursor stays in its line."""
        self.columns = columns
        if not self._reflows:
            self._rows = [Row(row.text[:columns], row.goes_on) for row in self._rows]
            return
        above, below = self._rows[: self._row], self._rows[self._row :]
        wrapped = [row for line in self._lines(above) for row in self._wrapped(line)]
        self._row = len(wrapped)
        self._rows = wrapped + [row for line in self._lines(below) for row in self._wrapped(line)]

    @staticmethod
    def _lines(rows: list[Row]) -> list[str]:
        lines, begun = [], ""
        for row in rows:
            begun += row.text
            if not row.goes_on:
                lines.append(begun)
                begun = ""
        return [*lines, begun] if begun else lines

    def _wrapped(self, line: str) -> list[Row]:
        parts = [line[begin : begin + self.columns] for begin in range(0, max(1, len(line)), self.columns)]
        return [Row(part, number + 1 < len(parts)) for number, part in enumerate(parts)]

    def _control(self, number: int, command: str) -> None:
        if command == "A":
            self._row = max(0, self._row - number)
        elif command in "KJ":
            row = self._rows[self._row]
            row.text = row.text[: self._column]
            if command == "J":
                row.goes_on = False
                del self._rows[self._row + 1 :]
        else:
            assert command == "m", command

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._next_row()
        else:
            if self._column == self.columns:
                self._rows[self._row].goes_on = True
                self._next_row()
            row, at = self._rows[self._row], self._column
            row.text = row.text[:at].ljust(at) + character + row.text[at + 1 :]
            self._column += 1

    def _next_row(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append(Row())
