"""The network, coding and TLS rows of the catalogue of hostile servers (N, Z, R, L)."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from gossamer.fetch.limits import FetchLimits
from gossamer.model.records import Outcome, Truncation
from gossamer.parse.dispatch import declared_type

from .servers import QUICK, Script, Visit, answer, fetched, keeps, run, says, stage

OK_HEAD = b"HTTP/1.1 200 OK\r\n"
PATIENT = FetchLimits(connect_timeout_s=3, first_byte_timeout_s=3, silence_s=3, total_timeout_s=9, max_bytes=100_000)


def floods(start: bytes, repeated: bytes) -> Script:
    """A server that never stops sending."""

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(start)
        while True:
            await visit.send(repeated)

    return script


def drips(start: bytes, drop: bytes, every_s: float = 0.05) -> Script:
    """A server that always sends a little more."""

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(start)
        while True:
            await visit.send(drop)
            await asyncio.sleep(every_s)

    return script


async def _silence(visit: Visit) -> None:
    await visit.request()
    await visit.request()


@pytest.mark.parametrize(("size", "reason"), [(1000, "262144 bytes of headers"), (10, "1000 headers")])
def test_n01_endless_headers(size: int, reason: str) -> None:
    exchange = fetched(floods(OK_HEAD, b"X-N: " + b"v" * size + b"\r\n"), limits=PATIENT)
    assert exchange.outcome is Outcome.HEADER_TOO_LARGE
    assert reason in exchange.error


def test_n01_the_cap_on_headers_is_exact() -> None:
    def head(count: int) -> bytes:
        return OK_HEAD + b"X: 1\r\n" * (count - 1) + b"Content-Length: 2\r\n\r\nhi"

    assert fetched(says(head(1000))).outcome is Outcome.OK
    assert fetched(says(head(1001))).outcome is Outcome.HEADER_TOO_LARGE


def test_n01_endless_short_headers() -> None:
    assert fetched(floods(OK_HEAD, b"X: 1\r\n" * 50), limits=PATIENT).outcome is Outcome.HEADER_TOO_LARGE


def test_n01_too_many_headers_before_a_body() -> None:
    head = OK_HEAD + b"X: 1\r\n" * 1200 + b"Content-Length: 2\r\n\r\nhi"
    exchange = fetched(says(head))
    assert exchange.outcome is Outcome.HEADER_TOO_LARGE
    assert exchange.body == b""


def test_n01_a_thousand_headers_are_still_taken() -> None:
    assert fetched(says(OK_HEAD + b"X: 1\r\n" * 900 + b"Content-Length: 2\r\n\r\nhi")).outcome is Outcome.OK


@pytest.mark.parametrize("size", [1, 1000])
def test_n01_endless_trailers(size: int) -> None:
    head = OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"
    exchange = fetched(floods(head, b"X: " + b"v" * size + b"\r\n"), limits=PATIENT)
    assert exchange.outcome is Outcome.HEADER_TOO_LARGE
    assert exchange.body == b"hi"


def test_n02_one_endless_header_line() -> None:
    assert fetched(floods(OK_HEAD + b"X: ", b"v" * 10_000), limits=PATIENT).outcome is Outcome.HEADER_TOO_LARGE


def test_n02_a_header_line_over_the_cap() -> None:
    head = OK_HEAD + b"X: " + b"v" * 70_000 + b"\r\nContent-Length: 2\r\n\r\nhi"
    assert fetched(says(head)).outcome is Outcome.HEADER_TOO_LARGE


def test_n03_an_endless_chunked_body_is_cut_at_the_cap() -> None:
    chunk = b"%x\r\n%b\r\n" % (65536, b"x" * 65536)
    exchange = fetched(floods(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk), limits=PATIENT)
    assert exchange.outcome is Outcome.OK
    assert exchange.truncated is Truncation.LENGTH
    assert len(exchange.body) == exchange.wire_bytes == PATIENT.max_bytes


@pytest.mark.parametrize(
    "piece", [b"1;%b\r\nx\r\n" % (b"e" * 16_000), b"%b1\r\nx\r\n" % (b"0" * 16_000), b"1\r\nx\r\n" * 3000]
)
def test_n03_what_is_between_chunks_counts_against_the_cap(piece: bytes) -> None:
    sent = 0

    async def script(visit: Visit) -> None:
        nonlocal sent
        await visit.request()
        await visit.send(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            await visit.send(piece)
            sent += len(piece)

    exchange = fetched(script, limits=PATIENT)
    assert exchange.outcome is Outcome.OK
    assert exchange.truncated is Truncation.LENGTH
    assert 0 < len(exchange.body) < PATIENT.max_bytes
    assert sent < 50_000_000  # most of it in the buffers of the sockets; without a cap, gigabytes


def test_n03_the_cap_of_a_request_wins() -> None:
    exchange = fetched(says(answer(b"x" * 5000)), max_bytes=1000)
    assert exchange.body == b"x" * 1000
    assert exchange.truncated is Truncation.LENGTH


def test_n03_a_body_as_large_as_the_cap_is_whole() -> None:
    exchange = fetched(says(answer(b"x" * 1000)), max_bytes=1000)
    assert len(exchange.body) == 1000
    assert exchange.truncated is Truncation.NONE


@pytest.mark.timed
def test_n04_a_dripping_body_ends_at_the_deadline() -> None:
    exchange = fetched(drips(OK_HEAD + b"\r\n", b"x"))
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.truncated is Truncation.TIME
    assert exchange.body
    assert 0.8 < exchange.finished_at - exchange.sent_at < 1.5


@pytest.mark.timed
def test_n04_a_body_that_falls_silent() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(OK_HEAD + b"Content-Length: 100\r\n\r\nsome")
        await visit.request()

    exchange = fetched(script)
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.body == b"some"
    assert "silent" in exchange.error
    assert exchange.finished_at - exchange.sent_at < 0.7


@pytest.mark.timed
def test_n04_a_head_and_then_silence() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(OK_HEAD + b"Content-Length: 100\r\n\r\n")
        await visit.request()

    exchange = fetched(script)
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.status == 200
    assert exchange.truncated is Truncation.TIME
    assert exchange.finished_at - exchange.sent_at < 0.7


@pytest.mark.timed
@pytest.mark.parametrize("drop", [b"X", b"X-N: 1\r\n"])
def test_n05_dripping_headers(drop: bytes) -> None:
    exchange = fetched(drips(OK_HEAD, drop))
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.truncated is Truncation.NONE
    assert 0.25 < exchange.finished_at - exchange.sent_at < 0.6


@pytest.mark.timed
def test_n06_accepted_and_then_silence() -> None:
    exchange = fetched(_silence)
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.requests_sent == 1
    assert 0.25 < exchange.finished_at - exchange.sent_at < 0.6


def test_other_hosts_do_not_wait_for_a_silent_one() -> None:
    async def script(visit: Visit) -> None:
        while head := await visit.request():
            if b"/silent" not in head:
                await visit.send(answer(b"quick"))

    async def main() -> None:
        async with stage(script, limits=PATIENT) as scene, asyncio.TaskGroup() as group:
            silent = group.create_task(scene.get("/silent"))
            for _ in range(5):
                assert (await scene.get("/quick")).outcome is Outcome.OK
            silent.cancel()

    run(main)


def test_n07_content_length_larger_than_the_body() -> None:
    exchange = fetched(says(OK_HEAD + b"Content-Length: 1000\r\n\r\n0123456789"))
    assert exchange.outcome is Outcome.DISCONNECTED
    assert exchange.truncated is Truncation.DISCONNECT
    assert exchange.body == b"0123456789"


def test_n08_content_length_smaller_than_the_body() -> None:
    async def main() -> None:
        async with stage(keeps(*[OK_HEAD + b"Content-Length: 5\r\n\r\n" + b"x" * 500] * 2)) as scene:
            for _ in range(2):
                exchange = await scene.get()
                assert exchange.outcome is Outcome.OK
                assert exchange.body == b"xxxxx"
            assert scene.connections == 2

    run(main)


@pytest.mark.parametrize("length", [b"-1", b"99999999999999999999", b"abc", b"5, 7"])
def test_n09_absurd_content_length(length: bytes) -> None:
    exchange = fetched(says(OK_HEAD + b"Content-Length: " + length + b"\r\n\r\nhello"))
    assert exchange.outcome in (Outcome.OK, Outcome.PROTOCOL_ERROR, Outcome.DISCONNECTED)


def test_n10_the_same_content_length_twice() -> None:
    exchange = fetched(says(OK_HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"))
    assert exchange.outcome is Outcome.OK
    assert exchange.body == b"hello"


def test_n11_transfer_encoding_wins_over_content_length() -> None:
    page = OK_HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    exchange = fetched(says(page))
    assert exchange.outcome is Outcome.OK
    assert exchange.body == b"hello"


def test_n11_the_connection_is_not_used_again_after_both() -> None:
    page = OK_HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"

    async def main() -> None:
        async with stage(keeps(page, page)) as scene:
            assert [(await scene.get()).body, (await scene.get()).body] == [b"hello", b"hello"]
            assert scene.connections == 2

    run(main)


@pytest.mark.parametrize(
    ("types", "outcome"),
    [
        (("image/png", "text/html"), Outcome.OK),
        (("text/html", "image/png"), Outcome.TYPE_REFUSED),
        (("text/html, image/png",), Outcome.TYPE_REFUSED),
        (("image/png", "nonsense"), Outcome.TYPE_REFUSED),
    ],
)
def test_of_several_content_types_the_last_valid_one_counts(types: tuple[str, ...], outcome: Outcome) -> None:
    data = answer(b"<p>", *(f"Content-Type: {media_type}" for media_type in types))
    exchange = fetched(says(data), wanted_types=frozenset({"text/"}))
    assert exchange.outcome is outcome
    assert (declared_type(exchange).essence == "text/html") is (outcome is Outcome.OK)


def test_n12_a_bad_chunk_size() -> None:
    exchange = fetched(says(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZ\r\n"))
    assert exchange.outcome is Outcome.PROTOCOL_ERROR
    assert exchange.body == b"abc"
    assert exchange.truncated is Truncation.DISCONNECT


def test_n13_cut_before_the_last_chunk() -> None:
    exchange = fetched(says(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"))
    assert exchange.outcome is Outcome.DISCONNECTED
    assert exchange.body == b"abc"
    assert exchange.truncated is Truncation.DISCONNECT


@pytest.mark.parametrize("data", [b"<html>no head</html>", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x16\x03\x01\x00\xff", b"\n"])
def test_n14_n15_what_is_not_http(data: bytes) -> None:
    exchange = fetched(says(data))
    assert exchange.outcome is Outcome.PROTOCOL_ERROR
    assert exchange.body == b""
    assert exchange.requests_sent == 1


def test_n16_endless_interim_answers() -> None:
    exchange = fetched(floods(b"", b"HTTP/1.1 102 Processing\r\n\r\n"), limits=PATIENT)
    assert exchange.outcome is Outcome.PROTOCOL_ERROR


def test_n16_too_many_interim_answers_before_the_final_one() -> None:
    exchange = fetched(says(b"HTTP/1.1 102 Processing\r\n\r\n" * 30 + answer(b"hi")))
    assert exchange.outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.timed
def test_n16_dripping_interim_answers() -> None:
    exchange = fetched(drips(b"", b"HTTP/1.1 102 Processing\r\n\r\n"))
    assert exchange.outcome is Outcome.TIMEOUT
    assert exchange.finished_at - exchange.sent_at < 0.6


def test_n17_switching_protocols_unasked() -> None:
    page = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbytes"
    assert fetched(says(page)).outcome is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_n18_a_body_that_must_not_be_there(status: str) -> None:
    async def main() -> None:
        async with stage(keeps(*[answer(b"x" * 20, status=status), answer(b"next")])) as scene:
            assert (await scene.get()).body == b""
            assert (await scene.get()).body == b"next"

    run(main)


@pytest.mark.parametrize("value", [b"a\0b", b"a\rb", b"a\r\r"])
def test_n20_control_characters_in_a_header(value: bytes) -> None:
    exchange = fetched(says(OK_HEAD + b"X: " + value + b"\r\nContent-Length: 2\r\n\r\nhi"))
    assert exchange.outcome in (Outcome.OK, Outcome.PROTOCOL_ERROR)
    assert all(not set("\0\r\n") & set(name + text) for name, text in exchange.headers)


@pytest.mark.parametrize("status", [b"99", b"2000", b"abc", b"-200", b""])
def test_n21_odd_statuses(status: bytes) -> None:
    exchange = fetched(says(b"HTTP/1.1 " + status + b" Odd\r\nContent-Length: 2\r\n\r\nhi"))
    assert exchange.outcome in (Outcome.BAD_STATUS, Outcome.PROTOCOL_ERROR)


def test_n22_reset_in_the_middle_of_a_body() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(OK_HEAD + b"Content-Length: 9000\r\n\r\n" + b"x" * 1024)
        await asyncio.sleep(0.05)
        visit.reset()

    exchange = fetched(script)
    assert exchange.outcome is Outcome.DISCONNECTED
    assert exchange.truncated is Truncation.DISCONNECT
    assert exchange.body == b"x" * 1024


def test_n22_reset_before_an_answer() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        visit.reset()

    assert fetched(script).outcome is Outcome.DISCONNECTED


def test_z01_a_bomb_is_cut_at_the_cap() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    exchange = fetched(says(answer(bomb, "Content-Encoding: gzip")))
    assert exchange.outcome is Outcome.OK
    assert exchange.body == bomb
    assert len(exchange.content) == QUICK.max_bytes
    assert exchange.truncated is Truncation.LENGTH


def test_z06_a_cut_gzip_stream_keeps_its_prefix() -> None:
    text = b"".join(b"%d " % number for number in range(9000))
    exchange = fetched(says(answer(gzip.compress(text)[:8000], "Content-Encoding: gzip")))
    assert exchange.content
    assert text.startswith(exchange.content)
    assert exchange.truncated is Truncation.DISCONNECT


def test_r06_a_split_location_changes_nothing_else() -> None:
    exchange = fetched(says(answer(b"", "Location: /a%0d%0aSet-Cookie:x", status="302 Found")))
    assert exchange.header("location") == "/a%0d%0aSet-Cookie:x"


def test_r11_bytes_in_location_are_latin_1() -> None:
    exchange = fetched(says(b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n"))
    assert exchange.header("location") == "/caf\xe9"


def test_l02_a_stalled_tls_handshake() -> None:
    async def script(visit: Visit) -> None:
        await visit.reader.read(1)
        await visit.request()

    async def main() -> None:
        async with stage(script) as scene:
            scene.scheme = "https"
            exchange = await scene.get()
            assert exchange.outcome is Outcome.CONNECT_TIMEOUT
            assert "TLS" in exchange.error

    run(main)
