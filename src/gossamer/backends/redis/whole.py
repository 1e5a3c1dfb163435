"""Contents, signatures and inboxes as a whole: what `gossamer migrate` reads and writes in Redis.

Plain commands instead of a script: nobody else works on such a crawl, and each can be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from gossamer.core.dedup.bands import band_keys
from gossamer.core.dedup.minhash import SIGNATURE_BYTES
from gossamer.ports import Row

_MAX_EQUAL = 4  # pages per band, as in `lua/pages.lua`
_ID_BYTES = 16
_ROWS_AT_ONCE = 5000
_MESSAGES_AT_ONCE = 20


class WholeCrawl(ABC):
    """The part of a shared ledger on Redis that migrations use."""

    _prefix: str

    @abstractmethod
    def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]: ...

    @abstractmethod
    def _prefix_of_pages(self, part: int) -> str:
        """Return the prefix of the keys with 1/256 of the contents, signatures or bands."""

    def pages(self, part: int) -> Iterator[list[Row]]:
        for table in ("contents", "signatures"):
            key = self._place(table, part)
            cursor = b"0"
            while True:
                ((cursor, found),) = self._pipelined([("HSCAN", key, cursor, "COUNT", _ROWS_AT_ONCE)])
                fields = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
                yield [Row(table, field, value) for field, value in fields]
                if int(cursor) == 0:
                    break

    def add_pages(self, rows: Sequence[Row]) -> None:
        contents = [row for row in rows if row.table == "contents"]
        signed = [row for row in rows if row.table == "signatures"]
        self._pipelined([("HSETNX", self._place("contents", row.key[0]), row.key, row.value) for row in contents])
        self._pipelined([("HSETNX", self._place("signatures", row.key[-1]), row.key, row.value) for row in signed])
        self._add_bands([row for row in signed if len(row.value or b"") == SIGNATURE_BYTES])

    def _place(self, table: str, number: int) -> str:
        return f"{self._prefix_of_pages(number)}{table}:{number:02x}"

    def _add_bands(self, signed: Sequence[Row]) -> None:
        """Add pages to the bands of their signatures; doing it again changes nothing."""
        places = [
            (f"{self._place('bands', band[0])}{band[1]:02x}", band[2:], page)
            for _, page, signature in signed
            for band in band_keys(signature or b"")
        ]
        found = self._pipelined([("HGET", key, field) for key, field, _ in places])
        bands: dict[tuple[str, bytes], bytes] = {}
        for (key, field, page), stored in zip(places, found, strict=True):
            known = bands.get((key, field), stored or b"")
            ids = [known[start : start + _ID_BYTES] for start in range(0, len(known), _ID_BYTES)]
            bands[key, field] = known if page in ids else (known + page)[-_MAX_EQUAL * _ID_BYTES :]
        self._pipelined([("HSET", key, field, ids) for (key, field), ids in bands.items()])

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        (waiting,) = self._pipelined([("HKEYS", f"{self._prefix}inboxes")])
        for shard in sorted({int(shard) for shard in waiting} & set(shards)):
            key = f"{self._prefix}inbox:{shard}"
            start = 0
            while True:
                end = start + _MESSAGES_AT_ONCE - 1
                (found,) = self._pipelined([("LRANGE", key, start, end)])
                yield from ((shard, links_in(message)) for message in found)
                if len(found) < _MESSAGES_AT_ONCE:
                    break
                start += _MESSAGES_AT_ONCE


def links_in(message: bytes) -> bytes:
    """Return the links of a message: after the length of its id, in 2 bytes, and the id."""
    return message[2 + int.from_bytes(message[:2], "big") :]
