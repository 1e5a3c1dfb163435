"""Whether a host has a key, from the row of its file; and how much hosts may report."""

from __future__ import annotations

from hashlib import sha1

import pytest

from gossamer.model.records import FetchKind, Outcome, Source, UrlRecord, UrlState
from gossamer.web import key_files, notices
from gossamer.web.key_files import KeyState, RecentKeys, verdict_on
from gossamer.web.notices import Allowance

NOW = 1_700_000_000.0
KEY = "0123456789abcdef"


def row(content: bytes = b"", outcome: Outcome = Outcome.OK, age_s: float = 1.0, **fields: object) -> UrlRecord:
    state = UrlState.DONE if outcome is Outcome.OK else UrlState.DEAD
    known = UrlRecord("http://a.test/k.txt", state, 1, Source.NOTICE, FetchKind.PAGE, b"", 0, 1, 0, 0, 0.0, NOW)
    known.outcome, known.fetched_at = outcome.value, NOW - age_s
    known.content_hash = sha1(content).digest()[:16]
    for name, value in fields.items():
        setattr(known, name, value)
    return known


@pytest.mark.parametrize("content", [KEY, f"{KEY}\n", f"{KEY}\r\n", f"\ufeff{KEY}"])
def test_a_file_with_the_key_alone_proves_it(content: str) -> None:
    verdict = verdict_on(row(content.encode()), KEY, NOW)
    assert (verdict.state, verdict.is_stale) == (KeyState.RIGHT, False)
    assert verdict_on(row(content.encode(), age_s=2 * key_files.REFRESH_S), KEY, NOW).is_stale


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (row(b"another key"), "it does not contain this key alone"),
        (row(f"{KEY} {KEY}".encode()), "it does not contain this key alone"),
        (row(outcome=Outcome.CLIENT_ERROR, status=404), "client_error, status 404"),
        (row(outcome=Outcome.ROBOTS_DENIED), "robots.txt forbids it"),
        (row(KEY.encode(), outcome=Outcome.REDIRECT, status=301), "redirect, status 301"),
        (row(outcome=Outcome.BLOCKED_ADDRESS), "blocked_address"),
    ],
)
def test_anything_else_does_not(known: UrlRecord, reason: str) -> None:
    verdict = verdict_on(known, KEY, NOW)
    assert (verdict.state, verdict.reason) == (KeyState.WRONG, reason)
    known.fetched_at -= key_files.WRONG_S
    assert verdict_on(known, KEY, NOW).state is KeyState.UNKNOWN, "it may have changed meanwhile"


def test_a_file_that_was_not_fetched_proves_nothing() -> None:
    assert verdict_on(None, KEY, NOW).state is KeyState.UNKNOWN
    assert verdict_on(row(KEY.encode(), state=UrlState.QUEUED), KEY, NOW).state is KeyState.UNKNOWN


def test_right_keys_are_remembered_for_a_while_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_files, "MAX_KEYS", 2)
    keys = RecentKeys(key_files.RIGHT_S)
    for name in "abc":
        keys.add(name, KEY, NOW)
    assert [keys.has(name, KEY, NOW) for name in "abc"] == [False, True, True]
    assert not keys.has("b", "another key", NOW)
    assert not keys.has("b", KEY, NOW + key_files.RIGHT_S)


def test_hosts_have_an_allowance_per_hour_and_all_of_them_one(monkeypatch: pytest.MonkeyPatch) -> None:
    allowance = Allowance(per_name=10, overall=25)
    assert allowance.wait_s("a", 10, NOW) == 0
    assert allowance.wait_s("a", 1, NOW + 600) == 3000
    assert allowance.wait_s("b", 11, NOW) == 3600, "more than it ever may"
    assert allowance.wait_s("b", 10, NOW) == 0
    assert allowance.wait_s("c", 6, NOW + 600) == 3000, "all together"
    assert allowance.wait_s("c", 5, NOW + 600) == 0
    assert allowance.wait_s("a", 10, NOW + 3600) == 0
    monkeypatch.setattr(notices, "MAX_NAMES", 2)
    for number in range(5):
        Allowance.wait_s(allowance, f"host {number}", 0, NOW)
    assert len(allowance._used) <= 3
