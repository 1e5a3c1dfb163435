"""The same answers, read by the plain client and by libcurl: what differs is meant, and listed here with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.fetch.http import FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.route import USUAL
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from tests.amount import amount
from tests.fuzz.test_framing import ANSWERS

from .servers import LOOPBACK, Stage, Visit, stage
from .test_plain_transfer import LIKELY

OK_HEAD = b"HTTP/1.1 200 OK\r\n"
TWO = b"Content-Length: 2\r\n\r\nhi"
CHUNKED = OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"

TABLE: Mapping[str, bytes] = {
    # the status line
    "plain": OK_HEAD + TWO,
    "no reason": b"HTTP/1.1 200\r\n" + TWO,
    "a space for a reason": b"HTTP/1.1 200 \r\n" + TWO,
    "a reason in latin-1": b"HTTP/1.1 200 Entendu \xe9\r\n" + TWO,
    "NUL in the reason": b"HTTP/1.1 200 O\0K\r\n" + TWO,
    "CR in the reason": b"HTTP/1.1 200 O\rK\r\n" + TWO,
    "version 1.0": b"HTTP/1.0 200 OK\r\n" + TWO,
    "version 1.2": b"HTTP/1.2 200 OK\r\n" + TWO,
    "version 1.10": b"HTTP/1.10 200 OK\r\n" + TWO,
    "version 1.1x": b"HTTP/1.1x 200 OK\r\n" + TWO,
    "version 11": b"HTTP/11 200 OK\r\n" + TWO,
    "version 2": b"HTTP/2 200\r\n" + TWO,
    "version 3": b"HTTP/3 200\r\n" + TWO,
    "no version": b"HTTP 200 OK\r\n" + TWO,
    "small letters": b"http/1.1 200 OK\r\n" + TWO,
    "a tab": b"HTTP/1.1\t200 OK\r\n" + TWO,
    "two spaces": b"HTTP/1.1  200 OK\r\n" + TWO,
    "a space in front": b" " + OK_HEAD + TWO,
    "a blank line in front": b"\r\n" + OK_HEAD + TWO,
    "status 0": b"HTTP/1.1 000 No\r\n" + TWO,
    "status 1": b"HTTP/1.1 1\r\n" + TWO,
    "status 20": b"HTTP/1.1 20\r\n" + TWO,
    "status 99": b"HTTP/1.1 99 No\r\n" + TWO,
    "status 099": b"HTTP/1.1 099 No\r\n" + TWO,
    "status 2000": b"HTTP/1.1 2000 OK\r\n" + TWO,
    "status 3040": b"HTTP/1.1 3040 OK\r\n" + TWO,
    "status 999": b"HTTP/1.1 999 No\r\n" + TWO,
    "status abc": b"HTTP/1.1 abc\r\n" + TWO,
    "status 200x": b"HTTP/1.1 200x\r\n" + TWO,
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "an internet radio": b"ICY 200 OK\r\n" + TWO,
    "no head": b"<html>hi</html>\r\n\r\n",
    # headers
    "folded": OK_HEAD + b"X: a\r\n  b\r\n" + TWO,
    "folded by a tab": OK_HEAD + b"X: a\r\n\tb\r\n\t c \r\n" + TWO,
    "folded around nothing": OK_HEAD + b"X: a\r\n \r\n b\r\n" + TWO,
    "folded at once": OK_HEAD + b" X: a\r\n" + TWO,
    "folded length": OK_HEAD + b"Content-Length:\r\n 2\r\n\r\nhi",
    "no colon": OK_HEAD + b"X\r\n" + TWO,
    "no name": OK_HEAD + b": x\r\n" + TWO,
    "no value": OK_HEAD + b"X:\r\n" + TWO,
    "a space before the colon": OK_HEAD + b"X : y\r\n" + TWO,
    "NUL in a value": OK_HEAD + b"X: a\0b\r\n" + TWO,
    "NUL in a name": OK_HEAD + b"X\0: a\r\n" + TWO,
    "CR in a value": OK_HEAD + b"X: a\rb\r\n" + TWO,
    "CR before a value": OK_HEAD + b"X:\ra\r\n" + TWO,
    "CR before CRLF": OK_HEAD + b"X: a\r\r\n" + TWO,
    "a control character": OK_HEAD + b"X: a\x01b\r\n" + TWO,
    "latin-1": OK_HEAD + b"X: \xe9\xff\r\n" + TWO,
    "bare line feeds": b"HTTP/1.1 200 OK\nX: y\nContent-Length: 2\n\nhi",
    "some bare line feeds": b"HTTP/1.1 200 OK\nX: y\r\nContent-Length: 2\n\r\nhi",
    "a blank line of each kind": b"HTTP/1.1 200 OK\nX: y\n\n\r\nhi",
    "two Locations": b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\n" + TWO,
    "one Location twice": b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /a\r\n" + TWO,
    "an empty Location and another": b"HTTP/1.1 302 Found\r\nLocation:\r\nLocation: /b\r\n" + TWO,
    # Content-Length
    "length 0": OK_HEAD + b"Content-Length: 0\r\n\r\n",
    "length 0 and more": OK_HEAD + b"Content-Length: 0\r\n\r\nhi",
    "length with zeros": OK_HEAD + b"Content-Length: 002\r\n\r\nhi",
    "length too small": OK_HEAD + b"Content-Length: 2\r\n\r\nhi there",
    "length too large": OK_HEAD + b"Content-Length: 5\r\n\r\nhi",
    "length twice": OK_HEAD + b"Content-Length: 2\r\n" + TWO,
    "length twice in one": OK_HEAD + b"Content-Length: 2, 2\r\n\r\nhi",
    "no length": OK_HEAD + b"\r\nhi",
    "no length and no body": OK_HEAD + b"\r\n",
    "length of twenty digits": OK_HEAD + b"Content-Length: 99999999999999999999\r\n\r\nhi",
    "length +2": OK_HEAD + b"Content-Length: +2\r\n\r\nhi",
    "length -1": OK_HEAD + b"Content-Length: -1\r\n\r\nhi",
    "length 0x2": OK_HEAD + b"Content-Length: 0x2\r\n\r\nhi",
    "length 2 x": OK_HEAD + b"Content-Length: 2 x\r\n\r\nhi",
    "length 2;": OK_HEAD + b"Content-Length: 2;\r\n\r\nhi",
    "empty length": OK_HEAD + b"Content-Length:\r\n\r\nhi",
    "two lengths": OK_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
    "two lengths in one": OK_HEAD + b"Content-Length: 2, 3\r\n\r\nhi!",
    # chunks
    "chunks": CHUNKED + b"2\r\nhi\r\n6\r\n there\r\n" + LAST,
    "no chunk": CHUNKED + LAST,
    "chunk in capitals": CHUNKED + b"A\r\n0123456789\r\n" + LAST,
    "chunk with zeros": CHUNKED + b"0000000000000002\r\nhi\r\n" + LAST,
    "chunk with many zeros": CHUNKED + b"0000000000000000002\r\nhi\r\n" + LAST,
    "chunk with an extension": CHUNKED + b'2;a=b;c="d"\r\nhi\r\n' + LAST,
    "chunk with spaces behind": CHUNKED + b"2  \r\nhi\r\n" + LAST,
    "chunk with a space in front": CHUNKED + b" 2\r\nhi\r\n" + LAST,
    "chunks with bare line feeds": CHUNKED + b"2\nhi\n0\n\n",
    "chunk without a size": CHUNKED + b"\r\nhi\r\n" + LAST,
    "chunk -2": CHUNKED + b"-2\r\nhi\r\n" + LAST,
    "chunk 0x2": CHUNKED + b"0x2\r\nhi\r\n" + LAST,
    "chunk 2 x": CHUNKED + b"2 x\r\nhi\r\n" + LAST,
    "chunk zz": CHUNKED + b"2\r\nhi\r\nzz\r\n",
    "chunk too small": CHUNKED + b"2\r\nhi!\r\n" + LAST,
    "chunk too large to be": CHUNKED + b"FFFFFFFFFFFFFFFFF\r\nhi",
    "no last chunk": CHUNKED + b"2\r\nhi\r\n",
    "no end of the last chunk": CHUNKED + b"2\r\nhi\r\n0\r\n",
    "end within a size": CHUNKED + b"2\r\nhi\r\n2",
    "end within a chunk": CHUNKED + b"5\r\nhi",
    "a trailer": CHUNKED + b"2\r\nhi\r\n0\r\nT: v\r\n\r\n",
    "a trailer without a colon": CHUNKED + b"2\r\nhi\r\n0\r\nT\r\n\r\n",
    "a trailer with NUL": CHUNKED + b"2\r\nhi\r\n0\r\nT: a\0b\r\n\r\n",
    "more behind the last chunk": CHUNKED + b"2\r\nhi\r\n" + LAST + b"more",
    "chunks over 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + LAST,
    "chunks and a length": OK_HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + LAST,
    # Transfer-Encoding
    "coding CHUNKED": OK_HEAD + b"Transfer-Encoding: CHUNKED\r\n\r\n2\r\nhi\r\n" + LAST,
    "coding twice": OK_HEAD + b"Transfer-Encoding: chunked\r\n" + CHUNKED[len(OK_HEAD) :] + b"2\r\nhi\r\n" + LAST,
    "coding identity": OK_HEAD + b"Transfer-Encoding: identity\r\n" + TWO,
    "coding identity, chunked": OK_HEAD + b"Transfer-Encoding: identity, chunked\r\n\r\n2\r\nhi\r\n" + LAST,
    "empty coding": OK_HEAD + b"Transfer-Encoding:\r\n" + TWO,
    "coding gzip": OK_HEAD + b"Transfer-Encoding: gzip\r\n\r\nhi",
    "coding gzip, and no body": OK_HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
    "coding gzip, chunked": OK_HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n" + LAST,
    "coding chunked, gzip": OK_HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n2\r\nhi\r\n" + LAST,
    "coding xchunked": OK_HEAD + b"Transfer-Encoding: xchunked\r\n\r\nhi",
    "coding in quotes": OK_HEAD + b'Transfer-Encoding: "chunked"\r\n\r\nhi',
    # statuses with rules of their own
    "204 with a body": b"HTTP/1.1 204 None\r\n" + TWO,
    "204 with chunks": b"HTTP/1.1 204 None\r\n" + CHUNKED[len(OK_HEAD) :] + b"2\r\nhi\r\n" + LAST,
    "205 with a body": b"HTTP/1.1 205 Reset\r\n" + TWO,
    "304 with a body": b"HTTP/1.1 304 Same\r\n" + TWO,
    "404": b"HTTP/1.1 404 No\r\n" + TWO,
    "100 first": b"HTTP/1.1 100 Go on\r\n\r\n" + OK_HEAD + TWO,
    "103 first": b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK_HEAD + TWO,
    "three times 100": b"HTTP/1.1 100 Go on\r\n\r\n" * 3 + OK_HEAD + TWO,
    "100 before small letters": b"HTTP/1.1 100 Go on\r\n\r\nhttp/1.1 200 OK\r\n" + TWO,
    "100 and no more": b"HTTP/1.1 100 Go on\r\n\r\n",
    "100 and another protocol": b"HTTP/1.1 100 Go on\r\n\r\nSSH-2.0\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching\r\n\r\n",
    "101 with bytes": b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nhi",
    # ends
    "nothing": b"",
    "end within the version": b"HTTP/1.",
    "end within the status line": b"HTTP/1.1 200 OK",
    "end within the head": OK_HEAD + b"X: y\r\n",
    "end within a header": OK_HEAD + b"X: y",
}  # fmt: skip

# Why the plain client says something else than libcurl, and where.
MEANT: Mapping[str, tuple[str, ...]] = {
    # libcurl gives the answer up, and reads the next one of that host to its end: a second request.
    "a Content-Length that is no number is read to the end, as browsers do": (
        "length +2",
        "length -1",
        "length 0x2",
        "length 2 x",
        "length 2;",
        "empty length",
    ),
    "a contradiction is a fault of the protocol at once": (
        "two lengths",
        "two lengths in one",
        "an empty Location and another",
    ),
    "zeros in front of a size change nothing, however many": ("chunk with many zeros",),
    # RFC 9112 2.2: a bare CR may be taken for a space.
    "CR at the end or the beginning of a value, or in a reason, harms nobody": (
        "CR before CRLF",
        "CR before a value",
        "CR in the reason",
    ),
    "trailers are dropped, whatever is in them": ("a trailer with NUL",),
    "a 101 is a whole answer, and what follows it is no body": ("101", "101 with bytes"),
    "a status of four digits is none, and no status without a body": ("status 3040",),
    # libcurl judges line by line, and the headers behind a faulty one are not in its record.
    "a head is judged when it is whole": (
        "NUL in the reason",
        "no colon",
        "NUL in a value",
        "NUL in a name",
        "CR in a value",
        "two Locations",
    ),
}
BROKEN = frozenset((Outcome.PROTOCOL_ERROR, Outcome.DISCONNECTED))
# What libcurl says where it refuses a page for one of these reasons.
EXCUSED = ("Invalid Content-Length", "Carriage return", "NUL byte in header", "chunk hex-length longer than")


class Pair(NamedTuple):
    """What came of one answer."""

    plain: Exchange
    curl: Exchange


def gist(exchange: Exchange) -> tuple[object, ...]:
    return exchange.outcome, exchange.status, exchange.http_version, exchange.headers, exchange.body


def read_by_both(answers: Sequence[bytes]) -> list[Pair]:
    async def script(visit: Visit) -> None:
        head = await visit.request()
        await visit.send(answers[int(head.split(b" ", 2)[1][1:])])

    async def fetch(scene: Stage, number: int) -> Exchange:
        # A host each: libcurl keeps connections that the plain client closes.
        return await scene.fetcher.fetch(FetchRequest(scene.url(f"/{number}", f"h{number}.test"), LOOPBACK))

    async def main() -> list[Pair]:
        async with asyncio.timeout(20), stage(script, limits=FetchLimits()) as scene:
            plain = await asyncio.gather(*(fetch(scene, number) for number in range(len(answers))))
            scene.fetcher._clients["http:"] = scene.fetcher._curl_client(USUAL)
            curl = await asyncio.gather(*(fetch(scene, number) for number in range(len(answers))))
            return [Pair(*pair) for pair in zip(plain, curl, strict=True)]

    return asyncio.run(main())


def test_the_engines_read_an_answer_differently_only_as_intended() -> None:
    pairs = dict(zip(TABLE, read_by_both(list(TABLE.values())), strict=True))
    differing = {name: pair for name, pair in pairs.items() if gist(pair.plain) != gist(pair.curl)}
    meant = {name for names in MEANT.values() for name in names}
    assert {name: pair for name, pair in differing.items() if name not in meant} == {}
    assert meant - differing.keys() == set()


@given(st.lists(LIKELY | ANSWERS, min_size=10, max_size=40))
@settings(max_examples=amount(15, 60))
def test_no_answer_is_a_page_to_one_engine_and_broken_to_the_other(answers: list[bytes]) -> None:
    for data, (plain, curl) in zip(answers, read_by_both(answers), strict=True):
        if {plain.outcome, curl.outcome} <= BROKEN or any(words in curl.error for words in EXCUSED):
            continue
        assert gist(plain) == gist(curl), data


def test_head_is_answered_without_a_body_and_the_connection_serves_the_next_get() -> None:
    heads = {
        b"/length": b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n",
        b"/chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"/coded": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\n",
        b"/gone": b"HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\n",
    }
    seen: list[bytes] = []

    async def script(visit: Visit) -> None:
        while head := await visit.request():
            method, path = head.split(b" ", 2)[:2]
            seen.append(method)
            await visit.send(heads[path] if method == b"HEAD" else OK_HEAD + TWO)

    async def asked_by(scene: Stage) -> None:
        for path, status in ((b"/length", 200), (b"/chunks", 200), (b"/coded", 200), (b"/gone", 404)):
            exchange = await scene.get(path.decode(), is_head=True)
            assert (exchange.status, exchange.body, exchange.error) == (status, b"", "")
            assert exchange.request_head.startswith(b"HEAD " + path)
            assert exchange.outcome is (Outcome.OK if status == 200 else Outcome.CLIENT_ERROR)
            assert not exchange.truncated
        assert (await scene.get("/after")).body == b"hi"
        assert scene.connections == 1

    async def main() -> None:
        for is_curl in (False, True):
            async with asyncio.timeout(20), stage(script, limits=FetchLimits()) as scene:
                if is_curl:
                    scene.fetcher._clients["http:"] = scene.fetcher._curl_client(USUAL)
                await asked_by(scene)

    asyncio.run(main())
    assert seen == 2 * [b"HEAD", b"HEAD", b"HEAD", b"HEAD", b"GET"]
