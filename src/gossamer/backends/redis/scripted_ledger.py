"""What is the same on one Redis server and on Redis Cluster: all calls but those that make commits or read them back.

A call is one script on the control keys, or a few plain commands. `lua/common.lua` lists the keys.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from threading import local
from typing import Any

import msgspec
import zstandard
from zstandard import FORMAT_ZSTD1_MAGICLESS, ZstdCompressionDict, ZstdCompressionParameters

from gossamer.backends.redis import arguments
from gossamer.backends.redis.arguments import id_of, node_of
from gossamer.backends.redis.calls import Argument, ServerCalls
from gossamer.backends.redis.keys import rows_of
from gossamer.backends.redis.whole import WholeCrawl
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.url.identity import Identity, current, shard_of
from gossamer.model.errors import LeaseLostError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import UrlId
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, Membership, NodeId, NodeView, Ownership

# Rows of URLs are compressed in Redis, one by one, with a dictionary that all nodes have.
#
# Memory is what a shared ledger costs: a row of a fetched page shrinks from 260 bytes to 170 or less, for 2.6 µs of
# CPU, and 1.5 when it is read back. The dictionary is part of the protocol: `rows.zdict`, made by
# `benchmarks/row_dictionary.py`.

_MARK = b"\0"  # no row begins with it: a row is a list in MessagePack
_MAX_BYTES = 1 << 20
_LEVEL = 3


class RowPacking:
    """Compresses and decompresses rows. Not thread-safe: each thread has its own."""

    def __init__(self) -> None:
        dictionary = ZstdCompressionDict(files("gossamer.backends.redis").joinpath("rows.zdict").read_bytes())
        parameters = ZstdCompressionParameters.from_level(
            _LEVEL,
            format=FORMAT_ZSTD1_MAGICLESS,
            write_content_size=True,
            write_checksum=False,
            write_dict_id=False,
        )
        dictionary.precompute_compress(compression_params=parameters)
        self._compress = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress
        self._decompress = zstandard.ZstdDecompressor(
            dict_data=dictionary, format=FORMAT_ZSTD1_MAGICLESS, max_window_size=_MAX_BYTES
        ).decompress

    def pack(self, row: bytes) -> bytes:
        """Return a row compressed, if that is shorter."""
        packed = self._compress(row)
        return _MARK + packed if len(packed) + 1 < len(row) else row

    def unpack(self, value: bytes) -> bytes:
        """Return the row; raise ValueError if it was not packed here."""
        try:
            return self._decompress(value[1:], max_output_size=_MAX_BYTES) if value[:1] == _MARK else value
        except (zstandard.ZstdError, MemoryError) as error:
            raise ValueError(f"it cannot be decompressed: {error}") from error


_ROWS_AT_ONCE = 10_000  # of one hash; larger ones are read in pieces
_status = msgspec.json.Decoder(NodeStatus).decode
_totals = msgspec.json.Decoder(Totals).decode


class ScriptedLedger(WholeCrawl):
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    def __init__(self, calls: ServerCalls, prefix: str) -> None:
        self._calls = calls
        self._name = calls.name
        self._prefix = prefix
        self._own = local()
        self._identity: Identity | None = None  # as soon as it cannot change any more

    @abstractmethod
    def _prefix_of(self, shard: int) -> str:
        """Return the prefix of the keys of a shard."""

    @abstractmethod
    def _batches(self, shards: Collection[int]) -> Iterator[list[int]]:
        """Yield shards that are read in one round trip."""

    def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self._calls.pipelined(commands)

    def _call(self, script: str, node: NodeId | None, *args: Argument) -> Any:  # noqa: ANN401
        return self._calls.run(script, self._prefix, "" if node is None else id_of(node), *args)

    @property
    def _packing(self) -> RowPacking:
        """Of this thread."""
        if not hasattr(self._own, "packing"):
            self._own.packing = RowPacking()
        packing: RowPacking = self._own.packing
        return packing

    def check_server(self) -> str:
        """Raise if a server cannot hold a crawl; return what the operator should know, or an empty string."""
        for memory in self._calls.info("memory"):
            policy = memory.get("maxmemory_policy", "noeviction")
            if memory.get("maxmemory") and policy != "noeviction":
                raise UsageError(
                    f"ledger {self._name}: Redis may remove keys when it is full (maxmemory-policy {policy}), "
                    "which would lose pages; set it to noeviction"
                )
        if all(persistence.get("aof_enabled") for persistence in self._calls.info("persistence")):
            return ""
        return (
            f"ledger {self._name}: Redis writes no append-only file: the crawl is lost if it ends; "
            "start it with --appendonly yes"
        )

    # -- the record -------------------------------------------------------------------------------

    def start(self, record: CrawlRecord) -> CrawlRecord:
        return arguments.record_of(self._call("start", None, arguments.encode(record), arguments.budget_of(record)))

    def record(self) -> CrawlRecord | None:
        found = self._calls.command("HMGET", self._prefix + "record", "version", "body", "ended")
        return None if found[0] is None else arguments.record_of(found)

    def record_version(self) -> int:
        return int(self._calls.command("HGET", self._prefix + "record", "version") or 0)

    def change_record(self, record: CrawlRecord) -> bool:
        budget = arguments.budget_of(record)
        return bool(
            self._call("change_record", None, record.version - 1, arguments.encode(record), budget, record.ended)
        )

    def _record_to_extend(self, commit: Commit) -> CrawlRecord | None:
        """Return the record that a commit changes, or None if it changes none."""
        record = self.record() if commit.added else None
        return None if record is None or record.ended else record

    # -- leases -----------------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        return arguments.membership_of(self._call("join", node, node.name, label, lease_s))

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        domains = "" if status.domains is None else status.domains
        state = (status.idle, status.commit, status.record_version, domains, arguments.to_json(status))
        return arguments.membership_of(self._call("renew", node, *state))

    def leave(self, node: NodeId) -> None:
        self._call("leave", node)

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        taken: list[bytes] = self._call("take", node, *shards) if shards else []
        return arguments.pairs(taken)

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        self._call("release", node, *shards)

    # -- rows ---------------------------------------------------------------------------------------

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, whoever owns them."""
        for some in self._batches(shards):
            yield from self._restore_some(some, tables)

    def _require_owner(self, node: NodeId, shards: Sequence[int]) -> None:
        owners = self._calls.command("HMGET", self._prefix + "owners", *shards)
        if any(owner != id_of(node).encode() for owner in owners):
            raise LeaseLostError(f"node {node.name}: shards that it reads are not its own any more")

    def _restore_some(self, shards: Sequence[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of a batch of shards, small hashes in one round trip."""
        prefix = self._prefix_of(shards[0])
        found: list[bytes] = self._calls.run("sizes", prefix, "", len(tables), *tables, *shards)
        sizes = [(table.decode(), int(shard), int(rows)) for table, shard, rows in zip(*[iter(found)] * 3, strict=True)]
        sizes.sort(key=lambda each: tables.index(each[0]))
        keys = [(table, f"{prefix}{table}:{shard}", rows) for table, shard, rows in sizes]
        small = [(table, key) for table, key, rows in keys if rows <= _ROWS_AT_ONCE]
        read = self._calls.pipelined([("HGETALL", key) for _, key in small])
        for (table, key), values in zip(small, read, strict=True):
            yield self._rows(table, key, values)
        for table, key, rows in keys:
            if rows > _ROWS_AT_ONCE:
                yield from self._restore_large(table, key)

    def _restore_large(self, table: str, key: str) -> Iterator[list[Row]]:
        cursor = 0
        while True:
            cursor, found = self._calls.command("HSCAN", key, cursor, "COUNT", _ROWS_AT_ONCE)
            yield self._rows(table, key, found)
            if not cursor:
                return

    def _rows(self, table: str, key: str, found: dict[bytes, bytes]) -> list[Row]:
        bodies: dict[bytes, bytes] = {}
        if table == "robots":
            origins = list(found)
            texts = self._calls.command("HMGET", key.replace(":robots:", ":robotstxt:"), *origins)
            bodies = dict(zip(origins, (text or b"" for text in texts), strict=True))
        return rows_of(
            table, int(key.rpartition(":")[2]), found, bodies, unpack=self._packing.unpack, identity=self._ids()
        )

    def _ids(self) -> Identity:
        """Return how ids are made: rows of hosts have their names as keys."""
        if self._identity is not None:
            return self._identity
        record = self.record()
        identity = current() if record is None else Identity(record.ids)
        if record is not None and record.identity is not None:
            self._identity = identity
        return identity

    # -- the whole crawl --------------------------------------------------------------------------

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        return int(self._call("claim", node, budget, amount))

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> dict[str, AddressGrant]:
        asked = [each for address, ask in asks.items() for each in (address, ask.in_use, ask.wanted, ask.kept)]
        got: list[int] = self._call("reserve", node, rules.pool, round(rules.slice_s * 1e6), *asked)
        answers = zip(got[::2], got[1::2], strict=True)
        return {address: AddressGrant(permits, us / 1e6) for address, (permits, us) in zip(asks, answers, strict=True)}

    def try_end(self, node: NodeId) -> str:
        why: bytes = self._call("try_end", node)
        return why.decode()

    def nodes(self) -> dict[NodeId, NodeView]:
        now_us = self._calls.now_us(self._prefix)
        ids = sorted(member.decode() for member in self._calls.command("SMEMBERS", self._prefix + "members"))
        fields = ("status", "totals", "over", "lease_until")
        found = self._calls.pipelined([("HMGET", f"{self._prefix}node:{each}", *fields) for each in ids])
        known: dict[NodeId, NodeView] = {}
        for each, (status, totals, over, lease_until) in zip(ids, found, strict=True):
            known[node_of(each)] = NodeView(
                _status(status) if status else NodeStatus(),
                _totals(totals) if totals else Totals(),
                not over and int(lease_until or 0) > now_us,
            )
        return known

    def archive_ends(self, name: str) -> dict[str, int]:
        found = self._calls.command("HGETALL", f"{self._prefix}archives:{name}")
        return {file.decode(): int(end) for file, end in found.items()}

    # -- for readers ------------------------------------------------------------------------------

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        """Return the rows of URLs, in one round trip."""
        keys = [f"{self._prefix_of(shard)}urls:{shard}" for shard in map(shard_of, ids)]
        found = self._calls.pipelined([("HGET", key, each) for key, each in zip(keys, ids, strict=True)])
        return [None if row is None else self._packing.unpack(row) for row in found]

    def ownership(self, shard: int) -> Ownership | None:
        owner = self._calls.command("HGET", self._prefix + "owners", shard)
        if owner is None:
            return None
        node = node_of(owner.decode())
        epoch = self._calls.command("HGET", f"{self._prefix}shards:{owner.decode()}", shard)
        view = self.nodes().get(node)
        return Ownership(node, int(epoch or 0), view is not None and view.is_live)

    def close(self) -> None:
        self._calls.close()
