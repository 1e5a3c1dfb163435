"""What the program says of itself: the verbs, and the options of those that take settings."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from gossamer.cli.verbs import VERBS, Parser
from gossamer.settings.model import Group, options
from tests.inspect.folders import said

README = Path(__file__).resolve().parent.parent.parent / "README.md"
WITH_SETTINGS = ["crawl", "resume", "retry", "bench"]


def _help(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = said(capsys, verb, "--help")
    assert (status, err) == (0, "")
    return out


def _parts(text: str) -> dict[str, str]:
    """Return what stands under each heading, in order."""
    parts = re.split(r"(?m)^(\w[\w ]*):\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("verb", WITH_SETTINGS)
def test_options_stand_under_headings_in_order_and_fit_a_terminal(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _help(verb, capsys, monkeypatch)
    groups = [group.value for group in Group if group is not Group.CLUSTER or verb in ("crawl", "join")]
    assert list(_parts(text)) == ["options", *groups, "examples"]
    assert max(len(line) for line in text.splitlines()) <= 80
    usage = text.split("\n\n")[0]
    assert usage.startswith(f"usage: gossamer {verb} ")
    assert "\n" not in usage


@pytest.mark.parametrize("verb", WITH_SETTINGS)
def test_every_setting_is_listed_once_under_its_heading(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = _parts(_help(verb, capsys, monkeypatch))
    for option in options():
        flag = re.escape(f"--[no-]{option.key}" if option.is_switch else f"--{option.key}")
        found = [name for name, text in parts.items() if re.search(rf"(?m)^  (-\S+, )?{flag}\b", text)]
        is_fixed = option.is_fixed and verb in ("resume", "retry")
        is_left_out = option.is_table or is_fixed or (option.group is Group.CLUSTER and verb != "crawl")
        assert found == ([] if is_left_out else [option.group.value]), option.key
    assert "--crawl-delay SECONDS" in parts[Group.PACE.value]
    assert "--config FILE.toml" in parts["options"]


@pytest.mark.parametrize("verb", WITH_SETTINGS)
def test_the_examples_are_right(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    examples = _parts(_help(verb, capsys, monkeypatch))["examples"].strip().splitlines()
    assert len(examples) in (2, 3)
    for example in examples:
        words = shlex.split(example, comments=True)
        assert words[:2] == ["gossamer", verb]
        parser = Parser(prog="gossamer", allow_abbrev=False)
        importlib.import_module(VERBS[verb][0]).configure(parser)
        parser.parse_args(words[2:])


def test_the_readme_has_every_verb_in_a_table() -> None:
    listed = re.findall(r"(?m)^\| `gossamer ([\w-]+)", README.read_text("utf-8"))
    assert sorted(listed) == sorted(VERBS)
