"""What the program says of itself: the verbs, and the options of those that take settings."""

from __future__ import annotations

import importlib
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from gossamer.cli.verbs import GROUPS, VERBS, Parser, options_of, overview, parser_of
from gossamer.model.errors import UsageError
from gossamer.settings.load import completed, merged, settings_for_known, to_toml
from gossamer.settings.model import Group, Option, options
from tests.reading.folders import said

WITH_SETTINGS = ["crawl", "resume", "retry", "bench"]
STORED = {"target_unique_domains": 5, "max_pages_per_domain": 10, "user_agent": "Sample/1.0", "near_dup": "minhash"}
SAMPLES: dict[str, object] = {
    "max_wait": 500.0,
    "max_redirects": 9,
    "memory": 4 << 30,
    "spool": 1 << 30,
    "revisit_share": 0.25,
    "revisit_max": 1e6,
    "revisit_class": ("news=/n/",),
    "include_pattern": ("/a",),
    "exclude_pattern": ("/b",),
    "block_host": ("a.org",),
    "own_host": ("a.org",),
    "plugin": ("sample",),
    "user_agent": "Sample/2.0",
    "robots_token": "sample",
    "contact": "me@example.org",
    "store": ("files",),
    "catalog": ("postgresql://h:1/d",),
    "feed": ("kafka://h:1/t",),
    "accept": ("image/png",),
    "dns": "127.0.0.1:53",
    "ca_file": "/ca.pem",
    "insecure": ("a.org",),
    "proxy": "none",
    "allow_network": ("10.0.0.0/8",),
    "region": (".de=eu",),
    "geoip": "/geo.mmdb",
    "ui_listen": "127.0.0.1:0",
    "ui_url": "https://a.org/x/",
    "ui_token_file": "token",
    "metrics_listen": "127.0.0.1:0",
}


def _help(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = said(capsys, verb, "--help-all" if verb == "crawl" else "--help")
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
        parser = Parser("gossamer")
        importlib.import_module(VERBS[verb][0]).configure(parser)
        parser.parse_args(words[2:])


def _other_value(option: Option) -> object:
    """Return a valid value that is not the default."""
    if option.name in SAMPLES:
        return SAMPLES[option.name]
    if option.choices:
        return next(each for each in option.choices if each != option.default)
    return not option.default if option.is_switch else 17


def _refusal(option: Option, stored: Path) -> str:
    try:
        settings_for_known(stored, [("command line", {option.name: _other_value(option)})])
    except UsageError as error:
        return str(error)
    return ""


OF_A_FOLDER = [each for each in options() if not each.is_table and each.group is not Group.CLUSTER]


@pytest.mark.parametrize("option", OF_A_FOLDER, ids=lambda each: each.key)
def test_resume_lists_exactly_what_it_accepts(option: Option, tmp_path: Path) -> None:
    stored = tmp_path / "crawl.toml"
    stored.write_text(to_toml(completed(merged(("test", STORED)), has_domain_list=False)))
    is_listed = option.name in {action.dest for action in options_of(parser_of("resume"))}
    message = "" if is_listed else f"--{option.key} cannot change once a crawl has started"
    assert _refusal(option, stored).partition(";")[0] == message


def test_the_short_help_of_a_crawl_has_twenty_options_and_says_how_to_see_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = said(capsys, "crawl", "--help")
    assert (status, out) == said(capsys, "help", "crawl")[:2]
    named = re.findall(r"(?m)^  (?:-\w, )?--(?:\[no-\])?([a-z-]+)", out)
    assert len({*named} - {"help", "help-all"}) == 20
    known = [action for action in options_of(parser_of("crawl")) if action.option_strings]
    assert out.endswith(f"'gossamer crawl --help-all' shows all {len(known)} options.\n")
    assert {"max-pages", "out", "contact", "config", "json"} < set(named)
    assert "near-dup" not in named
    assert max(len(line) for line in out.splitlines()) <= 80


def test_every_verb_stands_in_one_group_and_the_help_names_all() -> None:
    grouped = [verb for group in GROUPS.values() for verb in group]
    assert Counter(grouped) == Counter(VERBS.keys())
    assert max(len(line) for text in (overview(), overview(len(VERBS))) for line in text.splitlines()) <= 90
    for text in (overview(), overview(described=len(VERBS))):
        described = re.findall(r"(?m)^  ([\w-]+)  ", text)
        others = [verb for line in re.findall(r"(?m)^  also: (.*)$", text) for verb in line.split(", ")]
        assert sorted(described + others) == sorted(grouped)
    assert len(overview().splitlines()) < len(overview(len(VERBS)).splitlines())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pages", "x", "--slow", "soon"], "pages: --slow soon: not a number; expected a number, as 2 or 0.5"),
        (["pace", "x", "*", "fast"], "pace: SECONDS fast: not a number; expected a number, as 2 or 0.5"),
        (["links", "x", "--broken", "--limit", "all"], "links: --limit all: not a number; expected a whole number"),
        (["pages", "x", "--thin", "\x1b[2J"], "pages: --thin \\x1b[2J: not a number; expected a whole number"),
    ],
)
def test_what_is_no_number_is_named_with_what_would_be_one(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, *words) == (2, "", f"gossamer {expected}\n")
