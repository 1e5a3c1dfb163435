"""Nodes of a crawl on Cassandra: their leases, and how the dead are buried.

The row of an incarnation in `leases` is its fence. It is changed under conditions only, and everything that is made in
a node's name depends on it: a commit is made by a change of this row. Who takes shards of a node whose lease has ended
sets `is_over` in it first; from then on no commit of that node can be made. Each has a partition of its own, so that
nodes do not wait for each other. `nodes` is a copy in one partition, for those who want to see all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from gossamer.backends.kafka.database import Fields, Keyspace
from gossamer.model.errors import LeaseLostError, NodeNameTakenError
from gossamer.model.figures import Totals
from gossamer.model.state import NodeStatus
from gossamer.ports.shared_ledger import NodeId, NodeView

_COLUMNS = (
    "lease_s, lease_until, is_over, commit_number, claimed, pages, domains, answer, journal, "
    "idle, idle_commit, idle_version, idle_domains, positions"
)
_READ = f"SELECT {_COLUMNS} FROM leases WHERE crawl = ? AND name = ? AND incarnation = ?"
_READ_COPIES = (
    "SELECT name, incarnation, label, lease_until, is_over, commit_number, domains, totals, status "
    "FROM nodes WHERE crawl = ?"
)
_NOW = "SELECT toUnixTimestamp(now()) FROM system.local"
_WHERE = "WHERE crawl = ? AND name = ? AND incarnation = ?"
_to_json = msgspec.json.Encoder().encode
_encode = msgspec.msgpack.Encoder().encode
_status = msgspec.json.Decoder(NodeStatus).decode
_totals = msgspec.json.Decoder(Totals).decode
_offsets = msgspec.msgpack.Decoder(dict[int, int]).decode


class Lease(Struct, frozen=True):
    """The row of an incarnation."""

    lease_s: float
    until: float
    is_over: bool
    commit: int
    claimed: int
    pages: int
    domains: int
    answer: bytes | None  # to the last commit: pages of it that are similar to others
    journal: int  # in how many chunks the last commit is
    idle: str
    idle_commit: int
    idle_version: int
    idle_domains: int | None
    positions: bytes | None

    def is_live(self, now: float) -> bool:
        """Return whether the lease runs."""
        return not self.is_over and self.until > now

    @property
    def done_offsets(self) -> dict[int, int]:
        """Up to where the node is done with the partitions of its shards."""
        return _offsets(self.positions) if self.positions else {}


class Copy(Struct, frozen=True):
    """What others see of an incarnation."""

    label: str
    until: float
    is_over: bool
    commit: int
    domains: int
    totals: str | None
    status: str | None

    def is_live(self, now: float) -> bool:
        """Return whether the lease seems to run."""
        return not self.is_over and self.until > now


class Leases:
    """See the module. `complete` applies the last commit of an incarnation everywhere."""

    def __init__(self, database: Keyspace, complete: Callable[[NodeId, Lease], None]) -> None:
        self._database = database
        self._name = database.name
        self._complete = complete
        self._buried: set[NodeId] = set()
        self._clock: tuple[float, float] | None = None  # the engine's time, ours

    def now(self) -> float:
        """Return the engine's time."""
        return self.now_of(self._database.read(_NOW))

    def now_of(self, found: list[Fields]) -> float:
        """Return the engine's time, as it was read just now."""
        now = float(found[0][0]) / 1000
        self._clock = now, time.monotonic()
        return now

    def about_now(self) -> float:
        """Return the engine's time by our clock. Only to refuse early: what counts is the fence."""
        if self._clock is None or time.monotonic() - self._clock[1] > 30.0:
            return self.now()
        return self._clock[0] + time.monotonic() - self._clock[1]

    # -- reading ----------------------------------------------------------------------------------

    def read(self, node: NodeId) -> Lease | None:
        """Return the row of an incarnation, with its last change."""
        return _lease(self._database.read_last(_READ, self._name, node.name, node.incarnation))

    def require(self, node: NodeId) -> Lease:
        """Return the row of a live incarnation. What depends on its last change finds that when it changes it."""
        return self.live(node, self._database.read(_READ, self._name, node.name, node.incarnation))

    def live(self, node: NodeId, found: list[Fields]) -> Lease:
        """Return the row of an incarnation that was read; raise if its lease has ended."""
        lease = _lease(found)
        if lease is None or not lease.is_live(self.about_now()):
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")
        return lease

    def reading(self, node: NodeId) -> tuple[tuple[str, Sequence[object]], ...]:
        """Return the requests for the engine's time, the row of an incarnation, and what is known of all."""
        return (_NOW, ()), (_READ, (self._name, node.name, node.incarnation)), (_READ_COPIES, (self._name,))

    def copies(self) -> dict[NodeId, Copy]:
        """Return what is known of all incarnations."""
        return self.copies_of(self._database.read(_READ_COPIES, self._name))

    def copies_of(self, found: list[Fields]) -> dict[NodeId, Copy]:
        """Return what is known of all incarnations, as it was read."""
        return {
            NodeId(name, incarnation): Copy(label or "", until or 0.0, bool(over), commit or 0, domains or 0, *texts)
            for name, incarnation, label, until, over, commit, domains, *texts in found
        }

    def views(self) -> dict[NodeId, NodeView]:
        """Return all incarnations, as readers see them."""
        now = self.now()
        return {
            node: NodeView(
                _status(copy.status) if copy.status else NodeStatus(),
                _totals(copy.totals) if copy.totals else Totals(),
                copy.is_live(now),
            )
            for node, copy in self.copies().items()
        }

    # -- a node's own -----------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> None:
        """Begin a lease, unless it runs: then the answer to the first call was lost."""
        own = self.read(node)
        now = self.now()
        if own is not None and own.is_live(now):
            return
        held = self._database.read_last(
            "SELECT incarnation FROM names WHERE crawl = ? AND name = ?", self._name, node.name
        )
        former = held[0][0] if held else None
        if former not in (None, node.incarnation) and not self.bury(NodeId(node.name, former)):
            raise NodeNameTakenError(f"ledger {self._name}: a live node has the name {node.name}")
        if not self._take_name(node, former):
            raise NodeNameTakenError(
                f"ledger {self._name}: another node with the name {node.name} joins at this moment"
            )
        # The copy first: who looks for live nodes finds them there.
        self._database.write(
            "INSERT INTO nodes (crawl, name, incarnation, label, is_over, commit_number, domains) "
            "VALUES (?, ?, ?, ?, false, 0, 0) USING TIMESTAMP 1",
            *(self._name, node.name, node.incarnation, label),
        )
        self._database.change(
            "INSERT INTO leases (crawl, name, incarnation, lease_s, lease_until, is_over, commit_number, claimed, "
            "pages, domains, journal, idle, idle_commit, idle_version) "
            "VALUES (?, ?, ?, ?, ?, false, 0, 0, 0, 0, 0, '', 0, 0) IF NOT EXISTS",
            *(self._name, node.name, node.incarnation, lease_s, now + lease_s),
        )
        self._tell(node, now + lease_s)

    def _take_name(self, node: NodeId, former: str | None) -> bool:
        if former == node.incarnation:
            return True
        if former is None:
            text = "INSERT INTO names (crawl, name, incarnation) VALUES (?, ?, ?) IF NOT EXISTS"
            return self._database.change(text, self._name, node.name, node.incarnation)
        text = "UPDATE names SET incarnation = ? WHERE crawl = ? AND name = ? IF incarnation = ?"
        return self._database.change(text, node.incarnation, self._name, node.name, former)

    def _tell(self, node: NodeId, until: float, status: NodeStatus | None = None) -> None:
        values = [until, self._name, node.name, node.incarnation]
        if status is None:
            self._database.write(f"UPDATE nodes SET lease_until = ? {_WHERE}", *values)
        else:
            text = f"UPDATE nodes SET status = ?, lease_until = ? {_WHERE}"
            self._database.write(text, _to_json(status).decode(), *values)

    def renew(self, node: NodeId, status: NodeStatus, done: dict[int, int]) -> None:
        """Prolong the lease, and report."""
        found, own = self._database.read_many(self.reading(node)[:2])
        now = self.now_of(found)
        lease = self.live(node, own)
        is_so = self._database.change(
            "UPDATE leases SET lease_until = ?, idle = ?, idle_commit = ?, idle_version = ?, idle_domains = ?, "
            f"positions = ? {_WHERE} IF is_over = false AND lease_until > ?",
            *(now + lease.lease_s, status.idle, status.commit, status.record_version, status.domains, _encode(done)),
            *(self._name, node.name, node.incarnation, now),
        )
        if not is_so:
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")
        self._tell(node, now + lease.lease_s, status)

    def note_busy(self, node: NodeId) -> None:
        """Record that a node has something to do, whatever it reported."""
        text = f"UPDATE leases SET idle = '' {_WHERE} IF is_over = false AND lease_until > ?"
        if not self._database.change(text, self._name, node.name, node.incarnation, self.about_now()):
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")

    def set_claim(self, node: NodeId, claimed: int) -> None:
        """Record how many pages a node may commit."""
        text = f"UPDATE leases SET claimed = ? {_WHERE} IF is_over = false AND pages <= ?"
        if not self._database.change(text, claimed, self._name, node.name, node.incarnation, claimed):
            raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")

    def decide(self, node: NodeId, number: int, totals: Totals, answer: bytes, chunks: int) -> bool:
        """Make a commit: the only step that counts. False if its lease has ended, or another commit was made."""
        return self._database.change(
            "UPDATE leases SET commit_number = ?, pages = ?, domains = ?, totals = ?, answer = ?, journal = ? "
            f"{_WHERE} IF is_over = false AND commit_number = ? AND lease_until > ?",
            *(number, totals.new_pages, totals.unique_domains, _to_json(totals).decode(), answer, chunks),
            *(self._name, node.name, node.incarnation, number - 1, self.about_now()),
        )

    def publish(self, node: NodeId, number: int, totals: Totals) -> None:
        """Record that a commit is applied everywhere."""
        stamp = number + 1
        self._database.write(
            f"UPDATE nodes USING TIMESTAMP ? SET commit_number = ?, domains = ?, totals = ? {_WHERE}",
            *(stamp, number, totals.unique_domains, _to_json(totals).decode()),
            *(self._name, node.name, node.incarnation),
        )

    # -- the end of an incarnation ----------------------------------------------------------------

    def leave(self, node: NodeId) -> None:
        """End a lease, if it runs."""
        if self.read(node) is not None:
            self._database.change(
                f"UPDATE leases SET is_over = true {_WHERE} IF is_over = false",
                *(self._name, node.name, node.incarnation),
            )
            self.bury(node)

    def bury(self, node: NodeId) -> bool:
        """End an incarnation whose lease has run out, and complete its last commit; False if it is alive."""
        if node in self._buried:
            return True
        while True:
            lease = self.read(node)
            if lease is None or lease.is_over:
                break
            if lease.is_live(self.now()):
                return False
            self._database.change(
                f"UPDATE leases SET is_over = true {_WHERE} IF is_over = false AND lease_until = ?",
                *(self._name, node.name, node.incarnation, lease.until),
            )
        if lease is not None:
            self._complete(node, lease)
        self._database.write(
            f"UPDATE nodes USING TIMESTAMP 2 SET is_over = true {_WHERE}",
            *(self._name, node.name, node.incarnation),
        )
        self._buried.add(node)
        return True


def _lease(found: list[Fields]) -> Lease | None:
    return Lease(*found[0]) if found and found[0][0] is not None else None
