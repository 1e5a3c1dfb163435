"""The shared ledger on one Redis 7 or Valkey: one script per call, one call per commit.

A server runs a script without interruption, so a commit is made wholly or not at all; what happens if the server loses
its last second is in `ports/shared_ledger`. On Redis Cluster a commit has steps: see `cluster_ledger`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import redis

from gossamer.backends.redis import arguments
from gossamer.backends.redis.calls import RecordChangedError, ServerCalls
from gossamer.backends.redis.scripted_ledger import ScriptedLedger
from gossamer.core.dedup.bands import BANDS, band_keys
from gossamer.core.dedup.minhash import LANES
from gossamer.model.records import Similar
from gossamer.model.state import NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore, Membership, Message, NodeId

_SHARDS_AT_ONCE = 64


class RedisSharedLedger(ScriptedLedger):
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._server = ServerCalls(client, name)
        super().__init__(self._server, f"gossamer:{name}:")
        self._run_id = ""  # of the server that was met last

    def _prefix_of(self, shard: int) -> str:
        del shard
        return self._prefix

    def _prefix_of_pages(self, part: int) -> str:
        del part
        return self._prefix

    def _batches(self, shards: Collection[int]) -> Iterator[list[int]]:
        waiting = iter(sorted(shards))
        while some := list(islice(waiting, _SHARDS_AT_ONCE)):
            yield some

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        membership = super().join(node, label, lease_s)
        self._mend_log()
        return membership

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        membership = super().renew(node, status)
        self._mend_log()
        return membership

    def _mend_log(self) -> None:
        (server,) = self._server.info("server")
        if server["run_id"] != self._run_id:
            self._run_id = server["run_id"]
            self._server.mend_log(self._run_id, self._prefix + "mended")

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        while True:
            with suppress(RecordChangedError):
                return self._commit(node, commit)

    def _commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        args = arguments.begin_commit(commit, self._record_to_extend(commit))
        arguments.append_hashes(args, arguments.row_changes(commit.rows, self._packing.pack))
        sent_as = arguments.message_id(arguments.id_of(node), commit.number)
        arguments.append(args, [(shard, arguments.message(sent_as, links)) for shard, links in commit.links.items()])
        arguments.append(args, arguments.content_places(commit.contents.items()))
        signed = commit.signatures.items()
        arguments.append(args, [(page, signature, BANDS, *band_keys(signature)) for page, signature in signed])
        arguments.append(args, arguments.archive_ends_of(commit))
        repeated, similar = self._call("commit", node, *args)
        return KnownBefore(
            dict(zip(repeated[::2], repeated[1::2], strict=True)),
            {page: Similar(other, lanes / LANES) for page, other, lanes in zip(*[iter(similar)] * 3, strict=True)},
        )

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        has = [each for shard, ids in read.items() if ids for each in (shard, len(ids), ids[-1])]
        received: list[bytes] = self._call("receive", node, max_bytes, *has)
        messages: dict[int, list[Message]] = {}
        for shard, message in zip(received[::2], received[1::2], strict=True):
            messages.setdefault(int(shard), []).append(arguments.message_of(message))
        return messages

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        for some in self._batches(shards):
            self._require_owner(node, some)
            yield from self._restore_some(some, tables)
