"""The shared ledger on Redis Cluster: rows, messages and contents of pages are spread over the servers.

The control keys (who owns what, totals, which messages wait) have one hash tag and are small. Rows and messages are
in 64 ranges with a tag each (`ranges`). A script can change one of these places only, so a commit has steps:

1. journal   what each server is to get is stored on another server
2. decide    one script on the control keys, with all the checks of `lua/commit.lua`; from then on the commit is made
3. apply     one script per range that it changes; repeated or too late, it does nothing

A death between two steps, and a server that goes back in time, are repaired by `settling`: before rows are read,
before a node joins, and whenever a call notices it. A reader may see a commit that is not yet applied everywhere.

One instance makes the commits of an incarnation: it knows the parts of the last one, to send them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.redis import arguments, ranges
from gossamer.backends.redis.arguments import id_of
from gossamer.backends.redis.calls import BehindError, RecordChangedError
from gossamer.backends.redis.cluster_calls import Call, ClusterCalls
from gossamer.backends.redis.cluster_plan import Basis, CommitPlan, PageFacts, decode_similar, encode, plan_commit
from gossamer.backends.redis.near_pages import StoredNearPages
from gossamer.backends.redis.ranges import RANGES, KeyRanges
from gossamer.backends.redis.scripted_ledger import ScriptedLedger
from gossamer.backends.redis.settling import Settling, apply_call
from gossamer.core.cluster.record_additions import Additions, extended
from gossamer.core.dedup.minhash import LANES
from gossamer.model.errors import GossamerError, LeaseLostError, LedgerUnavailableError
from gossamer.model.records import Similar
from gossamer.model.state import NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore, Membership, Message, NodeId

_MESSAGES_AT_ONCE = 20
JOURNAL_COMMITS = 64  # kept per node and server: the last ones
JOURNAL_BYTES = 32 << 20


class _Writer(Struct):
    """What a node has committed."""

    commit: int
    heads: dict[int, int]  # range -> the last commit that changed it
    plan: CommitPlan | None = None  # of the last commit


class RedisClusterLedger(ScriptedLedger):
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._keys = KeyRanges(calls.name)
        self._cluster = calls
        super().__init__(calls, self._keys.control)
        self._settling = Settling(calls, self._keys, self._extend_record)
        self._writers: dict[NodeId, _Writer] = {}
        self._missing: dict[NodeId, set[tuple[int, bytes]]] = {}  # messages that had no links when they were asked for
        self._seen_us = 0  # the latest time of the engine that was seen
        self._servers: frozenset[str] = frozenset()  # run ids
        self._is_settled = False

    def _prefix_of(self, shard: int) -> str:
        return self._keys.prefix(ranges.of_shard(shard))

    def _prefix_of_pages(self, part: int) -> str:
        return self._keys.prefix(part >> ranges.PART_BITS)

    def _batches(self, shards: Collection[int]) -> Iterator[list[int]]:
        for _, some in groupby(sorted(shards), ranges.of_shard):
            yield list(some)

    # -- leases -----------------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        """Begin a lease, when all commits are complete."""
        self._settling.settle()
        for former in [each for each in self._writers if each.name == node.name and each != node]:
            del self._writers[former]
        membership = self._see(super().join(node, label, lease_s))
        self._mend_logs(self._run_ids())
        return membership

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        """Prolong the lease; look whether a server was restarted."""
        membership = self._see(super().renew(node, status))
        with suppress(LedgerUnavailableError):  # what concerns the server that is away will say so
            servers = self._run_ids()
            if not servers <= self._servers and self._settling.settle():
                membership = self._see(super().renew(node, status))
            self._mend_logs(servers)
        return membership

    def _mend_logs(self, servers: frozenset[str]) -> None:
        for run_id in servers - self._servers:
            self._cluster.mend_log(run_id, self._prefix + "mended")
        self._servers = servers

    def _see(self, membership: Membership) -> Membership:
        self._seen_us = max(self._seen_us, round(membership.now * 1e6))
        return membership

    def _run_ids(self) -> frozenset[str]:
        """Return what changes if a server is restarted, or another takes over its keys."""
        return frozenset(str(each["run_id"]) for each in self._cluster.info("server"))

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        taken = super().take(node, shards)
        self._seen_us = max(self._seen_us, *taken.values(), 0)
        self._is_settled = False
        return taken

    def try_end(self, node: NodeId) -> str:
        why = super().try_end(node)
        if why:
            self._settling.settle()
        return why

    # -- commits ----------------------------------------------------------------------------------

    def _extend_record(self, added: Additions) -> None:
        """Add to the record what a commit has added that the server of the control keys has lost."""
        while True:
            record = self.record()
            if record is None or record.ended or self.change_record(extended(record, added)):
                return

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        while True:
            try:
                return self._commit(node, commit)
            except RecordChangedError:
                self._writers[node].plan = None

    def _commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        writer = self._writer(node)
        if commit.number <= writer.commit and (writer.plan is None or writer.plan.number != commit.number):
            return self._answer_again(node, commit.number, commit.contents)
        plan = writer.plan
        if plan is None or plan.number != commit.number:
            plan = writer.plan = self._plan(node, writer, commit)
        if commit.number > writer.commit:
            self._write_journal(plan)
        try:
            similar = self._decide(plan)
        except LeaseLostError:
            writer.plan = None  # it was not made
            raise
        writer.commit = plan.number
        writer.heads |= dict.fromkeys(plan.touched, plan.number)
        repeated = self._apply([apply_call(self._keys, plan, number) for number in plan.touched])
        return _known_before(repeated, similar)

    def _writer(self, node: NodeId) -> _Writer:
        if node not in self._writers:
            me = id_of(node)
            self._settling.settle()
            commit, heads = self._cluster.pipelined([
                ("HGET", f"{self._prefix}node:{me}", "commit"),
                ("HGETALL", f"{self._prefix}heads:{me}"),
            ])  # fmt: skip
            self._seen_us = max(self._seen_us, self._cluster.now_us(self._prefix))
            stored = _Writer(int(commit or 0), {int(number): int(head) for number, head in heads.items()})
            self._writers.setdefault(node, stored)
        return self._writers[node]

    def _plan(self, node: NodeId, writer: _Writer, commit: Commit) -> CommitPlan:
        pages = PageFacts([], {})
        if commit.signatures:
            near = StoredNearPages(self._cluster, self._keys, commit.signatures)
            pages = PageFacts(near.similar, near.added)
        basis = Basis(id_of(node), writer.heads, self._seen_us, self._record_to_extend(commit))
        return plan_commit(commit, pages, basis, self._packing.pack)

    def _write_journal(self, plan: CommitPlan) -> None:
        servers = {number: self._cluster.server_of(self._keys.prefix(number)) for number in RANGES}
        of_control = self._cluster.server_of(self._prefix)
        parts: dict[str, dict[int, Any]] = {of_control: {}}
        for number, part in plan.parts.items():
            parts.setdefault(servers[number], {})[number] = part
        journals = ranges.journals_of(servers, of_control)
        entries: dict[int, dict[int, Any]] = {}
        for server, some in parts.items():
            entries.setdefault(journals[server], {}).update(some)
        self._cluster.run_many(
            [
                ("journal", self._keys.prefix(place), (
                    plan.node, plan.number,
                    encode(replace(plan, parts=some)),
                    JOURNAL_COMMITS, JOURNAL_BYTES,
                ))
                for place, some in entries.items()
            ]
        )  # fmt: skip

    def _decide(self, plan: CommitPlan) -> bytes:
        """Decide a commit; return which of its pages are similar to others. A server may have lost what it needs."""
        try:
            now_us, similar = self._cluster.run("decide", self._prefix, plan.node, *plan.decision, "")
        except LeaseLostError:
            if not self._settling.settle():
                raise
            now_us, similar = self._cluster.run("decide", self._prefix, plan.node, *plan.decision, "")
        self._seen_us = max(self._seen_us, int(now_us))
        found: bytes = similar
        return found

    def _apply(self, calls: Sequence[Call]) -> list[bytes]:
        """Apply a commit that is decided; return the contents that were known."""
        try:
            answers = self._cluster.run_many(calls)
        except BehindError:
            self._settling.settle()
            try:
                answers = self._cluster.run_many(calls)
            except BehindError as error:
                raise LeaseLostError(str(error)) from error
        return [each for answer in answers for each in answer]

    def _answer_again(self, node: NodeId, number: int, contents: Collection[bytes]) -> KnownBefore:
        """Return the answer to a commit that an earlier instance has made."""
        self._settling.settle()
        # Based on a shard that does not exist, so that nothing is made if the engine has lost that commit.
        decision = (number, b"", 0, 0, 0, 1, -1, 0, 0, 0, 0, 0, b"", "")
        _, similar = self._cluster.run("decide", self._prefix, id_of(node), *decision)
        if not similar:
            return KnownBefore()
        places = {ranges.of_content(key) for key in contents}
        repeated = self._apply([("apply", self._keys.prefix(each), (id_of(node), number, -1)) for each in places])
        return _known_before(repeated, similar)

    # -- rows and links ---------------------------------------------------------------------------

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        """Return messages for the node's shards.

        The links of a message whose commit is not applied yet come with the next call. If they are missing then too,
        its sender is dead, or a server has lost them.
        """
        before = self._missing.get(node, set())
        messages, missing = self._received(node, read, max_bytes)
        if missing & before:
            self._settling.settle()
            messages, missing = self._received(node, read, max_bytes)
            for shard, its_id in missing & before:
                self._fail_message(shard, its_id.decode())
        self._missing = {node: missing}
        return messages

    def _fail_message(self, shard: int, its_id: str) -> NoReturn:
        raise GossamerError(
            f"ledger {self._name}: a server has lost the links of message {its_id} to shard {shard}; restore its data, "
            f"or give them up: HSET {self._prefix_of(shard)}inbox:{shard} {its_id} ''"
        )

    def _received(
        self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int
    ) -> tuple[dict[int, list[Message]], set[tuple[int, bytes]]]:
        """Return messages, and those after which nothing can be read."""
        has = [each for shard, ids in read.items() if ids for each in (shard, len(ids), ids[-1])]
        now_us, found = self._call("receive", node, max_bytes, *has)
        self._seen_us = max(self._seen_us, int(now_us))
        waiting: dict[int, list[bytes]] = {}
        for shard, message in zip(found[::2], found[1::2], strict=True):
            waiting.setdefault(int(shard), []).append(arguments.message_of(message).id)
        links = self._cluster.pipelined([
            ("HMGET", f"{self._prefix_of(shard)}inbox:{shard}", *ids) for shard, ids in waiting.items()
        ])  # fmt: skip
        messages: dict[int, list[Message]] = {}
        missing: set[tuple[int, bytes]] = set()
        for (shard, ids), texts in zip(waiting.items(), links, strict=True):
            for its_id, text in zip(ids, texts, strict=True):
                if text is None:
                    missing.add((shard, its_id))
                    break
                messages.setdefault(shard, []).append(Message(its_id, text))
        return messages, missing

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards that the node owns, when all commits to them are complete."""
        servers = self._run_ids()
        for some in self._batches(shards):
            self._require_owner(node, some)
            self._settle_once()
            yield from self._restore_some(some, tables)
        if self._run_ids() != servers:
            self._is_settled = False
            raise LeaseLostError(f"node {node.name}: a server was restarted while it read the rows of its shards")

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, whoever owns them. Commits of nodes that have died are completed first."""
        self._settle_once()
        yield from super().scan(shards, tables)

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        self._settle_once()
        waiting = {int(shard) for shard in self._calls.command("HKEYS", f"{self._prefix}inboxes")}
        for shard in sorted(waiting & set(shards)):
            found = self._calls.command("LRANGE", f"{self._prefix}inbox:{shard}", 0, -1)
            ids = [arguments.message_of(message).id for message in found]
            for start in range(0, len(ids), _MESSAGES_AT_ONCE):
                some = ids[start : start + _MESSAGES_AT_ONCE]
                texts = self._calls.command("HMGET", f"{self._prefix_of(shard)}inbox:{shard}", *some)
                for its_id, text in zip(some, texts, strict=True):
                    yield shard, self._fail_message(shard, its_id.decode()) if text is None else text

    def _settle_once(self) -> None:
        if not self._is_settled:
            self._settling.settle()
            self._is_settled = True


def _known_before(repeated: Sequence[bytes], similar: bytes) -> KnownBefore:
    return KnownBefore(
        dict(zip(repeated[::2], repeated[1::2], strict=True)),
        {page: Similar(other, lanes / LANES) for page, other, lanes in decode_similar(similar)},
    )
