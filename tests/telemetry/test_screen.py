"""What is on the screen after views and lines: always the lines in order, then one view, and nothing else."""

from __future__ import annotations

import io
import os

import pytest

from gossamer.telemetry.screen import Screen, ViewLine
from tests.telemetry.terminals import FakeTerminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    monkeypatch.setenv("TERM", "xterm")
    return FakeTerminal(80)


def screen_on(terminal: FakeTerminal) -> Screen:
    return Screen(terminal, lambda: os.terminal_size((terminal.columns, 24)))


def view(*lines: str) -> list[ViewLine]:
    return [ViewLine(line, f"\x1b[1m{line}\x1b[0m") for line in lines]


def test_a_view_replaces_the_last_one_in_one_write(terminal: FakeTerminal) -> None:
    screen = screen_on(terminal)
    screen.show(view("one", "two", "three"))
    screen.show(view("uno", "dos"))
    assert terminal.shown() == ["uno", "dos"]
    assert len(terminal.writes) == 2


def test_lines_are_printed_above_the_view(terminal: FakeTerminal) -> None:
    screen = screen_on(terminal)
    screen.print("before")
    screen.show(view("a view", "of two lines"))
    screen.print("a warning")
    assert terminal.shown() == ["before", "a warning"]
    screen.show(view("a view", "of two lines"))
    assert terminal.shown() == ["before", "a warning", "a view", "of two lines"]


def test_lines_that_may_wait_come_with_the_next_view(terminal: FakeTerminal) -> None:
    screen = screen_on(terminal)
    screen.print("no view yet", at_once=False)
    assert terminal.shown() == ["no view yet"]
    screen.show(view("a view"))
    for number in range(5):
        screen.print(f"event {number}", at_once=False)
    assert terminal.shown() == ["no view yet", "a view"]
    screen.show(view("a view"))
    assert terminal.shown() == ["no view yet", *(f"event {number}" for number in range(5)), "a view"]
    assert len(terminal.writes) == 3


def test_nothing_is_left_of_a_view_that_has_ended(terminal: FakeTerminal) -> None:
    screen = screen_on(terminal)
    screen.print("before")
    screen.show(view("a view", "of two lines"))
    screen.print("the last event", at_once=False)
    screen.show([])
    assert terminal.shown() == ["before", "the last event"]
    screen.print("after", at_once=False)
    assert terminal.shown() == ["before", "the last event", "after"]


@pytest.mark.parametrize("reflows", [True, False])
@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_terminal_that_is_made_wider_shows_no_rubbish(
    monkeypatch: pytest.MonkeyPatch, columns: int, *, reflows: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = FakeTerminal(80, reflows=reflows)
    screen = screen_on(terminal)
    screen.print("before")
    screen.show(view("x" * 79, "y" * 40, "z"))
    terminal.resize(columns)
    screen.show(view("X" * (columns - 1), "Y", "Z"))
    assert terminal.shown() == ["before", "X" * (columns - 1), "Y", "Z"]


@pytest.mark.parametrize("reflows", [True, False])
@pytest.mark.parametrize("widths", [(60, 120), (60, 59, 120), (119, 120), (30, 60, 10, 200), (10, 11, 12, 13)])
def test_lines_above_the_view_survive_every_change_of_width(
    monkeypatch: pytest.MonkeyPatch, widths: tuple[int, ...], *, reflows: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = FakeTerminal(120, reflows=reflows)
    screen = screen_on(terminal)
    above = [f"line {number}" for number in range(9)]
    for line in above:
        screen.print(line)
    for columns in (120, *widths):
        terminal.resize(columns)
        for _ in range(2):
            screen.show(view(*(letter * (columns - 1) for letter in "xyz")))
    assert terminal.shown()[: len(above)] == above
    assert terminal.shown()[-3:] == [letter * (widths[-1] - 1) for letter in "xyz"]
    screen.show([])
    screen.print("after")
    assert terminal.shown()[: len(above)] == above
    assert terminal.shown()[-1] == "after"


def test_a_narrower_terminal_in_which_the_view_still_fits_shows_no_rubbish(terminal: FakeTerminal) -> None:
    screen = screen_on(terminal)
    screen.print("before")
    screen.show(view("x" * 40, "y"))
    terminal.resize(60)
    screen.show(view("X" * 59, "Y"))
    assert terminal.shown() == ["before", "X" * 59, "Y"]


def test_lines_cannot_control_the_terminal(terminal: FakeTerminal) -> None:
    screen_on(terminal).print("a\x1b[2Jb")
    assert terminal.shown() == ["a\\u001b[2Jb"]


def test_off_a_terminal_there_are_lines_and_no_view() -> None:
    out = io.StringIO()
    screen = Screen(out)
    screen.show(view("a view"))
    screen.print("a line")
    screen.show(view("a view"))
    screen.print("another", at_once=False)
    screen.show([])
    assert out.getvalue() == "a line\nanother\n"
