"""The table of requirements names tests that exist, and every requirement once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "requirements.md"
NUMBERS = {"J": 9, "F": 7, "P": 8, "G": 7, "H": 6, "U": 4, "S": 7, "X": 6, "V": 5, "O": 6}
IDS = [f"{letter}{number}" for letter, count in NUMBERS.items() for number in range(1, count + 1)]


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text("utf-8")


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of every row by its id."""
    rows = re.findall(r"^\| ([A-Z]\d) \|(.*)\|$", text, re.MULTILINE)
    assert max(Counter(name for name, _ in rows).values()) == 1
    return {name: [cell.strip() for cell in cells.split(" | ")] for name, cells in rows}


def test_every_requirement_occurs_once_as_a_row_or_among_those_that_are_left_out(text: str) -> None:
    left_out = re.findall(r"\b[A-Z]\d\b", text.partition("##")[0])
    assert sorted([*rows_of(text), *left_out]) == sorted(IDS)


def test_every_row_says_what_is_done_and_whether_that_is_all(text: str) -> None:
    for name, (done, status, shown) in rows_of(text).items():
        assert done, name
        assert status == "met" or re.match("(in part|not met): .{20}", status), f"{name}: {status}"
        assert shown.startswith("`tests/") or status.startswith("not met"), name


def test_every_test_that_is_named_exists(text: str) -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", text)) - {"tests/…::name"}
    assert len(named) > 100
    missing = []
    for path, _, function in (each.partition("::") for each in named):
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if function not in functions:
            missing.append(f"{path}::{function}")
    assert missing == []


def test_every_command_that_is_named_exists(text: str) -> None:
    targets = set(re.findall(r"`make ([a-z]+)`", text))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
