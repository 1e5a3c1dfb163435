"""The shared ledger on Redis 7 or Valkey: one script per call, one call per commit.

The scripts are in `lua/`; `lua/common.lua` lists the keys. A server runs a script without interruption, so a
commit is made wholly or not at all; what happens if the server loses its last second is in `ports/shared_ledger`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from threading import local
from typing import Any, TypeVar

import msgspec
import redis
from msgspec.structs import replace
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from gossamer.backends.redis.keys import changes_of, rows_of
from gossamer.backends.redis.packing import RowPacking
from gossamer.backends.redis.whole import WholeCrawl
from gossamer.core.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.dedup.bands import BANDS, band_keys
from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES
from gossamer.core.identity import shard_of
from gossamer.errors import (
    EngineUnavailableError,
    GossamerError,
    LeaseLostError,
    NodeNameTakenError,
    UsageError,
)
from gossamer.figures import Totals
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore, Member, Membership, Message, NodeId, NodeView, Ownership
from gossamer.records import Similar, UrlId
from gossamer.state import CrawlRecord, NodeStatus

_SCRIPTS = (
    "start", "change_record", "join", "renew", "leave", "take", "release", "commit", "receive", "claim", "try_end",
    "sizes", "reserve",
)  # fmt: skip
_SHARDS_AT_ONCE = 64
_ROWS_AT_ONCE = 10_000  # of one hash; larger ones are read in pieces
_RETRIED = (RedisConnectionError, RedisTimeoutError)
_REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)
_encode = msgspec.msgpack.Encoder().encode
_to_json = msgspec.json.Encoder().encode
_record = msgspec.msgpack.Decoder(CrawlRecord).decode
_status = msgspec.json.Decoder(NodeStatus).decode
_totals = msgspec.json.Decoder(Totals).decode
T = TypeVar("T")


class RedisSharedLedger(WholeCrawl):
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client: Any = client  # its stubs say that every answer may be text
        self._name = name
        self._prefix = f"gossamer:{name}:"
        self._own = local()
        common = _script("common")
        common += f"local MIN_EQUAL_LANES = {math.ceil(MIN_SIMILARITY * LANES)}\n"
        self._scripts = {each: client.register_script("#!lua\n" + common + _script(each)) for each in _SCRIPTS}

    def _call(self, script: str, node: NodeId | None, *args: str | bytes | float) -> Any:  # noqa: ANN401
        me = "" if node is None else _id_of(node)
        return self._guarded(lambda: self._scripts[script](args=[self._prefix, me, *args]))

    @property
    def _packing(self) -> RowPacking:
        """Of this thread."""
        if not hasattr(self._own, "packing"):
            self._own.packing = RowPacking()
        packing: RowPacking = self._own.packing
        return packing

    def _guarded(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except RedisError as error:
            raise _as_ours(error, self._name) from error

    def check_server(self) -> str:
        """Raise if the server cannot hold a crawl; return what the operator should know, or an empty string."""
        memory = self._guarded(lambda: self._client.info("memory"))
        policy = memory.get("maxmemory_policy", "noeviction")
        if memory.get("maxmemory") and policy != "noeviction":
            raise UsageError(
                f"ledger {self._name}: Redis may remove keys when it is full (maxmemory-policy {policy}), "
                "which would lose pages; set it to noeviction"
            )
        persistence = self._guarded(lambda: self._client.info("persistence"))
        if persistence.get("aof_enabled"):
            return ""
        return (
            f"ledger {self._name}: Redis writes no append-only file: the crawl is lost if it ends; "
            "start it with --appendonly yes"
        )

    # -- the record -------------------------------------------------------------------------------

    def start(self, record: CrawlRecord) -> CrawlRecord:
        """Store the record of a new crawl; if there is one, return that instead."""
        return _record_of(self._call("start", None, _encode(record), _budget(record)))

    def record(self) -> CrawlRecord | None:
        """Return the crawl's record."""
        found = self._guarded(lambda: self._client.hmget(self._prefix + "record", ["version", "body", "ended"]))
        return None if found[0] is None else _record_of(found)

    def change_record(self, record: CrawlRecord) -> bool:
        """Replace the record by one with the next version."""
        changed = self._call("change_record", None, record.version - 1, _encode(record), _budget(record), record.ended)
        return bool(changed)

    # -- leases -----------------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        """Begin a lease."""
        return _membership_of(self._call("join", node, node.name, label, lease_s))

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        """Prolong the lease."""
        domains = "" if status.domains is None else status.domains
        state = (status.idle, status.commit, status.record_version, domains, _to_json(status))
        return _membership_of(self._call("renew", node, *state))

    def leave(self, node: NodeId) -> None:
        """End the lease."""
        self._call("leave", node)

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        """Become the owner of those of the shards that no live node owns."""
        taken: list[bytes] = self._call("take", node, *shards) if shards else []
        return _pairs(taken)

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        """Give up shards."""
        self._call("release", node, *shards)

    # -- rows and links ---------------------------------------------------------------------------

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        """Make a commit durable."""
        totals = commit.totals
        args: list[str | bytes | float] = [commit.number, _to_json(totals), totals.pages, totals.unique_domains]
        _append(args, [(shard, epoch) for shard, epoch in commit.epochs.items()])
        _append(args, [(shard, len(ids), ids[-1]) for shard, ids in commit.read.items() if ids])
        _append_rows(args, commit.rows, self._packing.pack)
        message_id = f"{_id_of(node)}/{commit.number}".encode()
        _append(args, [(shard, _message(message_id, links)) for shard, links in commit.links.items()])
        _append(args, [(f"contents:{key[:1].hex()}", key, page) for key, page in commit.contents.items()])
        signed = commit.signatures.items()
        _append(args, [(page, signature, BANDS, *band_keys(signature)) for page, signature in signed])
        ends = [(row.key, int.from_bytes(row.value or b"", "big")) for row in commit.archives]
        _append(args, ends)
        repeated, similar = self._call("commit", node, *args)
        return KnownBefore(
            dict(zip(repeated[::2], repeated[1::2], strict=True)),
            {page: Similar(other, lanes / LANES) for page, other, lanes in zip(*[iter(similar)] * 3, strict=True)},
        )

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        """Return messages for the node's shards."""
        has = [each for shard, ids in read.items() if ids for each in (shard, len(ids), ids[-1])]
        received: list[bytes] = self._call("receive", node, max_bytes, *has)
        messages: dict[int, list[Message]] = {}
        for shard, message in zip(received[::2], received[1::2], strict=True):
            messages.setdefault(int(shard), []).append(_message_of(message))
        return messages

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards that the node owns."""
        waiting = iter(sorted(shards))
        while some := list(islice(waiting, _SHARDS_AT_ONCE)):
            self._require_owner(node, some)
            yield from self._restore_some(some, tables)

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, whoever owns them."""
        waiting = iter(sorted(shards))
        while some := list(islice(waiting, _SHARDS_AT_ONCE)):
            yield from self._restore_some(some, tables)

    def _require_owner(self, node: NodeId, shards: Sequence[int]) -> None:
        key, names = self._prefix + "owners", [str(shard) for shard in shards]
        owners = self._guarded(lambda: self._client.hmget(key, names))
        if any(owner != _id_of(node).encode() for owner in owners):
            raise LeaseLostError(f"node {node.name}: shards that it reads are not its own any more")

    def _restore_some(self, shards: Sequence[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, small hashes in one round trip."""
        found: list[bytes] = self._call("sizes", None, len(tables), *tables, *shards)
        sizes = [(table.decode(), int(shard), int(rows)) for table, shard, rows in zip(*[iter(found)] * 3, strict=True)]
        sizes.sort(key=lambda each: tables.index(each[0]))
        keys = [(table, f"{self._prefix}{table}:{shard}", rows) for table, shard, rows in sizes]
        small = [(table, key) for table, key, rows in keys if rows <= _ROWS_AT_ONCE]
        for (table, key), values in zip(small, self._pipelined([("HGETALL", key) for _, key in small]), strict=True):
            yield self._rows(table, key, values)
        for table, key, rows in keys:
            if rows > _ROWS_AT_ONCE:
                yield from self._restore_large(table, key)

    def _restore_large(self, table: str, key: str) -> Iterator[list[Row]]:
        cursor = 0
        while True:
            start = cursor
            cursor, found = self._guarded(lambda: self._client.hscan(key, start, count=_ROWS_AT_ONCE))  # noqa: B023
            yield self._rows(table, key, found)
            if not cursor:
                return

    def _rows(self, table: str, key: str, found: dict[bytes, bytes]) -> list[Row]:
        bodies: dict[bytes, bytes] = {}
        if table == "robots":
            origins = list(found)
            texts = self._guarded(lambda: self._client.hmget(key.replace(":robots:", ":robotstxt:"), origins))
            bodies = dict(zip(origins, (text or b"" for text in texts), strict=True))
        return rows_of(table, int(key.rpartition(":")[2]), found, bodies, self._packing.unpack)

    def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not commands:
            return []
        with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return self._guarded(pipeline.execute)

    # -- the whole crawl --------------------------------------------------------------------------

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        """Claim this much of a budget in all."""
        return int(self._call("claim", node, budget, amount))

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> dict[str, AddressGrant]:
        """Ask for permits and time at addresses."""
        asked = [each for address, ask in asks.items() for each in (address, ask.in_use, ask.wanted)]
        got: list[int] = self._call("reserve", node, rules.pool, round(rules.slice_s * 1e6), *asked)
        answers = zip(got[::2], got[1::2], strict=True)
        return {address: AddressGrant(permits, us / 1e6) for address, (permits, us) in zip(asks, answers, strict=True)}

    def try_end(self, node: NodeId) -> str:
        """End the crawl if nothing is left to do anywhere."""
        why: bytes = self._call("try_end", node)
        return why.decode()

    def nodes(self) -> dict[NodeId, NodeView]:
        """Return all incarnations."""
        seconds, microseconds = self._guarded(self._client.time)
        now_us = seconds * 1_000_000 + microseconds
        ids = sorted(
            member.decode() for member in self._guarded(lambda: self._client.smembers(self._prefix + "members"))
        )
        fields = ("status", "totals", "over", "lease_until")
        found = self._pipelined([("HMGET", f"{self._prefix}node:{each}", *fields) for each in ids])
        known: dict[NodeId, NodeView] = {}
        for each, (status, totals, over, lease_until) in zip(ids, found, strict=True):
            name, _, incarnation = each.rpartition("/")
            known[NodeId(name, incarnation)] = NodeView(
                _status(status) if status else NodeStatus(),
                _totals(totals) if totals else Totals(),
                not over and int(lease_until or 0) > now_us,
            )
        return known

    def archive_ends(self, name: str) -> dict[str, int]:
        """Return the committed lengths of the archive files of a node."""
        found = self._guarded(lambda: self._client.hgetall(f"{self._prefix}archives:{name}"))
        return {file.decode(): int(end) for file, end in found.items()}

    # -- for readers ------------------------------------------------------------------------------

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        """Return the rows of URLs, in one round trip."""
        found = self._pipelined([("HGET", f"{self._prefix}urls:{shard_of(each)}", each) for each in ids])
        return [None if row is None else self._packing.unpack(row) for row in found]

    def ownership(self, shard: int) -> Ownership | None:
        """Return who owns a shard."""
        owner = self._guarded(lambda: self._client.hget(self._prefix + "owners", shard))
        if owner is None:
            return None
        name, _, incarnation = owner.decode().rpartition("/")
        node = NodeId(name, incarnation)
        epoch = self._guarded(lambda: self._client.hget(f"{self._prefix}shards:{owner.decode()}", shard))
        view = self.nodes().get(node)
        return Ownership(node, int(epoch or 0), view is not None and view.is_live)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _script(name: str) -> str:
    text = files("gossamer.backends.redis").joinpath("lua", f"{name}.lua").read_text()
    return _script("pages") + text if name == "commit" else text


def _id_of(node: NodeId) -> str:
    return f"{node.name}/{node.incarnation}"


def _budget(record: CrawlRecord) -> str | int:
    return record.budgets.get("pages", "")


def _record_of(found: Sequence[bytes]) -> CrawlRecord:
    version, body, ended = found
    try:
        record = _record(body)
    except msgspec.MsgspecError:
        raise UsageError(
            "this program cannot read the record of the crawl: another version of Gossamer started it; use that one"
        ) from None
    return replace(record, version=int(version), ended=ended.decode())


def _membership_of(found: Sequence[Any]) -> Membership:
    now_us, lease_s, members, shards, commit, claimed, version, domains, ended = found
    live = [
        Member(each.decode().rpartition("/")[0], label.decode())
        for each, label in zip(members[::2], members[1::2], strict=True)
    ]
    return Membership(
        now=int(now_us) / 1e6,
        lease_s=float(lease_s),
        members=tuple(sorted(live, key=lambda member: member.name)),
        shards=_pairs(shards),
        commit=int(commit),
        claimed=int(claimed) if claimed else None,
        record_version=int(version),
        domains=int(domains),
        ended=ended.decode(),
    )


def _pairs(found: Sequence[bytes]) -> dict[int, int]:
    return dict(zip(map(int, found[::2]), map(int, found[1::2]), strict=True))


def _append(args: list[str | bytes | float], entries: Sequence[Sequence[Any]]) -> None:
    args.append(len(entries))
    for entry in entries:
        args += entry


def _append_rows(
    args: list[str | bytes | float], changed: Mapping[int, Sequence[Row]], pack: Callable[[bytes], bytes]
) -> None:
    hashes: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for shard, its_rows in changed.items():
        for key, field, value in changes_of(shard, its_rows, pack):
            added, removed = hashes.setdefault(key, ([], []))
            if value is None:
                removed.append(field)
            else:
                added += (field, value)
    args.append(len(hashes))
    for key, (added, removed) in hashes.items():
        args += (key, len(added) // 2, *added, len(removed), *removed)


def _message(message_id: bytes, links: bytes) -> bytes:
    return len(message_id).to_bytes(2, "big") + message_id + links


def _message_of(data: bytes) -> Message:
    end = 2 + int.from_bytes(data[:2], "big")
    return Message(data[2:end], data[end:])


def _as_ours(error: RedisError, name: str) -> GossamerError:
    """Return an error of Redis as one of ours, in one line."""
    text = str(error).rstrip(".")
    if isinstance(error, _REFUSED) or "can't access at least one of the keys" in text:
        return UsageError(
            f"ledger {name}: {text}; give a user and a password that may run scripts (EVALSHA, SCRIPT LOAD, INFO) and "
            f"use the keys gossamer:{name}:*"
        )
    if "DB index is out of range" in text:
        return UsageError(
            f"ledger {name}: the server has no database of this number; expected redis://host:port/0/NAME"
        )
    if isinstance(error, _RETRIED):
        return EngineUnavailableError(f"ledger {name}: Redis cannot be reached: {text}")
    if text.startswith("LEASELOST "):
        return LeaseLostError(f"ledger {name}: {text.removeprefix('LEASELOST ')}")
    if text.startswith("NAMETAKEN "):
        return NodeNameTakenError(f"ledger {name}: a live node has the name {text.removeprefix('NAMETAKEN ')}")
    if isinstance(error, OutOfMemoryError) or "OOM command not allowed" in text:
        return EngineUnavailableError(f"ledger {name}: Redis is full (maxmemory); give it more memory")
    return (
        EngineUnavailableError(f"ledger {name}: {text}")
        if "LOADING" in text
        else GossamerError(f"ledger {name}: {text}")
    )
