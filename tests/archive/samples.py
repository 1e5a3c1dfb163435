"""Exchanges to archive, plain and odd."""

from __future__ import annotations

import random
from pathlib import Path

from gossamer.archive.writer import ArchiveWriter
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation

NOW = 1_700_000_000.123456
WARCINFO = {"software": "Gossamer/test", "robots": "obey", "operator": "nobody", "http-header-user-agent": "Gossamer"}


def exchange(
    url: str = "http://www.example.com/a?b=2&a=1",
    *,
    status: int = 200,
    headers: bytes = b"Content-Type: text/html; charset=utf-8\r\n",
    body: bytes = b"<p>body</p>",
    outcome: Outcome = Outcome.OK,
    truncated: Truncation = Truncation.NONE,
) -> Exchange:
    return Exchange(
        url=url,
        outcome=outcome,
        status=status,
        address="192.0.2.1",
        http_version="1.1",
        request_head=b"GET / HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Gossamer\r\n\r\n",
        response_head=b"HTTP/1.1 %d Some Reason\r\n" % status + headers + b"\r\n",
        body=body,
        content=body,
        truncated=truncated,
    )


ODD_URLS = (
    "http://example.com/",
    "https://www2.Example.COM:8443/A/B/",
    "http://192.0.2.7:81/x",
    "http://[2001:db8::1]/y",
    "http://xn--bcher-kva.example/%C3%BC?Q=%41&b=%25",
    "http://example.com/a//b/../c/./d?z=1&a&b=&a=0",
    "http://example.com/?",
    "http://example.com/robots.txt",
    "http://example.com/x;jsessionid=0123456789abcdef0123456789ABCDEF",
    "http://example.com/p?PHPSESSID=0123456789abcdef0123456789abcdef&q=1",
    "http://example.com/(S(abcdefghijklmnopqrstuvwx))/page.aspx",
    "http://example.com/%7Euser/%2525/%00",
    "http://example.com/q?redirect=http://other.example/?a=b",
    "http://example.com/'();:@&=+$,/!*~|{}[]^`",
)

HEADS = (
    b"Content-Type: text/html\r\n",
    b"content-type:TEXT/Html ;charset=x\r\n",
    b"Content-Type: \r\n",
    b"Server: none\r\n",
    b"X: y\r\nContent-Type: caf\xe9/x\r\n",
    "Content-Type: caf\u00e9/x\r\n".encode(),
    b"Content-Type: text/plain\r\nContent-Type: text/html\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Type: text/html\r\nContent-Length: 7\r\n",
    b"Content-Encoding: gzip\r\nContent-Type: application/json\r\n",
    b"X-Nul: a\0b\r\nContent-Type: a/b\r\n",
    b"X-Fold: a\r\n b\r\nContent-Type: a/c\r\n",
    b"X-Cr: a\rWARC-Type: response\r\nContent-Type: a/d\r\n",
    b" \r\nContent-Type: a/e\r\n",
    b"\xa0\r\nContent-Type: a/f\r\n",
    b"\n\nWARC/1.1\nContent-Type: a/g\r\n",
    b"no colon here\r\nContent-Type: a/h\r\n",
    b"Location: /elsewhere\r\n",
)


def odd_exchanges() -> list[Exchange]:
    """Return every odd URL and head, all statuses, truncations and body shapes at least once."""
    source = random.Random(3)
    statuses = (200, 200, 301, 404, 500, 304, 204, 429)
    bodies = (b"", b"<p>x</p>", b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n", source.randbytes(3000))
    made = []
    for number in range(max(len(ODD_URLS), len(HEADS)) * 3):
        made.append(
            exchange(
                ODD_URLS[number % len(ODD_URLS)],
                status=statuses[number % len(statuses)],
                headers=HEADS[number % len(HEADS)],
                body=bodies[number % len(bodies)],
                truncated=list(Truncation)[number % 4],
            )
        )
    made[1].http_version, made[1].response_head = "2", b"HTTP/2 200 \r\ncontent-type: text/html\r\n\r\n"
    made[2].response_head = b"ICY 200 OK\nContent-Type: audio/x\n\n"
    made[3].response_head = b""
    made[4].request_head = b""
    made[5].tls_version = "TLSv1.3"
    return made


def writer(folder: Path, *, worker: int = 0, save_interval: int = 1000, max_file_bytes: int = 10**9) -> ArchiveWriter:
    (folder / "archive").mkdir(parents=True, exist_ok=True)
    return ArchiveWriter(
        folder / "archive",
        folder / "index",
        prefix="TEST",
        worker=worker,
        warcinfo=WARCINFO,
        save_interval=save_interval,
        max_file_bytes=max_file_bytes,
    )
