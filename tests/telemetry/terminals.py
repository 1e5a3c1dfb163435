"""A terminal that shows what is written to it, as far as our control sequences go."""

from __future__ import annotations

import io
import re

_TOKEN = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|([\s\S])")


class FakeTerminal(io.StringIO):
    """A terminal of some width. Lines that are too long wrap, also afterwards, when it is made narrower."""

    def __init__(self, columns: int = 80) -> None:
        super().__init__()
        self.columns = columns
        self.lines: list[str] = [""]  # as they were written, without wrapping
        self.writes: list[str] = []
        self._row = 0  # of the cursor, in rows of the screen from the top
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
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n").split("\n")

    def resize(self, columns: int) -> None:
        """Wrap the lines anew; the cursor stays in its line."""
        at = self._line()[0]
        self.columns = columns
        self._row = sum(self._rows(line) for line in self.lines[:at])
        self._column = 0

    def _rows(self, line: str) -> int:
        return max(1, -(-len(line) // self.columns))

    def _line(self) -> tuple[int, int]:
        """Return the line of the cursor, and where in it its row begins."""
        row = self._row
        for number, line in enumerate(self.lines):
            if row < self._rows(line):
                return number, row * self.columns
            row -= self._rows(line)
        raise AssertionError("the cursor is below the last line")

    def _control(self, number: int, command: str) -> None:
        if command == "A":
            self._row = max(0, self._row - number)
        elif command in "KJ":
            at, begin = self._line()
            self.lines[at] = self.lines[at][: begin + self._column]
            if command == "J":
                del self.lines[at + 1 :]
        else:
            assert command == "m", command

    def _put(self, character: str) -> None:
        at, begin = self._line()
        if character == "\r":
            self._column = 0
        elif character == "\n":
            if at + 1 == len(self.lines):
                self.lines.append("")
            self._row += self._rows(self.lines[at]) - begin // self.columns
            self._column = 0
        else:
            place = begin + self._column
            self.lines[at] = self.lines[at][:place].ljust(place) + character + self.lines[at][place + 1 :]
            self._column += 1
