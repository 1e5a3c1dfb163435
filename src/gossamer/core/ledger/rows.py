"""The ledger's format: tables, keys and encodings, the same in every store.

Keys are big-endian, so that the order of bytes is the order of meaning. Tables with a shard
(everything but the last four) begin with its 12 bits, so a shard is a key range in each of them:

    urls         URL id 16                                       UrlRecord: the catalog and the exact seen set
    queue        host id 8, priority 4, seq 8, key hash 8        empty: the queued URLs of a host, in order
    hosts        host id 8                                       HostRecord
    domains      domain id 8                                     DomainRecord
    robots       host id 8, hash of the origin 8              RobotsRecord
    evidence     host id 8                                       HostEvidence; this and the next six: see `tables`
    quarantines  host id 8, hash of the pattern 8             Quarantine
    submitters   URL id of a sitemap 16                          Submitters
    held         host id 8, rule 1, key hash 8                   HeldUrl: links that wait for their rule
    held_counts  host id 8                                       HostHeld
    spam         host id 8, "h" for a host or "d" for a domain 1  SpamTally: how many of its pages are spam
    seeds        URL id 16                                       SeedRecord: seeds with rules or metadata of their own
    homes        domain id 8                                     DomainHome: where a domain at a known address belongs
    due          host id 8, time in s 5, key hash 8              DueUrl: URLs that are fetched again; see `stored`
    due_hosts    shard 2, time in s 5, host id 8                 DueHost: when the first of them is due at a host
    host_visits  host id 8                                       HostVisits
    shard_visits shard 2                                         ShardVisits
    swapped_out  shard 2, due time in µs 8, host id 8            host name
    changes      shard 2, number 8                               kind 1, URL id 16: the change feed
    shards       shard 2                                         ShardState
    contents     content hash 16                                 ContentRecord: the first page that had it
    signatures   page number 8                                   URL id 16, signature
    archives     file name                                       committed length 8
    meta         name                                            `crawl`: CrawlState; `identity`: IdentityRecord;
                                                                 format, edition of signatures

The ledger on LMDB has one more, `digests`, which follows from `urls` and `contents` (`backends/local/digest_log`).
Values are MessagePack. A robots.txt over `MAX_PLAIN_BYTES` is compressed by zstd in its row. Adding a
field with a default at the end of a record does not change the format.
To add a table of records, see `tables`; for one that is sorted or sharded otherwise, list it here and add the
methods that read and write it to the ledgers.
"""

from __future__ import annotations

from struct import Struct as Layout

import msgspec
from msgspec.structs import replace

from gossamer.core.ledger.tables import RECORD_TABLES
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import Identity, current, shard_of, shard_prefix
from gossamer.model.records import (
    Change,
    ChangeKind,
    ContentRecord,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    QueuePosition,
    RobotsRecord,
    UrlId,
    UrlRecord,
)
from gossamer.model.state import FORMAT_WITHOUT_KEY, CrawlState, IdentityRecord, ShardState

FORMAT = b"3"
FORMAT_BEFORE = (
    FORMAT_WITHOUT_KEY.encode()
)  # is upgraded in place: see `docs/decisions/056-identity-cannot-be-forged.md`
SHARDED = (
    "urls",
    "queue",
    "hosts",
    "domains",
    "robots",
    "swapped_out",
    "changes",
    "shards",
    *(table.name for table in RECORD_TABLES),
)
MAX_PLAIN_BYTES = 1024  # of a robots.txt: most are shorter
MAX_TEXT_BYTES = 1 << 20  # of one that was compressed: less is read of it
UNSHARDED = ("contents", "signatures", "archives", "meta")
TABLES = SHARDED + UNSHARDED
CRAWL_KEY = b"crawl"
FORMAT_KEY = b"format"
IDENTITY_KEY = b"identity"
_PRIORITY_OFFSET = 1 << 31
_MIN_PRIORITY = -_PRIORITY_OFFSET
_KINDS = {kind: bytes((kind,)) for kind in ChangeKind}
_pack_position = Layout(">IQ").pack
_pack_number = Layout(">Q").pack

