"""The rows of a ledger: what they take, and that those of earlier versions are read."""

from __future__ import annotations

from gossamer.core.ledger import rows
from gossamer.model.records import RobotsRecord


def test_a_long_robots_txt_takes_little_room() -> None:
    body = b"Disallow: /private\n" * 25_000
    row = rows.encode_robots(RobotsRecord("http://h.test", 200, "ok", body, 1.0, 2.0))
    assert len(row) < 1000
    assert rows.decode_robots(row).body == body


def test_a_row_that_was_stored_before_bodies_were_compressed_is_read() -> None:
    body = b"Disallow: /private\n" * 25_000
    old = rows.encode(["http://h.test", 200, "ok", body, 1.0, 2.0, "", "", None])
    assert rows.decode_robots(old) == RobotsRecord("http://h.test", 200, "ok", body, 1.0, 2.0)
