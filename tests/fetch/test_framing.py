from __future__ import annotations

import pytest

from gossamer.fetch.plain.framing import IN_CHUNKS, TO_THE_END, Framing, framing_of
from gossamer.fetch.plain.head import read_head


def framed(*headers: str, status: str = "HTTP/1.1 200 OK") -> Framing:
    lines = [line.encode() + b"\r\n" for line in (status, *headers, "")]
    return framing_of(read_head(lines))


@pytest.mark.parametrize(
    ("headers", "framing"),
    [
        ([], Framing(TO_THE_END)),
        (["Content-Length: 5"], Framing(5, True)),
        (["Content-Length: 0"], Framing(0, True)),
        (["Content-Length: 005"], Framing(5, True)),
        (["Content-Length: 5", "Content-Length: 5"], Framing(5, True)),
        (["Content-Length: 5, 5"], Framing(5, True)),
        (["Content-Length: 999999999999999999"], Framing(999999999999999999, True)),
        (["Transfer-Encoding: chunked"], Framing(IN_CHUNKS, True)),
        (["Transfer-Encoding: Chunked", "Content-Length: 3"], Framing(IN_CHUNKS, False)),
        (["Transfer-Encoding: identity", "Content-Length: 3"], Framing(3, True)),
        (["Transfer-Encoding: identity, chunked"], Framing(IN_CHUNKS, True)),
        (["Transfer-Encoding:", "Content-Length: 3"], Framing(3, True)),
    ],
)
def test_where_a_body_ends(headers: list[str], framing: Framing) -> None:
    assert framed(*headers) == framing


@pytest.mark.parametrize("length", ["", "-1", "+5", "5 x", "0x5", "5.0", "five", "٥", "9" * 19])
def test_a_length_that_is_no_number_says_nothing(length: str) -> None:
    assert framed(f"Content-Length: {length}") == Framing(TO_THE_END)


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        (["Content-Length: 5", "Content-Length: 6"], "Content-Length contradicts itself"),
        (["Content-Length: 5, 6"], "Content-Length contradicts itself"),
        (["Transfer-Encoding: gzip, chunked"], "unexpected Transfer-Encoding: chunked, gzip"),
        (["Transfer-Encoding: xchunked"], "unexpected Transfer-Encoding: xchunked"),
        (["Transfer-Encoding: \x0bchunked"], "unexpected Transfer-Encoding: \x0bchunked"),
        (["Location: /a", "X: 1", "Location: /b"], "Location contradicts itself"),
    ],
)
def test_what_cannot_be_read(headers: list[str], error: str) -> None:
    assert framed(*headers) == Framing(TO_THE_END, error=error)


def test_one_location_said_twice_is_one() -> None:
    assert framed("Location: /a", "Location: /a", "Content-Length: 0") == Framing(0, True)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified", "101 Switching Protocols"])
@pytest.mark.parametrize("header", ["Content-Length: 5", "Transfer-Encoding: chunked", "X: 1"])
def test_some_statuses_have_no_body_whatever_the_head_says(status: str, header: str) -> None:
    framing = framed(header, status=f"HTTP/1.1 {status}")
    assert (framing.length, framing.keeps_alive) == (0, status[:3] != "101")


@pytest.mark.parametrize(
    ("version", "words", "keeps_alive"),
    [
        ("1.1", [], True),
        ("1.1", ["Connection: Close"], False),
        ("1.1", ["Connection: upgrade, close"], False),
        ("1.1", ["Connection: close", "Connection: keep-alive"], False),
        ("1.0", [], False),
        ("1.0", ["Connection: Keep-Alive"], True),
        ("1.0", ["Connection: keep-alive", "Connection: close"], False),
        ("2", [], True),
    ],
)
def test_which_connection_may_be_used_again(version: str, words: list[str], keeps_alive: bool) -> None:
    assert framed("Content-Length: 1", *words, status=f"HTTP/{version} 200 OK").keeps_alive is keeps_alive
