"""What a settled visit means to an indexer."""

from __future__ import annotations

from typing import Any

import pytest

from gossamer.core.catalog import change_of, record_of
from gossamer.records import ChangeKind, Outcome, QueuedUrl, Result, Source

URL = QueuedUrl("http://h.test/", b"i" * 16, "h.test", 0, 1, 0)


def _change(*, before_hash: bytes = b"", is_soft_404: bool = False, **fields: Any) -> ChangeKind | None:
    before = record_of(URL)
    before.content_hash = before_hash
    result = Result(1, **{"outcome": Outcome.OK, "status": 200, "content_hash": b"c" * 16, **fields})
    return change_of(URL, result, before, is_soft_404=is_soft_404)


def test_a_new_page_is_an_upsert() -> None:
    assert _change() is ChangeKind.UPSERT
    assert _change(before_hash=b"other") is ChangeKind.UPSERT


def test_the_same_content_is_no_change() -> None:
    assert _change(before_hash=b"c" * 16) is ChangeKind.UNCHANGED
    assert _change(outcome=Outcome.NOT_MODIFIED, status=304, content_hash=b"") is ChangeKind.UNCHANGED


def test_copies_are_duplicates() -> None:
    assert _change(duplicate_of=b"o" * 16) is ChangeKind.DUPLICATE
    assert _change(near_duplicate_of=b"o" * 16, similarity=0.9) is ChangeKind.DUPLICATE


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_found_is_gone(status: int) -> None:
    assert _change(outcome=Outcome.CLIENT_ERROR, status=status) is ChangeKind.GONE


def test_not_found_with_status_200_is_gone() -> None:
    assert _change(is_soft_404=True) is ChangeKind.GONE


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.TIMEOUT, Outcome.REDIRECT, Outcome.TYPE_REFUSED])
def test_other_ends_say_nothing_of_the_page(outcome: Outcome) -> None:
    assert _change(outcome=outcome, status=0) is None


def test_our_own_probes_are_nobodys_pages() -> None:
    probe = QueuedUrl("http://h.test/x", b"p" * 16, "h.test", 0, 1, 0, source=Source.PROBE)
    assert change_of(probe, Result(1, Outcome.CLIENT_ERROR, status=404), None, is_soft_404=False) is None