encode = msgspec.msgpack.Encoder().encode
decode_url = msgspec.msgpack.Decoder(UrlRecord).decode
decode_host = msgspec.msgpack.Decoder(HostRecord).decode
decode_domain = msgspec.msgpack.Decoder(DomainRecord).decode
_decode_robots = msgspec.msgpack.Decoder(RobotsRecord).decode
decode_shard = msgspec.msgpack.Decoder(ShardState).decode
decode_content = msgspec.msgpack.Decoder(ContentRecord).decode
decode_crawl = msgspec.msgpack.Decoder(CrawlState).decode
decode_identity = msgspec.msgpack.Decoder(IdentityRecord).decode


def queue_key(url: QueuedUrl) -> bytes:
    return url.id[:8] + _pack_position(url.priority + _PRIORITY_OFFSET, url.seq) + url.id[8:]


def queue_bound(host: HostId, after: QueuePosition | None) -> bytes:
    """Return the key after which a host's queue is read."""
    if after is None or after[0] < _MIN_PRIORITY:
        return host
    return host + _pack_position(after[0] + _PRIORITY_OFFSET, after[1]) + after[2][8:]


def queued_id(key: bytes) -> UrlId:
    return key[:8] + key[-8:]


def position_of(key: bytes) -> QueuePosition:
    return int.from_bytes(key[8:12], "big") - _PRIORITY_OFFSET, int.from_bytes(key[12:20], "big"), queued_id(key)


def robots_key(origin: str, host: HostId | None = None, identity: Identity | None = None) -> bytes:
    """Return the key of an origin's robots.txt; `host` is the id of its host, unless it is where it belongs."""
    identity = identity or current()
    return (host or identity.host_id(host_of(origin + "/"))) + identity.digest(origin.encode())


def stored_url(row: bytes) -> str:
    """Return the URL in a row of the catalog, without decoding the rest of it: 0.3 µs instead of 1.5."""
    at = 3 if row[0] == 0xDC else 1  # after the head of an array
    head = row[at]
    if head < 0xC0:
        start, length = at + 1, head & 0x1F
    elif head == 0xD9:
        start, length = at + 2, row[at + 1]
    else:
        start, length = at + 3, int.from_bytes(row[at + 1 : at + 3], "big")
    return row[start : start + length].decode("utf-8", "surrogatepass")


def encode_robots(record: RobotsRecord) -> bytes:
    """Return the row of an origin's robots.txt: 2 KB on the wire can be 500 KB of text. That takes up to 1 ms."""
    if len(record.body) > MAX_PLAIN_BYTES:
        import zstandard  # 0.7 ms, which most crawls of few hosts do without

        record = replace(record, body=zstandard.compress(record.body), is_compressed=True)
    return encode(record)


def decode_robots(row: bytes) -> RobotsRecord:
    """Return robots.txt of an origin, as it was before it was encoded."""
    record = _decode_robots(row)
    if record.is_compressed:
        import zstandard

        try:
            if zstandard.frame_content_size(record.body) > MAX_TEXT_BYTES:
                raise ValueError("a robots.txt is larger than the part that is read")
            record.body = zstandard.decompress(record.body, max_output_size=MAX_TEXT_BYTES)
        except zstandard.ZstdError as error:
            raise ValueError(f"a robots.txt cannot be decompressed: {error}") from error
        record.is_compressed = False
    return record


def microseconds(at: float) -> int:
    """Return a time as it is stored: rounded, not truncated, since an entry must be due at the time read back."""
    return round(at * 1e6)


def swapped_out_key(host: HostId, until_us: int) -> bytes:
    return shard_prefix(shard_of(host)) + until_us.to_bytes(8, "big") + host


def due_us_of(key: bytes) -> int:
    """Return when a swapped-out host is due."""
    return int.from_bytes(key[2:10], "big")


def change_key(shard: int, number: int) -> bytes:
    return shard_prefix(shard) + _pack_number(number)


def encode_change(url_id: UrlId, kind: ChangeKind) -> bytes:
    return _KINDS[kind] + url_id


def decode_change(key: bytes, value: bytes) -> Change:
    return Change(int.from_bytes(key[2:], "big"), value[1:], ChangeKind(value[0]))
