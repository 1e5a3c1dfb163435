"""Random bytes as an answer, and the public cases: the fetcher always ends with one exchange."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from tests.amount import amount
from tests.fetch.servers import QUICK, Visit, stage

PIECES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 ",
        b"HTTP/2 200\r\n",
        b"100",
        b"304",
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"Content-Length: ",
        b"5",
        b"-1",
        b"99999999999",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Location: ",
        b"http://",
        b"Connection: close\r\n",
        b": ",
        b" folded",
        b"\x1f\x8b\x08",
        b"Upgrade: h2c\r\n",
        b"Trailer: X\r\n",
        b"\xff",
    ]
)
ANSWERS = st.lists(PIECES | st.binary(max_size=8), max_size=20).map(b"".join)


def exchanges(answers: list[bytes], *, tries: int = 1) -> list[Exchange]:
    """Serve each answer on a connection of its own; return what came of each."""
    left: list[bytes] = []

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.send(left[-1])

    async def main() -> list[Exchange]:
        made = []
        for data in answers:
            left.append(data)
            async with asyncio.timeout(5), stage(script) as scene:
                for _ in range(tries):
                    exchange = await scene.get()
                    if exchange.outcome is not Outcome.DISCONNECTED:
                        break
                made.append(exchange)
        return made

    return asyncio.run(main())


@given(st.lists(ANSWERS, min_size=1, max_size=3))
@settings(max_examples=amount(15, 40))
def test_any_bytes_end_in_an_exchange(answers: list[bytes]) -> None:
    for exchange in exchanges(answers):
        assert isinstance(exchange.outcome, Outcome)
        assert exchange.requests_sent <= 1
        assert 0 <= exchange.status <= 999
        assert len(exchange.content) <= QUICK.max_bytes
        assert all(not set("\0\r\n") & set(name + value) for name, value in exchange.headers)


OK_HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# An answer, and the body that is read from it; None if it is no page.
READ: list[tuple[bytes, bytes | None]] = [
    (OK_HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    (OK_HEAD + b"Content-Length: 2\r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Content-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Content-Length: 02\r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Content-Length: nine\r\n\r\nhi there", b"hi there"),
    (OK_HEAD + b"Content-Length: -1\r\n\r\nhi there", b"hi there"),
    (OK_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi there", None),
    (OK_HEAD + b"Content-Length: 9\r\n\r\nhi", None),
    (OK_HEAD + b"\r\nhi there", b"hi there"),
    (OK_HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Connection: close\r\n\r\nhi there", b"hi there"),
    (OK_HEAD + b"Connection: KEEP-alive\r\nContent-Length: 2\r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Content-Length: 2\r\nContent-Length:\t 2 \r\n\r\nhi there", b"hi"),
    (OK_HEAD + b"Content-Length: +2\r\n\r\nhi there", b"hi there"),
    (OK_HEAD + b"Content-Length: 2,3\r\n\r\nhi there", None),
    (OK_HEAD + b"no colon\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi there", b"hi"),
    (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi there", b"hi"),
    (b"HTTP/1.1 200 O\0K\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"HTTP/1.0 200 OK\n\nhi there", b"hi there"),
    (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    (b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"HTTX/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", None),
    (b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", None),
    (OK_HEAD + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    (OK_HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\nhi", None),
    (OK_HEAD + b"X: a\rb\r\nContent-Length: 2\r\n\r\nhi", None),
    (OK_HEAD + b"X: a\tb\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    (OK_HEAD + b"X:a:b\r\nContent-Length:2\r\n\r\nhi", b"hi"),
    (CHUNKED + b"2\r\nhi\r\n6\r\n there\r\n0\r\n\r\n", b"hi there"),
    (CHUNKED + b"002;x=y\r\nhi\r\n0\r\nT: v\r\n\r\n", b"hi"),
    (CHUNKED + b"2\r\nhi\r\n", None),
    (CHUNKED + b"x\r\nhi\r\n0\r\n\r\n", None),
    (OK_HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
    (OK_HEAD + b"Transfer-Encoding: gzip\r\n\r\nhi", None),
    (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK_HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    (b"HTTP/1.1 100 Go on\r\n\r\n", None),
    (b"", None),
]


def test_the_body_is_what_the_head_says() -> None:
    made = exchanges([data for data, _ in READ])
    read = [(data, one.body if one.outcome is Outcome.OK else None) for (data, _), one in zip(READ, made, strict=True)]
    assert read == READ
