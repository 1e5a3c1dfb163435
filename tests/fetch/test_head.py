from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.fetch.plain.head import NO_HEAD, read_head

FINAL = [b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n", b"\r\n"]
INTERIM = [b"HTTP/1.1 103 Early\r\n", b"Link: x\r\n", b"\r\n"]


def test_the_final_head_is_found_behind_interim_ones() -> None:
    head = read_head(INTERIM + INTERIM + FINAL)
    assert head.status == 200
    assert head.raw == b"".join(FINAL)
    assert head.headers == [("a", "1")]


def test_trailers_are_ignored_even_if_they_look_like_a_head() -> None:
    head = read_head([*FINAL, b"HTTP/1.1 500 No: x\r\n", b"B: 2\r\n", b"\r\n"])
    assert head.status == 200
    assert head.headers == [("a", "1")]


def test_a_head_without_its_end_is_not_whole() -> None:
    head = read_head(FINAL[:2])
    assert not head.is_whole
    assert head.headers == [("a", "1")]
    assert read_head(FINAL).is_whole


def test_no_lines_are_no_head() -> None:
    assert read_head([]) == NO_HEAD


def test_bare_line_feeds_end_a_head_too() -> None:
    head = read_head([b"HTTP/1.0 404 No\n", b"A: 1\n", b"\n", b"Late: 1\n"])
    assert (head.status, head.http_version) == (404, "1.0")
    assert head.headers == [("a", "1")]


def test_each_head_ends_at_its_own_blank_line_whatever_ends_the_lines() -> None:
    interim = [b"HTTP/1.1 103 Early\n", b"Link: x\n", b"\n"]
    assert read_head(interim + FINAL).headers == [("a", "1")]
    assert read_head([b"HTTP/1.1 200 OK\r\n", b"A: 1\n", b"\n", b"Late: 1\r\n", b"\r\n"]).headers == [("a", "1")]


def test_the_final_head_is_found_in_small_letters_too() -> None:
    assert read_head([*INTERIM, b"http/1.1 200 OK\r\n", b"\r\n"]).status == 200


def test_all_values_of_a_list_header_are_joined() -> None:
    lines = [b"HTTP/2 200 \r\n", b"content-encoding: gzip\r\n", b"Content-Encoding: br\r\n", b"\r\n"]
    head = read_head(lines)
    assert head.http_version == "2"
    assert head.values("content-encoding") == "gzip,br"
    assert head.value("content-encoding") == "gzip"


def test_headers_with_control_characters_or_without_a_colon_are_dropped() -> None:
    lines = [FINAL[0], b"A: x\0y\r\n", b"B: x\ry\r\n", b"nonsense\r\n", b": x\r\n", b"C: ok\r\n", b"\r\n"]
    assert read_head(lines).headers == [("c", "ok")]


@given(st.lists(st.sampled_from([*FINAL, *INTERIM, b"\n", b"", b"HTTP/", b"x", b"HTTP/1.1 \r\n"]) | st.binary()))
def test_no_lines_make_it_fail(lines: list[bytes]) -> None:
    head = read_head(lines)
    assert 0 <= head.status <= 999
    assert head.raw in b"".join(lines)
