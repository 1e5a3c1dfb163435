"""How a row of the catalog follows from what happened, and what a settled visit means to an indexer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.core.ledger.catalog import change_of, finished_record, queued_from, record_of, times_of
from gossamer.core.ledger.rows import decode_url, encode
from gossamer.model.records import (
    ArchiveSpan,
    ChangeKind,
    FetchKind,
    Outcome,
    QueuedUrl,
    RequestTimes,
    Result,
    Source,
    Truncation,
    UrlRecord,
    UrlState,
)

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


# Rows are made by place, for speed: a field that moves must not take another's value along.
_URL = QueuedUrl(
    url="http://h.test/a",
    id=b"i" * 16,
    host="h.test",
    priority=1,
    seq=2,
    depth=3,
    kind=FetchKind.SITEMAP,
    source=Source.REDIRECT,
    parent=b"p" * 16,
    hops=4,
    attempt=5,
    not_before=6.0,
    found_at=7.0,
    https_first=True,
    etag="of the visit before",
    last_modified="likewise",
    lastmod="2026-01-01",
)
_RESULT = Result(
    task_id=8,
    outcome=Outcome.CLIENT_ERROR,
    status=404,
    error="error",
    finished_at=9.0,
    wire_bytes=10,
    content_bytes=11,
    content_type="text/html",
    charset="utf-8",
    language="en",
    title="title",
    truncated=Truncation.LENGTH,
    content_hash=b"c" * 16,
    duplicate_of=b"d" * 16,
    etag="etag",
    last_modified="date",
    redirect_to="http://h.test/b",
    archived=ArchiveSpan("file", 12, 13),
    directives="noindex",
    usage="usage",
    near_duplicate_of=b"n" * 16,
    similarity=0.95,
    nofollow_links=14,
    words=15,
)


def test_the_row_of_a_url_that_waits_says_what_the_url_says() -> None:
    row = record_of(_URL)
    shared = set(UrlRecord.__struct_fields__) & set(QueuedUrl.__struct_fields__)
    assert {name: getattr(row, name) for name in shared} == {name: getattr(_URL, name) for name in shared}
    assert row.state is UrlState.QUEUED
    assert queued_from(_URL.id, _URL.host, row) == _URL


def test_the_row_after_a_fetch_says_what_url_and_result_say() -> None:
    row = finished_record(_URL, UrlState.DEAD, _RESULT, None)
    of_result = set(UrlRecord.__struct_fields__) & set(Result.__struct_fields__)
    of_url = (set(UrlRecord.__struct_fields__) & set(QueuedUrl.__struct_fields__)) - of_result
    assert {name: getattr(row, name) for name in of_url} == {name: getattr(_URL, name) for name in of_url}
    assert {name: getattr(row, name) for name in of_result} == {name: getattr(_RESULT, name) for name in of_result}
    assert (row.state, row.fetched_at, row.visits) == (UrlState.DEAD, 9.0, 1)


def test_a_row_says_how_long_the_request_took() -> None:
    kept = Result(1, Outcome.OK, sent_at=10.0, first_byte_at=10.05, finished_at=10.3)
    assert times_of(kept) == RequestTimes(50, 300)
    new = replace(kept, connect_s=0.02, tls_s=0.08)
    assert times_of(new) == RequestTimes(50, 400, 20, 80)
    assert times_of(replace(new, tls_s=-1.0)) == RequestTimes(50, 320, 20, -1)
    assert finished_record(_URL, UrlState.DONE, new, None).times == RequestTimes(50, 400, 20, 80)


@pytest.mark.parametrize("result", [Result(1, Outcome.TIMEOUT, sent_at=10.0), Result(1, Outcome.OK, finished_at=9.0)])
def test_without_an_answer_or_from_the_archive_there_are_no_times(result: Result) -> None:
    assert times_of(result) is None


def test_rows_that_were_written_without_times_are_read() -> None:
    row = finished_record(_URL, UrlState.DONE, _RESULT, None)
    old = msgspec.msgpack.encode(msgspec.msgpack.decode(encode(row))[:-1])
    assert decode_url(old) == row
