"""The shared ledger in memory: the simplest implementation of the contract, for the simulator and for tests.

`snapshot` and `roll_back` make it lose what happened in between, as an engine does that is restarted from a file that
was written a second ago. Only epochs survive that: they contain the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy

from msgspec import Struct, field
from msgspec.structs import replace

from gossamer.core.cluster.ending import why_over
from gossamer.core.cluster.record_additions import extended
from gossamer.core.dedup.minhash import LANES
from gossamer.core.dedup.shared_pages import NearPages, bands_of
from gossamer.core.ledger.rows import SHARDED
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.politeness.address_pool import SharedAddress, is_new
from gossamer.core.url.identity import SHARD_COUNT, shard_of
from gossamer.model.errors import LeaseLostError, NodeNameTakenError
from gossamer.model.figures import Totals
from gossamer.model.records import Similar, UrlId
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore, Member, Membership, Message, NodeId, NodeView, Ownership

# Contents and signatures of the pages of all nodes, in memory.


class SharedPages(Struct):
    """The first page with each content, and the signatures of pages that repeat no other."""

    contents: dict[bytes, UrlId] = field(default_factory=dict)
    near: NearPages = field(default_factory=NearPages)

    def add(self, commit: Commit) -> KnownBefore:
        """Add the pages of a commit; return what was known before."""
        repeated = {each: self.contents[each] for each in commit.contents if each in self.contents}
        self.contents = {**commit.contents, **self.contents}
        similar: dict[UrlId, Similar] = {}
        for page, signature in commit.signatures.items():
            bands = bands_of(signature)
            found = self.near.nearest(page, signature, bands)
            if found is not None:
                similar[page] = Similar(found[1], found[2] / LANES)
            else:
                self.near.add(page, signature, bands)
        return KnownBefore(repeated, similar)

    def rows(self, part: int) -> list[Row]:
        """Return the contents and signatures of a part."""
        tables = (("contents", self.contents), ("signatures", self.near.signatures))
        return [Row(name, key, value) for name, found in tables for key, value in found.items() if key[-1] == part]

    def load(self, rows: Sequence[Row]) -> None:
        """Add contents and signatures as they are."""
        for table, key, value in rows:
            assert value is not None
            if table == "contents":
                self.contents.setdefault(key, value)
            else:
                self.near.add(key, value, bands_of(value))


_SLICE = 1000  # rows


class _Node(Struct):
    """One incarnation of a node."""

    label: str = ""
    lease_s: float = 0.0
    lease_until: float = 0.0
    is_over: bool = False
    commit: int = 0
    totals: Totals = field(default_factory=Totals)
    status: NodeStatus = field(default_factory=NodeStatus)
    claims: dict[str, int] = field(default_factory=dict)
    answer: KnownBefore = field(default_factory=KnownBefore)  # to the last commit


class _State(Struct):
    record: CrawlRecord | None = None
    nodes: dict[NodeId, _Node] = field(default_factory=dict)
    owners: dict[int, tuple[NodeId, int]] = field(default_factory=dict)  # shard -> node, epoch
    shards: dict[NodeId, dict[int, int]] = field(default_factory=dict)  # the same by node
    rows: dict[int, dict[str, dict[bytes, bytes]]] = field(default_factory=dict)  # shard -> table
    inboxes: dict[int, list[Message]] = field(default_factory=dict)
    pages: SharedPages = field(default_factory=SharedPages)
    archives: dict[str, dict[bytes, bytes]] = field(default_factory=dict)  # by node name
    addresses: dict[str, SharedAddress] = field(default_factory=dict)


class MemorySharedLedger:
    """See `gossamer.ports.shared_ledger` for the contract."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._state = _State()
        self._last_epoch = 0
        self._started_at = float("-inf")  # with what may be an old state

    def snapshot(self) -> object:
        """Return the state as it is now, for `roll_back`."""
        return deepcopy(self._state)

    def roll_back(self, snapshot: object) -> None:
        """Go back in time."""
        assert isinstance(snapshot, _State)
        self._state = deepcopy(snapshot)
        self._started_at = self._clock()

    # -- the record -------------------------------------------------------------------------------

    def start(self, record: CrawlRecord) -> CrawlRecord:
        if self._state.record is None:
            self._state.record = deepcopy(record)
        return deepcopy(self._state.record)

    def record(self) -> CrawlRecord | None:
        return deepcopy(self._state.record)

    def record_version(self) -> int:
        return 0 if self._state.record is None else self._state.record.version

    def change_record(self, record: CrawlRecord) -> bool:
        stored = self._state.record
        if stored is None or record.version != stored.version + 1 or (stored.ended and record.ended):
            return False
        self._state.record = deepcopy(record)
        return True

    # -- leases -----------------------------------------------------------------------------------

    def _is_live(self, node: NodeId) -> bool:
        known = self._state.nodes.get(node)
        return known is not None and not known.is_over and known.lease_until > self._clock()

    def _may_be_live(self, node: NodeId) -> bool:
        """Return whether a lease may not be over: going back in time, renewals were lost."""
        known = self._state.nodes[node]
        return self._is_live(node) or (not known.is_over and self._started_at + known.lease_s > self._clock())

    def _live(self, node: NodeId) -> _Node:
        if not self._is_live(node):
            raise LeaseLostError(f"node {node.name}: its lease has ended")
        return self._state.nodes[node]

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        for other in self._state.nodes:
            if other == node and self._is_live(node):
                return self._membership(node)  # the answer to the first call was lost
            if other.name == node.name and self._is_live(other):
                raise NodeNameTakenError(f"node {node.name}: the name is in use by a live node")
        until = self._clock() + lease_s
        self._state.nodes[node] = _Node(label, lease_s, until)
        return self._membership(node)

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        known = self._live(node)
        known.lease_until = self._clock() + known.lease_s
        known.status = status
        return self._membership(node)

    def _membership(self, node: NodeId) -> Membership:
        state = self._state
        live = [Member(each.name, known.label) for each, known in state.nodes.items() if self._is_live(each)]
        return Membership(
            now=self._clock(),
            lease_s=state.nodes[node].lease_s,
            members=tuple(sorted(live, key=lambda member: member.name)),
            shards=state.shards.get(node, {}).copy(),
            commit=state.nodes[node].commit,
            claimed=state.nodes[node].claims.get("pages", 0) if self._has_budget() else None,
            record_version=state.record.version if state.record else 0,
            first_end_s=min(known.lease_until for each, known in state.nodes.items() if self._is_live(each))
            - self._clock(),
            domains=sum(known.totals.unique_domains for known in state.nodes.values()),
            ended=state.record.ended if state.record else "",
        )

    def leave(self, node: NodeId) -> None:
        known = self._state.nodes.get(node)
        if known is not None:
            known.is_over = True

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        known = self._live(node)
        taken: dict[int, int] = {}
        for shard in shards:
            owner = self._state.owners.get(shard)
            if owner is not None and self._may_be_live(owner[0]):
                continue
            if owner is not None:
                self._state.nodes[owner[0]].is_over = True
                del self._state.shards[owner[0]][shard]
            taken[shard] = self._next_epoch()
            self._state.owners[shard] = node, taken[shard]
        self._state.shards.setdefault(node, {}).update(taken)
        if taken:
            known.status = replace(known.status, idle="")
        return taken

    def _next_epoch(self) -> int:
        self._last_epoch = max(self._last_epoch + 1, int(self._clock() * 1e6))
        return self._last_epoch

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        self._live(node)
        for shard in shards:
            if self.owner(shard) == node:
                del self._state.owners[shard], self._state.shards[node][shard]

    def owner(self, shard: int) -> NodeId | None:
        """Return who owns a shard; its lease may have ended."""
        owner = self._state.owners.get(shard)
        return None if owner is None else owner[0]

    # -- rows and links ---------------------------------------------------------------------------

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        known = self._live(node)
        if commit.number <= known.commit:
            return known.answer if commit.number == known.commit else KnownBefore()
        self._check_basis(node, known, commit)
        state = self._state
        for shard, changes in commit.rows.items():
            tables = state.rows.setdefault(shard, {table: {} for table in SHARDED})
            for row in changes:
                if row.value is None:
                    tables[row.table].pop(row.key, None)
                else:
                    tables[row.table][row.key] = row.value
        for shard, links in commit.links.items():
            message = Message(f"{node.name}/{node.incarnation}/{commit.number}".encode(), links)
            state.inboxes.setdefault(shard, []).append(message)
        for shard, ids in commit.read.items():
            del state.inboxes[shard][: len(ids)]
            if not state.inboxes[shard]:
                del state.inboxes[shard]
        if commit.added and state.record is not None and not state.record.ended:
            state.record = extended(state.record, commit.added)
        files = state.archives.setdefault(node.name, {})
        files.update({row.key: row.value for row in commit.archives if row.value is not None})
        known.commit = commit.number
        known.totals = commit.totals.copy()
        known.answer = state.pages.add(commit)
        return known.answer

    def _has_budget(self) -> bool:
        return self._state.record is not None and "pages" in self._state.record.budgets

    def _check_basis(self, node: NodeId, known: _Node, commit: Commit) -> None:
        """Raise if a commit is based on what is no longer there."""
        if commit.number != known.commit + 1:
            raise LeaseLostError(f"node {node.name}: the engine has lost its commit {commit.number - 1}")
        if self._has_budget() and commit.totals.new_pages > known.claims.get("pages", 0):
            raise LeaseLostError(f"node {node.name}: the engine has lost its claim to {commit.totals.new_pages} pages")
        for shard in {*commit.rows, *commit.read}:
            if self._state.owners.get(shard) != (node, commit.epochs[shard]):
                raise LeaseLostError(f"node {node.name}: shard {shard} is not its own any more")
        for shard, ids in commit.read.items():
            if [message.id for message in self._state.inboxes.get(shard, [])[: len(ids)]] != list(ids):
                raise LeaseLostError(f"node {node.name}: the engine has lost messages to shard {shard}")

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        self._live(node)
        received: dict[int, list[Message]] = {}
        size = 0
        for shard, inbox in self._state.inboxes.items():
            has = list(read.get(shard, ()))
            if self.owner(shard) != node or [message.id for message in inbox[: len(has)]] != has:
                continue
            for message in inbox[len(has) :]:
                if size >= max_bytes:
                    return received
                received.setdefault(shard, []).append(message)
                size += len(message.links)
        return received

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        for table in tables:
            self._live(node)
            yield from self.scan(shards, [table])

    # -- the whole crawl --------------------------------------------------------------------------

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        known = self._live(node)
        record = self._state.record
        assert record is not None
        free = record.budgets[budget] - self._spoken_for(budget) + known.claims.get(budget, 0)
        known.claims[budget] = max(min(amount, free), _used(known, budget))
        return known.claims[budget]

    def _spoken_for(self, budget: str) -> int:
        """Return how much of a budget is used up by commits or claimed by live nodes."""
        spoken_for = 0
        for node, known in self._state.nodes.items():
            claimed = known.claims.get(budget, 0) if self._is_live(node) else 0
            spoken_for += max(claimed, _used(known, budget))
        return spoken_for

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> dict[str, AddressGrant]:
        self._live(node)
        now = self._clock()
        may_be_old = is_new(rules, now - self._started_at)
        grants: dict[str, AddressGrant] = {}
        for name, ask in asks.items():
            address = self._state.addresses.setdefault(name, SharedAddress())
            grants[name] = address.grant(f"{node.name}/{node.incarnation}", rules, ask, now, is_new=may_be_old)
        return grants

    def try_end(self, node: NodeId) -> str:
        self._live(node)
        state = self._state
        record = self._state.record
        assert record is not None
        if record.ended:
            return record.ended
        live = [known for each, known in state.nodes.items() if self._is_live(each)]
        owned = sum(len(shards) for owner, shards in state.shards.items() if self._is_live(owner))
        domains = sum(known.totals.unique_domains for known in state.nodes.values())
        if state.inboxes or owned < SHARD_COUNT or not all(_is_idle(known, record.version, domains) for known in live):
            return ""
        pages = sum(known.totals.new_pages for known in state.nodes.values())
        why = why_over({known.status.idle for known in live}, pages, record.budgets.get("pages"))
        if not why:
            return ""
        state.record = replace(record, ended=why, version=record.version + 1)
        return why

    def nodes(self) -> dict[NodeId, NodeView]:
        known = self._state.nodes.items()
        return {node: NodeView(each.status, each.totals.copy(), self._is_live(node)) for node, each in known}

    def table(self, name: str) -> dict[bytes, bytes]:
        """Return all rows of a table, of all shards."""
        return {key: value for tables in self._state.rows.values() for key, value in tables[name].items()}

    def archive_ends(self, name: str) -> dict[str, int]:
        files = self._state.archives.get(name, {})
        return {file.decode(): int.from_bytes(end, "big") for file, end in files.items()}

    # -- for readers ------------------------------------------------------------------------------

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        return [self._state.rows.get(shard_of(each), {}).get("urls", {}).get(each) for each in ids]

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        for table in tables:
            for shard in self._state.rows.keys() & set(shards):
                stored = self._state.rows[shard][table]
                found = [Row(table, key, value) for key, value in sorted(stored.items())]
                for start in range(0, len(found), _SLICE):
                    yield found[start : start + _SLICE]

    def ownership(self, shard: int) -> Ownership | None:
        owner = self._state.owners.get(shard)
        return None if owner is None else Ownership(*owner, self._is_live(owner[0]))

    # -- for `gossamer migrate` -------------------------------------------------------------------

    def pages(self, part: int) -> Iterator[list[Row]]:
        yield self._state.pages.rows(part)

    def add_pages(self, rows: Sequence[Row]) -> None:
        self._state.pages.load(rows)

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        for shard in sorted(self._state.inboxes.keys() & set(shards)):
            yield from ((shard, message.links) for message in self._state.inboxes[shard])

    def close(self) -> None:
        """Do nothing."""


def _used(known: _Node, budget: str) -> int:
    return known.totals.new_pages if budget == "pages" else known.totals.unique_domains


def _is_idle(known: _Node, version: int, domains: int) -> bool:
    status = known.status
    is_current = status.commit == known.commit and status.record_version == version
    return bool(status.idle) and is_current and status.domains in (None, domains)
