"""Looks through the catalog for some rows, a part at a time.

A crawl has millions of URLs, and a question must be answered within a second: so a scan stops after `MAX_S`, says how
many rows it has looked at, and gives a cursor to go on from. 3 µs per row.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from gossamer.core.url.identity import host_id
from gossamer.model.records import UrlId, UrlRecord
from gossamer.reading.view import CrawlView

MAX_S = 0.7
_LOOK_AT_CLOCK = 256  # rows


class Scan(Struct, frozen=True):
    """What a scan found. The cursor is empty if it has looked at everything."""

    rows: list[tuple[UrlId, UrlRecord]]
    scanned: int
    cursor: str


def scan(crawl: CrawlView, is_wanted: Callable[[UrlRecord], bool], cursor: str, limit: int, host: str = "") -> Scan:
    """Return up to `limit` rows after a cursor (the id of a URL in hex, or empty), of one host or of all."""
    after = bytes.fromhex(cursor)
    end = time.monotonic() + MAX_S
    rows: list[tuple[UrlId, UrlRecord]] = []
    scanned = 0
    for key, row in crawl.ledger.urls(host_id(host) if host else None, after):
        scanned += 1
        if is_wanted(row):
            rows.append((key, row))
        if len(rows) >= limit or (scanned % _LOOK_AT_CLOCK == 0 and time.monotonic() > end):
            return Scan(rows, scanned, key.hex())
    return Scan(rows, scanned, "")
