"""Framing, time and codings (N, Z), as a whole crawl saw them."""

from __future__ import annotations

import pytest

from gossamer.model.records import UrlState
from tests.hostile.crawling import Aftermath

CAP = 5_000_000


def is_lost(after: Aftermath, name: str, outcome: str, *, tries: int = 1) -> None:
    """The page is a dead letter of this outcome, was asked for that often, and nothing of it is archived."""
    row = after.row(name)
    assert (row.state, row.outcome) == (UrlState.DEAD, outcome)
    assert row.error or row.status
    assert after.times_asked(name) == tries
    assert not after.archived(name) or outcome == "bad_status"


def is_page(after: Aftermath, name: str, path: str = "/") -> None:
    row = after.row(name, path)
    assert (row.state, row.outcome, row.truncated) == (UrlState.DONE, "ok", "")
    assert len(after.archived(name, path)) == 1


def is_tried_again(after: Aftermath, name: str, outcome: str) -> None:
    """A failure that may pass is tried again after growing waits, and never counts as a page."""
    waits = [event["wait_s"] for event in after.told(name, "retry") if event["reason"].startswith(outcome)]
    assert waits
    assert waits == sorted(waits)
    assert after.row(name).outcome in ("", outcome)
    assert not after.archived(name)
    assert not after.told(name, "fetch_ok")


def test_n01_endless_headers(after: Aftermath) -> None:
    is_lost(after, "n01", "header_too_large")
    assert "262144 bytes" in after.row("n01").error


def test_n02_one_endless_header_line(after: Aftermath) -> None:
    is_lost(after, "n02", "header_too_large")


def test_n03_an_endless_body_is_cut_at_the_cap_and_says_so(after: Aftermath) -> None:
    row = after.row("n03")
    assert (row.outcome, row.truncated, row.wire_bytes) == ("ok", "length", CAP)
    (record,) = after.archived("n03")
    assert record.fields["warc-truncated"] == "length"


def test_n04_a_dripping_body(after: Aftermath) -> None:
    is_lost(after, "n04", "timeout", tries=2)
    assert after.row("n04").truncated == "time"
    assert all(event["total_ms"] < 4000 for event in after.told("n04", "error"))


def test_n05_dripping_headers(after: Aftermath) -> None:
    is_lost(after, "n05", "timeout", tries=2)
    assert "response head" in after.row("n05").error


def test_n06_silence(after: Aftermath) -> None:
    is_lost(after, "n06", "timeout", tries=2)
    assert after.host("n06").failures_in_a_row == 1, "the same URL failed again"


def test_n07_content_length_larger_than_the_body(after: Aftermath) -> None:
    is_tried_again(after, "n07", "disconnected")


def test_n08_content_length_smaller_than_the_body(after: Aftermath) -> None:
    is_page(after, "n08")
    is_page(after, "n08", "/2")
    assert after.row("n08").content_bytes == len('<a href="/2">')
    first, second = after.server.requests("n08")
    assert first.connection != second.connection


def test_n09_absurd_content_length_is_read_to_the_end(after: Aftermath) -> None:
    for name in ("n09a", "n09b"):
        is_page(after, name)
        assert after.row(name).content_bytes == len("<p>hello")


def test_n10_the_same_content_length_twice(after: Aftermath) -> None:
    is_page(after, "n10")


def test_n11_transfer_encoding_wins(after: Aftermath) -> None:
    is_page(after, "n11")
    is_page(after, "n11", "/2")
    assert after.row("n11").content_bytes == len('<a href="/2">')
    assert after.row("n11", "/2").content_bytes == len("<p>second pa")


def test_n12_a_bad_chunk_size(after: Aftermath) -> None:
    is_lost(after, "n12", "protocol_error")
    assert after.row("n12").truncated == "disconnect"


def test_n13_cut_before_the_last_chunk(after: Aftermath) -> None:
    is_tried_again(after, "n13", "disconnected")


def test_n14_http_0_9(after: Aftermath) -> None:
    is_lost(after, "n14", "protocol_error")


def test_n15_another_protocol(after: Aftermath) -> None:
    is_lost(after, "n15", "protocol_error")


def test_n16_endless_interim_answers(after: Aftermath) -> None:
    is_lost(after, "n16", "protocol_error")
    assert "interim" in after.row("n16").error


def test_n17_switching_protocols(after: Aftermath) -> None:
    is_lost(after, "n17", "protocol_error")


def test_n18_a_body_that_must_not_be_there(after: Aftermath) -> None:
    assert after.row("n18", "/204").content_bytes == 0
    is_page(after, "n18", "/after")
    by_path = {seen.path: seen.connection for seen in after.server.requests("n18")}
    assert by_path["/204"] != by_path["/after"]


def test_n19_not_modified_unasked(after: Aftermath) -> None:
    row = after.row("n19")
    assert (row.state, row.outcome) == (UrlState.DEAD, "bad_status")


def test_n20_controls_in_a_header(after: Aftermath) -> None:
    assert after.row("n20", "/nul").outcome == "protocol_error"
    for path in ("/cr", "/lf"):
        assert after.row("n20", path).outcome in ("ok", "protocol_error")
    for record in after.records():
        head = record.http_parts()[0] if record.type == "response" else b""
        assert b"\0" not in head


def test_n21_odd_statuses(after: Aftermath) -> None:
    assert after.row("n21a").outcome == "bad_status"
    assert after.row("n21b").outcome in ("bad_status", "protocol_error")
    assert after.row("n21c").outcome == "bad_status"
    assert any(event["status"] == 599 for event in after.told("n21d", "retry"))


def test_n22_reset_in_the_middle(after: Aftermath) -> None:
    is_tried_again(after, "n22", "disconnected")


@pytest.mark.parametrize("name", ["z01", "z01b"])
def test_z01_a_gzip_bomb_is_cut_at_the_cap(after: Aftermath, name: str) -> None:
    row = after.row(name)
    assert row.truncated == "length"
    assert row.content_bytes <= CAP
    assert row.wire_bytes <= 1_100_000


def test_z02_ten_codings(after: Aftermath) -> None:
    row = after.row("z02")
    assert row.error.startswith("undecodable")
    assert row.content_bytes == row.wire_bytes


def test_z03_a_brotli_bomb(after: Aftermath) -> None:
    row = after.row("z03")
    assert row.truncated == "length"
    assert row.content_bytes <= CAP


def test_z04_a_huge_zstd_window(after: Aftermath) -> None:
    assert after.row("z04").error.startswith("undecodable")


def test_z05_says_gzip_and_is_plain(after: Aftermath) -> None:
    assert after.row("z05").title == "plain"
    is_page(after, "z05", "/found")


def test_z06_a_cut_gzip_stream(after: Aftermath) -> None:
    row = after.row("z06")
    assert (row.title, row.truncated) == ("half", "disconnect")
    assert row.content_bytes > row.wire_bytes


def test_z07_an_unknown_coding_is_stored_and_not_read(after: Aftermath) -> None:
    row = after.row("z07")
    assert row.error == "undecodable: foo"
    assert row.title == ""
    assert after.find(after.url("z07", "/hidden")) is None
    assert after.archived("z07")
