"""The typed settings of `gossamer.crawl` are those of the model, and wrong ones are answered with the right ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import gossamer
from gossamer.api import CrawlOptions
from gossamer.settings.load import merged
from gossamer.settings.model import Option, options

HINTS = get_type_hints(CrawlOptions)
EXAMPLES: dict[type, Any] = {int: 50_000_000, float: 1000.5, bool: True, str: ""}


def test_every_setting_is_an_argument_with_a_type() -> None:
    assert set(HINTS) == {option.name for option in options()}


def _parts(hint: Any) -> list[Any]:
    args = get_args(hint)
    return list(args) if args and get_origin(hint) not in (Literal,) and type(None) in args else [hint]


@pytest.mark.parametrize("option", options(), ids=lambda option: option.name)
def test_the_types_agree(option: Option) -> None:
    hint = HINTS[option.name]
    literals = [arg for part in _parts(hint) if get_origin(part) is Literal for arg in get_args(part)]
    if option.choices is not None:
        assert literals == option.choices
    allows_none = type(None) in get_args(hint)
    assert allows_none == (option.default is None)
    if option.is_switch:
        assert hint is bool
    if option.is_repeatable:
        assert "Sequence" in str(hint)
    for kind in (int, float, str):
        if hint is kind:
            assert isinstance(getattr(merged(("test", {})), option.name), kind)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scope": "hots"}, "scope = 'hots': expected page, prefix, host, domain or any"),
        ({"order": "fifo"}, "order = 'fifo': expected breadth, score, random or tiers"),
        ({"sitemaps": True}, "sitemaps = True: expected mixed, first or off"),
        ({"max_depht": 3}, "no setting 'max_depht'; did you mean 'max_depth'"),
        ({"on_pages": print}, "no setting 'on_pages'; did you mean 'on_page'"),
        ({"own_hosts": ["*"]}, "own-host = '\\*': not a host of your own"),
        ({"politeness_ms": "slow"}, "politeness-ms = 'slow': expected a whole number"),
    ],
)
def test_what_is_wrong_is_answered_with_what_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gossamer.UsageError, match=words):
        gossamer.crawl("http://localhost/", **settings)
    assert list(tmp_path.iterdir()) == []
