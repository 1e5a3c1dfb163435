"""An answer as bytes that come in pieces, without a socket."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.fetch.exchange import exchange_of, judged
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.plain.transfer import PlainTransfer
from gossamer.fetch.transfer import FetchRequest
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation
from tests.amount import amount
from tests.fuzz.test_framing import ANSWERS

LIMITS = FetchLimits(connect_timeout_s=8, first_byte_timeout_s=10, silence_s=10, total_timeout_s=30)
TIGHT = FetchLimits(max_bytes=12, max_headers=3, max_header_line_bytes=60, max_header_bytes=120, max_interim_answers=2)
OK_HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TEXT_ONLY = frozenset(("text/",))

LINES = st.sampled_from(
    [
        b"Content-Length: 5\r\n",
        b"Content-Length: 5\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Content-Type: image/png\r\n",
        b"X: y\r\n",
        b" goes on\r\n",
        b"\tgoes on\n",
        b"X: y\r\r\n",
        b"X: a\0b\r\n",
        b"no colon\r\n",
    ]
)
STARTS = st.sampled_from(
    [OK_HEAD, b"HTTP/1.0 404 No\n", b"http/1.1 200 OK\r\n", b"HTTP/1.1 204 \r\n", b"HTTP/2 200\r\n"]
)
INTERIMS = st.sampled_from(
    [b"", b"HTTP/1.1 100 Go on\r\n\r\n", b"HTTP/1.1 103 Hints\nLink: x\n\n", b"HTTP/1.1 099 ?\r\n\r\n"]
)
ENDS = st.sampled_from([b"\r\n", b"\n", b"\n\r\n", b"\r\r\n", b""])
BODIES = st.sampled_from(
    [
        b"",
        b"hello",
        b"hello, and more",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;x=y\nhello\n0\nT: v\n\n",
        b"1\r\na\r\n1\r\nb\r\n2\r\nab\r\n0\r\nT: v\r\nno colon\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhel",
        b"zz\r\nhello\r\n",
        b"FFFFFFFFFFFFFFFFF\r\nx",
        b"0000000000000000005\r\nhello\r\n00\r\n\r\nbehind",
    ]
)
LIKELY = st.tuples(INTERIMS, STARTS, st.lists(LINES, max_size=4).map(b"".join), ENDS, BODIES).map(b"".join)


def transfer_of(limits: FetchLimits = LIMITS, wanted_types: frozenset[str] | None = None) -> PlainTransfer:
    transfer = PlainTransfer(limits, AddressPolicy(), lambda: 100.0)
    request = FetchRequest("http://site.test/", ("192.0.2.1",), wanted_types=wanted_types)
    transfer.prepare(request, ["192.0.2.1"], lambda _: None, None)
    transfer.record_sent(b"")
    return transfer


def heard(pieces: Iterable[bytes], transfer: PlainTransfer | None = None) -> Exchange:
    """Say these pieces, and hang up behind them."""
    transfer = transfer or transfer_of()
    for piece in pieces:
        if transfer.feed(piece):
            return exchange_of(transfer, *judged(transfer))
    return exchange_of(transfer, *transfer.hang_up())


def cut(data: bytes, places: Iterable[int]) -> Iterator[bytes]:
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return (data[start:end] for start, end in pairwise(ends))


def gist(exchange: Exchange) -> tuple[object, ...]:
    return (
        exchange.outcome,
        exchange.error,
        exchange.status,
        exchange.http_version,
        exchange.response_head,
        exchange.headers,
        exchange.body,
        exchange.truncated,
    )


@given(LIKELY | ANSWERS, st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from([None, TEXT_ONLY]))
@settings(max_examples=amount(125, 500))
def test_the_pieces_in_which_an_answer_arrives_change_nothing(
    data: bytes, places: list[int], wanted: frozenset[str] | None
) -> None:
    whole = heard([data] if data else [], transfer_of(wanted_types=wanted))
    assert gist(heard(cut(data, places), transfer_of(wanted_types=wanted))) == gist(whole)
    assert gist(heard(cut(data, range(len(data))), transfer_of(wanted_types=wanted))) == gist(whole)


@given(LIKELY, st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=amount(75, 300))
def test_the_caps_hold_however_an_answer_is_cut(data: bytes, places: list[int]) -> None:
    transfer = transfer_of(TIGHT)
    heard(cut(data, places), transfer)
    assert sum(map(len, transfer.chunks)) == transfer.size <= TIGHT.max_bytes
    assert len(transfer.lines) <= len(data.splitlines())
    if transfer.verdict is None:
        assert sum(map(len, transfer.lines)) <= TIGHT.max_header_bytes


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\n\r\n", b"\r\n\n"])
def test_a_head_ends_at_its_first_blank_line(end: bytes) -> None:
    exchange = heard([b"HTTP/1.1 200 OK\nX: y" + end + b"\r\n\n\nhi"])
    assert (exchange.headers, exchange.body) == ([("x", "y")], b"\r\n\n\nhi")


def test_the_final_head_is_the_one_that_was_framed_by() -> None:
    exchange = heard([b"HTTP/1.1 100 Go on\r\n\r\nhttp/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])
    assert (exchange.status, exchange.headers, exchange.body) == (200, [("content-length", "2")], b"hi")


def test_the_part_of_a_head_that_arrived_is_reported_if_it_breaks_off() -> None:
    transfer = transfer_of()
    transfer.feed(OK_HEAD + b"X: y\r\nZ:")
    exchange = exchange_of(transfer, Outcome.TIMEOUT, "")
    assert (exchange.status, exchange.headers, exchange.truncated) == (200, [("x", "y")], Truncation.NONE)


@pytest.mark.parametrize(
    "data",
    [
        OK_HEAD + b"no colon\r\nContent-Length: 2\r\n\r\n",
        OK_HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\n",
        OK_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        OK_HEAD + b"X: 1\r\n" * 1001 + b"Content-Length: 0\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"1\r\nab",
        CHUNKED + b"1;" + b"x" * 20_000,
        CHUNKED + b"1;" + b"x" * 20_000 + b"\r\na\r\n",
        CHUNKED + b"0\r\nno colon\r\n",
        CHUNKED + b"0\r\n" + b"T: v\r\n" * 1001,
        CHUNKED + b"0\r\nT: " + b"v" * 70_000,
        OK_HEAD + b"Content-Length: 2\r\n\r\nhi there",
        b"HTTP/1.1 204 No\r\n\r\nhi",
        CHUNKED + b"0\r\n\r\nbehind",
    ],
    ids=lambda data: data[:60].decode(),
)
def test_a_connection_is_not_used_again_behind_what_is_out_of_order(data: bytes) -> None:
    transfer = transfer_of()
    assert transfer.feed(data)
    judged(transfer)
    assert not transfer.is_reusable


def test_a_connection_is_not_used_again_if_an_answer_was_not_wanted_to_its_end() -> None:
    for limits, wanted in ((TIGHT, None), (LIMITS, TEXT_ONLY)):
        transfer = transfer_of(limits, wanted)
        assert transfer.feed(OK_HEAD + b"Content-Length: 20\r\nContent-Type: image/png\r\n\r\n" + b"x" * 13)
        assert not transfer.is_reusable


@pytest.mark.parametrize("length", [2**14, 2**16])
def test_a_line_between_chunks_is_capped_also_if_it_comes_in_one_piece(length: int) -> None:
    line = b"1;" + b"x" * (length - 1)
    in_one, dripping = (
        [CHUNKED + line + b"\r\na\r\n0\r\n\r\n"],
        [CHUNKED, line[:50], line[50:], b"\r\na\r\n0\r\n\r\n"],
    )
    assert heard(in_one).outcome is heard(dripping).outcome is Outcome.HEADER_TOO_LARGE


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (OK_HEAD + b"X: " + b"v" * 60_000, b"v"),
        (OK_HEAD + (b"X: " + b"v" * 240 + b"\r\n") * 900, b"v"),
        (b"HTTP/1.1 200 " + b"v" * 60_000, b"v"),
        (b"HTTP/1.1 100 Go on\r\n" + b"X: y\r\n" * 900 + b"\r\n" + OK_HEAD, b"v"),
        (CHUNKED + b"1;" + b"x" * 13_000, b"x"),
        (CHUNKED + b"0\r\n" + b"T: v\r\n" * 900 + b"T: " + b"v" * 60_000, b"v"),
    ],
    ids=["a line", "lines", "a status line", "behind an interim", "an extension", "a trailer"],
)
def test_a_byte_at_a_time_costs_no_more_if_much_came_before(start: bytes, drop: bytes) -> None:
    transfer = transfer_of()
    for at in range(0, len(start), 50_000):
        assert not transfer.feed(start[at : at + 50_000])
    began = time.process_time()
    for _ in range(2000):
        assert not transfer.feed(drop)
    assert time.process_time() - began < 0.12  # 5 to 15 ms; looked at from its beginning each time, 180 to 1,100


def test_tiny_chunks_that_come_at_once_are_one_piece() -> None:
    transfer = transfer_of()
    assert not transfer.feed(CHUNKED + b"2\r\nhi\r\n" * 5000)
    assert (len(transfer.chunks), transfer.size) == (1, 10_000)


def test_a_body_in_tiny_pieces_takes_no_more_memory_than_one_in_large_ones() -> None:
    transfer = transfer_of()
    transfer.feed(OK_HEAD + b"\r\n")
    most = 0
    for number in range(20_000):
        transfer.feed(b"%d" % (number % 10) * 2)
        most = max(most, len(transfer.chunks))
    assert most < 800
    assert b"".join(transfer.chunks) == b"00112233445566778899" * 2000


def test_an_idle_transfer_holds_nothing_of_its_last_answer() -> None:
    transfer = transfer_of()
    transfer.feed(OK_HEAD + b"X: " + b"v" * 50_000)
    transfer.release()
    assert not any(isinstance(held := getattr(transfer, name), bytes) and held for name in PlainTransfer.__slots__)


@pytest.mark.parametrize(
    ("said", "at", "reason"),
    [
        ([], 109.0, ""),
        ([], 111.0, "no response head"),
        ([b"HTTP/1.1 100 Go on\r\n\r\n"], 111.0, "no response head"),
        ([OK_HEAD, b"X: y\r\n"], 111.0, "no response head"),
        ([OK_HEAD + b"Content-Length: 9\r\n\r\n"], 109.0, ""),
        ([OK_HEAD + b"Content-Length: 9\r\n\r\n"], 111.0, "silent"),
        ([OK_HEAD + b"Content-Length: 9\r\n\r\n", b"a"], 111.0, ""),
        ([CHUNKED], 111.0, "silent"),
        ([CHUNKED, b"1\r\na\r\n0\r\n", b"T: v\r\n"], 131.0, "no whole answer"),
    ],
)
def test_every_part_of_an_answer_has_its_time_limit(said: list[bytes], at: float, reason: str) -> None:
    transfer = transfer_of()
    for piece in said:
        transfer.feed(piece)
    assert re.match(reason or "$", transfer.overdue(at))


def test_a_chunk_that_never_grows_the_body_is_silence() -> None:
    transfer = transfer_of()
    transfer.feed(CHUNKED + b"1\r\na\r\n1;")
    reasons = []
    for second in range(101, 113):
        transfer.feed(b"x")
        reasons.append(transfer.overdue(float(second)))
    assert reasons[:10] == [""] * 10
    assert "silent" in reasons[-1]
