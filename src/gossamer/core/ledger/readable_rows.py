"""Rows that people may read in a database: a name, and the record as a JSON object with the names of its fields.

The other rows of a ledger are bytes as in every store. What is read back is the same row again.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import astuple, fields, replace

from gossamer.core.ledger import rows
from gossamer.model.records import DomainRecord, HostRecord, RobotsRecord

READABLE = ("hosts", "domains", "robots")
T = TypeVar("T", bound=Struct)
_to_json = msgspec.json.Encoder().encode


class _Json(Generic[T]):
    """Records as JSON objects: with the names of their fields, which rows of a store leave out."""

    def __init__(self, record: type[T]) -> None:
        self._record = record
        parts: list[tuple[str, type] | tuple[str, type, Any]] = []
        for each in fields(record):
            if each.required:
                parts.append((each.name, each.type))
            elif each.default_factory is not NODEFAULT:
                parts.append((each.name, each.type, msgspec.field(default_factory=each.default_factory)))
            else:
                parts.append((each.name, each.type, each.default))
        self._named = msgspec.defstruct(record.__name__, parts)
        self._decode = msgspec.json.Decoder(self._named).decode

    def encode(self, record: T) -> str:
        return _to_json(self._named(*astuple(record))).decode()

    def decode(self, text: bytes | str) -> T:
        return self._record(*astuple(self._decode(text)))


_hosts = _Json(HostRecord)
_domains = _Json(DomainRecord)
_robots = _Json(RobotsRecord)


def readable(table: str, value: bytes) -> tuple[str, str, bytes]:
    """Return the name, the record as JSON, and the text of a robots.txt, of a row in a table that people may read."""
    match table:
        case "hosts":
            host = rows.decode_host(value)
            return host.name, _hosts.encode(host), b""
        case "domains":
            domain = rows.decode_domain(value)
            return domain.name, _domains.encode(domain), b""
        case _:
            robots = rows.decode_robots(value)
            return robots.origin, _robots.encode(replace(robots, body=b"")), robots.body


def stored(table: str, record: bytes | str, body: bytes) -> bytes:
    match table:
        case "hosts":
            return rows.encode(_hosts.decode(record))
        case "domains":
            return rows.encode(_domains.decode(record))
        case _:
            return rows.encode_robots(replace(_robots.decode(record), body=body))
