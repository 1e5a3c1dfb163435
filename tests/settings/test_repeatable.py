from __future__ import annotations

import pytest

from gossamer.settings.budget import Budget
from gossamer.settings.load import completed, merged
from gossamer.settings.model import PaceSetting, Settings
from gossamer.settings.repeatable import Repeatability, is_repeatable

ONE_BY_ONE = {"connections": 1, "politeness_ms": 0}


def _settings(**values: object) -> Settings:
    return completed(merged(("test", values)), has_domain_list=False)


def _caveat(megabytes: int, *, is_rereading: bool = False, **values: object) -> str:
    settings = _settings(**{**ONE_BY_ONE, **values})
    budget = Budget.of(megabytes << 20, workers=1, connections=1, max_bytes=settings.max_bytes)
    return Repeatability.of(settings, budget).caveat(is_rereading=is_rereading)


def test_one_connection_and_no_delay_are_repeatable() -> None:
    assert is_repeatable(_settings(**ONE_BY_ONE))


@pytest.mark.parametrize(
    "other",
    [
        {"connections": 2},
        {"workers": 2},
        {"politeness_ms": 1},
        {"domain_politeness_ms": 1},
        {"address_politeness_ms": 1},
        {"pace": (PaceSetting("a.test", delay=1.0),)},
    ],
)
def test_anything_that_waits_or_runs_beside_another_is_not(other: dict[str, object]) -> None:
    assert not is_repeatable(_settings(**{**ONE_BY_ONE, **other}))


def test_with_room_for_every_host_there_is_nothing_to_say() -> None:
    assert _caveat(3000) == ""


def test_a_low_ceiling_is_named_with_its_room_and_what_gives_the_same_order() -> None:
    caveat = _caveat(100)
    assert "may differ from runs with another ceiling" in caveat
    assert "room for 1630 hosts" in caveat
    assert "--memory 100M" in caveat
    assert "\n" not in caveat


def test_reading_stored_pages_again_is_named() -> None:
    assert "may differ between runs" in _caveat(3000, is_rereading=True)


def test_ranks_that_are_computed_beside_the_crawl_are_named() -> None:
    assert "domains are ranked beside the crawl (--rank-every)" in _caveat(3000, rank_every=100)
    assert _caveat(3000, rank_every=0) == ""


def test_nothing_is_said_if_nothing_is_promised() -> None:
    assert _caveat(100, is_rereading=True, connections=2) == ""
