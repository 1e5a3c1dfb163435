"""The line that shows how far a verb is."""

from __future__ import annotations

import pty
from contextlib import suppress

import pytest

from gossamer.telemetry.progress_line import EVERY_S, ProgressLine


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_terminal_has_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("gossamer.telemetry.progress_line.time", clock)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with open(slave, "w", encoding="utf-8") as out, ProgressLine("export", 1000, "pages", out) as progress:
        for number, _ in enumerate(progress.each(range(500)), 1):
            clock.now += 0.01
            assert number
    written = _read_to_the_end(master)
    lines = [line for line in written.split("\r\x1b[K") if line]
    assert lines[0] == "export  32 of 1,000 pages  3 %"
    assert lines[-1].startswith("export  480 of 1,000 pages  48 %  ")
    assert lines[-1].endswith(" left")
    assert len(lines) <= 500 * 0.01 / EVERY_S
    assert written.endswith("\r\x1b[K")


def _read_to_the_end(terminal: int) -> str:
    """Return what was written to a terminal that is closed on the other side: it comes in any number of pieces."""
    pieces = []
    with suppress(OSError), open(terminal, "rb", buffering=0) as file:  # the error is how Linux says that it is the end
        while piece := file.read(65536):
            pieces.append(piece)
    return b"".join(pieces).decode()


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine("export", 10, "pages") as progress:
        assert list(progress.each("abc")) == ["a", "b", "c"]
        progress.show(10)
    assert capsys.readouterr().err == ""


def test_an_unknown_length_has_no_share() -> None:
    progress = ProgressLine("export", 0, "pages")
    progress.show(1234)
    assert progress.text(5.0) == "export  1,234 pages"
    known = ProgressLine("verify", 100, "files")
    known.show(100)
    assert known.text(5.0) == "verify  100 of 100 files  100 %  0.0 s left"
