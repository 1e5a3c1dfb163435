"""Is everything there? The number of rows per table, and a checksum that does not depend on their order.

The checksum is the sum of the hashes of all rows, so each side is read once, in its own order, with one slice in
memory. Rows that Redis stores as JSON come back with the same values, but perhaps not the same bytes (a row of an
earlier version lacks its last fields), so their hash is that of the decoded row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from xxhash import xxh3_128_intdigest

from gossamer.core.ledger import rows
from gossamer.core.ledger.tables import SEEDS
from gossamer.migration.parts import ARCHIVES, MESSAGES, NODES, ROW_TABLES, CrawlSource, NodePart
from gossamer.ports import Row
from gossamer.ports.shared_ledger import NodeId

_DECODED: Mapping[str, Callable[[bytes], Struct]] = {
    "hosts": rows.decode_host,
    "domains": rows.decode_domain,
    "robots": rows.decode_robots,
    SEEDS.name: SEEDS.decode,
}
_LIMIT = 1 << 128


class TableSum(Struct):
    """A table: how many rows, how many bytes, and their checksum."""

    rows: int = 0
    bytes: int = 0
    checksum: int = 0


def _count(table: TableSum, key: bytes, value: bytes) -> None:
    table.rows += 1
    table.bytes += len(key) + len(value)
    table.checksum = (table.checksum + xxh3_128_intdigest(len(key).to_bytes(4, "big") + key + value)) % _LIMIT


def sums_of(parts: Iterable[Sequence[Row]], tables: Collection[str], *, is_unique: bool = False) -> dict[str, TableSum]:
    """Return the sums of some tables; a key that comes more than once counts once if `is_unique` says so.

    That needs a hash per row in memory. It is needed only if a server repeats rows while it is read, or if a folder has
    several signatures of one URL, of which a shared ledger has the first.
    """
    sums = {table: TableSum() for table in tables}
    seen: set[int] = set()
    for part in parts:
        for table, key, value in part:
            if table not in sums or value is None:
                continue
            if is_unique:
                name = xxh3_128_intdigest(table.encode() + b"\0" + key)
                if name in seen:
                    continue
                seen.add(name)
            decode = _DECODED.get(table)
            _count(sums[table], key, value if decode is None else rows.encode(decode(value)))
    return sums


def source_parts(source: CrawlSource) -> Iterable[Sequence[Row]]:
    """Yield all rows of a source, as `CrawlTarget.parts` yields those of the copy."""
    for lot in source.lots(""):
        yield lot.rows
        yield [message_row(*message) for message in lot.messages]
    nodes = source.nodes()
    yield [node_row(node, part) for node, part in nodes.items()]
    yield [row for part in nodes.values() for row in archive_rows(part.ends)]


def message_row(shard: int, links: bytes) -> Row:
    """Return what waits in an inbox as a row."""
    return Row(MESSAGES, shard.to_bytes(2, "big") + links, b"")


def node_row(node: NodeId, part: NodePart) -> Row:
    ends = dict(sorted(part.ends.items()))
    return Row(NODES, f"{node.name}/{node.incarnation}".encode(), rows.encode([part.totals, ends]))


def archive_rows(ends: Mapping[str, int]) -> list[Row]:
    """Return the committed lengths of archive files as rows."""
    return [Row(ARCHIVES, file.encode(), end.to_bytes(8, "big")) for file, end in ends.items() if end]


ALL_TABLES = (*ROW_TABLES, MESSAGES, ARCHIVES, NODES)
