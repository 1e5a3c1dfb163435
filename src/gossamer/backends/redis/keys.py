"""The rows of a shard in Redis: one hash per table and shard, `gossamer:CRAWL:TABLE:SHARD`.

hosts      host name -> JSON of HostRecord               for people, with `redis-cli hgetall`
domains    domain -> JSON of DomainRecord                likewise
robots     origin -> JSON of RobotsRecord without body   likewise
robotstxt  origin -> the body, as it was received        likewise
urls       URL id -> the row, compressed (`packing`)
others     the row's key -> the row, as in every store
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer.core.ledger import rows
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import id_in_shard
from gossamer.model.records import DomainRecord, HostRecord, RobotsRecord
from gossamer.ports import Row

Change = tuple[str, bytes, bytes | None]  # hash, field, value; None removes the field
_to_json = msgspec.json.Encoder().encode
_host = msgspec.json.Decoder(HostRecord).decode
_domain = msgspec.json.Decoder(DomainRecord).decode
_robots = msgspec.json.Decoder(RobotsRecord).decode


def changes_of(shard: int, changed: Sequence[Row], pack: Callable[[bytes], bytes]) -> Iterator[Change]:
    """Return the changes in Redis for changed rows of a shard."""
    for table, key, value in changed:
        hash_key = f"{table}:{shard}"
        if table == "urls" and value is not None:
            yield hash_key, key, pack(value)
        elif value is None or table not in _READABLE:
            yield hash_key, key, value
        elif table == "robots":
            record = rows.decode_robots(value)
            field = record.origin.encode()
            yield hash_key, field, _to_json(replace(record, body=b""))
            yield f"robotstxt:{shard}", field, record.body
        else:
            named: HostRecord | DomainRecord = _READABLE[table](value)
            yield hash_key, named.name.encode(), _to_json(named)


_READABLE: dict[str, Callable[[bytes], Any]] = {
    "hosts": rows.decode_host,
    "domains": rows.decode_domain,
    "robots": rows.decode_robots,
}


def rows_of(
    table: str, shard: int, found: dict[bytes, bytes], bodies: dict[bytes, bytes], unpack: Callable[[bytes], bytes]
) -> list[Row]:
    """Return rows as in every store from the hash of a shard; `bodies` are those of robots.txt."""
    match table:
        case "hosts":
            return [_named_row(table, shard, name, rows.encode(_host(value))) for name, value in found.items()]
        case "domains":
            return [_named_row(table, shard, name, rows.encode(_domain(value))) for name, value in found.items()]
        case "robots":
            return [_robots_row(shard, origin, value, bodies.get(origin, b"")) for origin, value in found.items()]
        case "urls":
            return [Row(table, key, unpack(value)) for key, value in found.items()]
        case _:
            return [Row(table, key, value) for key, value in found.items()]


def _named_row(table: str, shard: int, name: bytes, value: bytes) -> Row:
    return Row(table, id_in_shard(shard, name.decode()), value)


def _robots_row(shard: int, origin: bytes, value: bytes, body: bytes) -> Row:
    host = id_in_shard(shard, host_of(origin.decode() + "/"))
    return Row("robots", rows.robots_key(origin.decode(), host), rows.encode_robots(replace(_robots(value), body=body)))
