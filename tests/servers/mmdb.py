"""Writes a file in MaxMind's format: a binary tree over the bits of an address, then data, then a description."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import TypeAlias

RECORD_BYTES = 3
UNSIGNED = {2: bytes([5 << 5 | 2]), 4: bytes([6 << 5 | 4]), 8: bytes([8, 2])}
Value: TypeAlias = "str | tuple[int, int] | Mapping[str, Value] | list[Value]"  # a number with its size in bytes


def write_countries(path: Path, countries: Mapping[str, str]) -> Path:
    """Write the countries of IPv4 networks, which must not overlap; return the path."""
    nodes: list[list[int | str | None]] = [[None, None]]
    for network, country in countries.items():
        address, length = ip_network(network).network_address.packed, ip_network(network).prefixlen
        bits = [int(bit) for bit in f"{int.from_bytes(address):032b}"[:length]]
        node = 0
        for bit in bits[:-1]:
            if nodes[node][bit] is None:
                nodes.append([None, None])
                nodes[node][bit] = len(nodes) - 1
            following = nodes[node][bit]
            assert isinstance(following, int)
            node = following
        nodes[node][bits[-1]] = country
    path.write_bytes(_file(nodes))
    return path


def _file(nodes: list[list[int | str | None]]) -> bytes:
    data, offsets = b"", dict[str, int]()
    for country in sorted({each for node in nodes for each in node if isinstance(each, str)}):
        offsets[country] = len(data)
        data += _encoded({"country": {"iso_code": country}})
    empty = len(nodes)

    def record(each: int | str | None) -> bytes:
        value = each if isinstance(each, int) else empty if each is None else empty + 16 + offsets[each]
        return value.to_bytes(RECORD_BYTES)

    tree = b"".join(record(each) for node in nodes for each in node)
    described: dict[str, Value] = {"database_type": "Test-Country", "languages": [], "description": {}}
    version: dict[str, Value] = {"binary_format_major_version": (2, 2), "binary_format_minor_version": (2, 0)}
    numbers: dict[str, Value] = {"build_epoch": (8, 1), "ip_version": (2, 4)}
    sizes: dict[str, Value] = {"node_count": (4, len(nodes)), "record_size": (2, 8 * RECORD_BYTES)}
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + _encoded({**described, **version, **numbers, **sizes})


def _encoded(value: Value) -> bytes:
    match value:
        case str():
            return bytes([2 << 5 | len(value)]) + value.encode()
        case tuple():
            size, number = value
            return UNSIGNED[size] + number.to_bytes(size)
        case list():
            return bytes([len(value), 4]) + b"".join(map(_encoded, value))
        case _:
            items = b"".join(_encoded(key) + _encoded(each) for key, each in value.items())
            return bytes([7 << 5 | len(value)]) + items
