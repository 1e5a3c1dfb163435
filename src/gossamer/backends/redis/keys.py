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
from gossamer.core.url.identity import Identity
from gossamer.model.errors import CorruptRowError
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
    table: str,
    shard: int,
    found: dict[bytes, bytes],
    bodies: dict[bytes, bytes],
    *,
    unpack: Callable[[bytes], bytes],
    identity: Identity,
) -> list[Row]:
    """Return rows as in every store from the hash of a shard; `bodies` are those of robots.txt."""
    made: list[Row] = []
    key = b""
    try:
        for key, value in found.items():
            match table:
                case "hosts":
                    made.append(_named_row(table, shard, _host(value), identity))
                case "domains":
                    made.append(_named_row(table, shard, _domain(value), identity))
                case "robots":
                    record = replace(_robots(value), body=bodies.get(key, b""))
                    made.append(_robots_row(shard, record, identity))
                case "urls":
                    made.append(Row(table, key, unpack(value)))
                case _:
                    made.append(Row(table, key, value))
    except (msgspec.MsgspecError, ValueError, LookupError) as error:
        name = key.decode("utf-8", "replace") if table in _READABLE else key
        raise CorruptRowError.of(f"{table}:{shard}", name, error) from error
    return made


def _named_row(table: str, shard: int, record: HostRecord | DomainRecord, identity: Identity) -> Row:
    return Row(table, identity.id_in_shard(shard, record.name, record.probe), rows.encode(record))


def _robots_row(shard: int, record: RobotsRecord, identity: Identity) -> Row:
    host = identity.id_in_shard(shard, host_of(record.origin + "/"), record.probe)
    return Row("robots", rows.robots_key(record.origin, host, identity), rows.encode_robots(record))
