"""Train the dictionary by which rows are compressed in Redis (`backends/redis/scripted_ledger.py`), from made-up rows.

    python -m benchmarks.row_dictionary        # writes src/gossamer/backends/redis/rows.zdict

A new dictionary cannot read rows that were compressed with the old one: raise `PROTOCOL` in `cli/cluster/node.py` with
it.
"""

from __future__ import annotations

import random
from email.utils import formatdate
from pathlib import Path

import zstandard

from gossamer.backends import redis as package
from gossamer.core.ledger.rows import encode
from gossamer.core.url.forms import link_to
from gossamer.model.records import ArchiveSpan, FetchKind, Source, UrlRecord, UrlState

ROWS = 6000
DICTIONARY_BYTES = 6144
_WORDS = (
    "news article product category about contact index page archive blog post item image search tag user help docs "
    "guide review event list shop download profile forum topic thread wiki en de fr es it pl nl pt ja ru 2023 "
    "2024 2025 2026 01 02 03 10 11 12 html php aspx pdf print view id sort order start the of and in for with new"
).split()
_TOPS = ("com", "org", "net", "de", "fr", "co.uk", "jp", "ru", "it", "nl", "pl", "es", "com.br", "io", "info", "edu")
_TYPES = ("text/html",) * 12 + (
    "application/xhtml+xml",
    "application/pdf",
    "text/plain",
    "application/xml",
    "image/png",
)
_ERRORS = (
    ("connect_failed", "connect: Connection refused"),
    ("first_byte_timeout", "no answer within 10 s"),
    ("dns_not_found", "no such name"),
    ("server_error", ""),
    ("client_error", ""),
    ("robots_denied", "line 3: Disallow: /search"),
    ("redirect", ""),
)


def main() -> int:
    """Write the dictionary."""
    rng = random.Random(1)
    samples: list[bytes | bytearray | memoryview] = [encode(_url(rng)) for _ in range(ROWS)]
    trained = zstandard.train_dictionary(DICTIONARY_BYTES, samples, level=3)
    path = Path(package.__path__[0]) / "rows.zdict"
    path.write_bytes(trained.as_bytes())
    print(f"{path.name}: {len(trained.as_bytes())} bytes")
    return 0


def _text(rng: random.Random, words: int, separator: str) -> str:
    return separator.join(rng.choice(_WORDS) for _ in range(words))


def _address(rng: random.Random) -> str:
    host = f"{rng.choice(('www.', '', '', 'shop.', 'blog.'))}{_text(rng, rng.randint(1, 2), '-')}.{rng.choice(_TOPS)}"
    path = "/".join(_text(rng, rng.randint(1, 3), "-") for _ in range(rng.randint(0, 4)))
    end = rng.choice(("", "/", ".html", f"?id={rng.randint(1, 99999)}", f"/{rng.randint(1, 9999)}", "?page=2"))
    return f"{rng.choice(('https', 'https', 'https', 'http'))}://{host}/{path}{end}"


def _span(rng: random.Random) -> ArchiveSpan:
    file = f"gossamer-2026{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{rng.randint(0, 235959):06d}"
    file += f"-{rng.randint(0, 3):02d}-{rng.randint(0, 99):05d}.warc.gz"
    return ArchiveSpan(file, rng.randint(0, 1 << 30), rng.randint(2000, 60000))


def _url(rng: random.Random) -> UrlRecord:
    link = link_to(_address(rng))
    record = UrlRecord(
        link.url, UrlState.QUEUED, rng.randint(0, 8), rng.choice(list(Source)), FetchKind.PAGE, rng.randbytes(16),
        rng.randint(0, 9), rng.randint(1, 1 << 22), 0, 0, 0.0, 1.79e9 + rng.random() * 1e6,
    )  # fmt: skip
    if rng.random() < 0.5:
        return record
    record.fetched_at = record.found_at + rng.random() * 1e4
    if rng.random() < 0.15:
        record.state = rng.choice((UrlState.DEAD, UrlState.DONE))
        record.outcome, record.error = rng.choice(_ERRORS)
        return record
    record.state, record.outcome, record.status = UrlState.DONE, "ok", 200
    record.content_type, record.charset = rng.choice(_TYPES), rng.choice(("utf-8", "utf-8", "utf-8", "windows-1252"))
    record.language, record.title = rng.choice(("en", "de", "fr", "")), _text(rng, rng.randint(2, 9), " ").title()
    record.wire_bytes = record.content_bytes = rng.randint(500, 300_000)
    record.content_hash, record.visits, record.archived = rng.randbytes(16), 1, _span(rng)
    if rng.random() < 0.4:
        record.etag = rng.choice((f'"{rng.randbytes(8).hex()}"', f'W/"{rng.randbytes(5).hex()}-{rng.randint(1, 9)}"'))
    if rng.random() < 0.4:
        record.last_modified = formatdate(1.6e9 + rng.random() * 2e8, usegmt=True)
    return record


if __name__ == "__main__":
    raise SystemExit(main())
