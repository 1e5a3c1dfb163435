"""The ledger that the nodes of a cluster share: who owns which shard, what is committed, links on their way.

A node reads its shards' rows from its own store; it never asks here before it decides. What it has decided leaves
with its commits, about one per second: the rows of its shards, the links to other shards, how far it has read its
inboxes, and its totals, all together or not at all. A shard's next owner reads the rows back from here.

**Leases.** A node is alive until its lease ends without having been renewed. Only then, or after a release, can
its shards be taken by others, and the first taker ends the node's *incarnation* for good: from then on every call
in its name raises `LeaseLostError`, however late it arrives. So one comparison fences all that an old owner sends.

**If the engine goes back in time** (a restart that lost the last second, a replica that was promoted), each commit
is checked against what it is based on: the number of the node's previous commit, the epochs of the shards it owns
(which never repeat), and the last message that it read from each inbox. A commit that is based on what is no longer
there raises `LeaseLostError` too: the node drops its copy, joins again, and continues from what the engine has.
Renewals may be lost, too, of a node that cannot reach the engine meanwhile: shards are taken from nobody until a lease
has passed since the engine is back.

All calls block; a node makes them in threads. Times are readings of the engine's clock. Every method may raise
`LedgerUnavailableError`: call again later. `SharedLedger` is all that an engine implements; a component asks for the
smallest part that it uses.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gossamer.core.cluster.record_additions import NOTHING, Additions
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.model.figures import Totals
from gossamer.model.records import Similar, UrlId
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports.commit import Row

PAGE_PARTS = 256  # in which contents and signatures are read


OBSERVER = "-"  # the label of a member that owns no shards: it only sends links


class NodeId(Struct, frozen=True):
    """A node, from one time it joins until its lease ends."""

    name: str
    incarnation: str  # never used twice


class Member(Struct, frozen=True):
    """A live node, as others see it."""

    name: str
    label: str = ""  # its labels, separated by commas


class Membership(Struct, frozen=True):
    """What a node learns when it joins or renews its lease."""

    now: float  # the engine's time
    lease_s: float
    members: tuple[Member, ...]  # live nodes, by name
    shards: Mapping[int, int]  # that this node owns: epoch by shard
    commit: int  # the number of its last commit
    claimed: int | None  # how many pages of the crawl's budget it may use up; None: there is no budget
    record_version: int
    domains: int = 0  # with a page, by the commits of all nodes
    first_end_s: float = math.inf  # until the first of all leases ends, if it is not renewed
    ended: str = ""  # why the crawl is over
    shards_per_range: int = 1  # shards that are best owned by one node: an engine may store them together


class NodeView(Struct, frozen=True):
    """One incarnation of a node, as readers see it."""

    status: NodeStatus  # its last report
    totals: Totals  # as committed
    is_live: bool


class Ownership(Struct, frozen=True):
    """Who owns a shard."""

    node: NodeId
    epoch: int
    is_live: bool  # if not, the shard waits for its next owner


class Message(Struct, frozen=True, array_like=True):
    """Links from one commit to one shard."""

    id: bytes  # unique: names the commit that sent it
    links: bytes  # see `engine/cluster/link_messages`


class Commit(Struct, frozen=True):
    """What a node has decided since its last commit."""

    number: int  # of this incarnation, from 1 without a gap
    totals: Totals  # of this incarnation, including this commit
    epochs: Mapping[int, int] = {}  # of the shards in `rows` and `read`
    rows: Mapping[int, Sequence[Row]] = {}  # by shard, each sorted by table and key
    links: Mapping[int, bytes] = {}  # by the shard that they are for
    read: Mapping[int, Sequence[bytes]] = {}  # ids of the messages read from each inbox, from its first on
    contents: Mapping[bytes, UrlId] = {}  # content hashes, and the first page with each that this node knows
    signatures: Mapping[UrlId, bytes] = {}  # of pages that repeat no other that this node knows
    archives: Sequence[Row] = ()  # committed lengths of this node's archive files
    added: Additions = NOTHING  # to the crawl's record, unless the crawl is over


class KnownBefore(Struct, frozen=True):
    """What a commit repeats: pages of it that other nodes stored before."""

    contents: Mapping[bytes, UrlId] = {}  # content hash, and the first page with it
    similar: Mapping[UrlId, Similar] = {}  # page of the commit, and the one that it nearly repeats


class CrawlRecordStore(Protocol):
    """The one record that all nodes and operators of a crawl share."""

    def start(self, record: CrawlRecord) -> CrawlRecord:
        """Store the record of a new crawl; if there is one, return that instead."""
        ...

    def record(self) -> CrawlRecord | None:
        """Return the crawl's record, or None if there is no crawl of this name."""
        ...

    def record_version(self) -> int:
        """Return the version of the crawl's record; 0 if there is none."""
        ...

    def change_record(self, record: CrawlRecord) -> bool:
        """Replace the record by one with the next version; False if it was changed since it was read.

        The record of a crawl that is over is replaced only by one that reopens it: its `ended` is empty.
        """
        ...


class NodeLedger(Protocol):
    """What a node, or whoever sends links in the name of one, does under its lease."""

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        """Begin a lease. Raises `NodeNameTakenError` if a live node has this name."""
        ...

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        """Prolong the lease, and report what the node is doing."""
        ...

    def leave(self, node: NodeId) -> None:
        """End the lease; what the node owned is free. No effect if the lease has ended."""
        ...

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        """Become the owner of those of the shards that no live node owns; return their new epochs.

        The node counts as busy until it reports that it has nothing to do, which it does when it knows their rows.
        """
        ...

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        """Give up shards. Their rows are committed."""
        ...

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        """Make a commit durable; return which of its pages repeat others.

        A commit that the engine already has is not made again: if the answer was lost, the call is repeated and
        returns the same. A signature that is like another is not stored, so those that are repeat no other. One with
        more pages than the node has claimed of a budget raises: the engine has lost the claim.
        """
        ...

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        """Return messages for the node's shards, after those that it has; `read` are their ids, by inbox.

        They stay in the inbox until a commit says that they were read. An inbox that does not begin with what the node
        has is left out: a commit that removes it is under way.
        """
        ...

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards that the node owns, in slices, table by table."""
        ...

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        """Claim this much of a budget in all, more or less than before; return how much the node has now.

        Never less than it has used up by its commits.
        """
        ...

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> Mapping[str, AddressGrant]:
        """Ask for permits and time at addresses that several nodes contact: see `core/politeness/address_permits`.

        Everything that the node holds or needs is asked for, several times per second. What it does not ask for any
        more is free after a lease at most. An engine that may have lost what it granted grants nothing new until
        that has ended.
        """
        ...

    def try_end(self, node: NodeId) -> str:
        """End the crawl if nothing is left to do anywhere; return why it is over, or an empty string."""
        ...


class LedgerReader(Protocol):
    """What is committed, whoever owns it: for readers."""

    def nodes(self) -> dict[NodeId, NodeView]:
        """Return all incarnations that ever committed or are alive."""
        ...

    def archive_ends(self, name: str) -> dict[str, int]:
        """Return the committed lengths of the archive files of a node, by all its incarnations."""
        ...

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        """Return the rows of URLs in the order of their ids; None for one that is unknown."""
        ...

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards in slices, in no particular order. Commits may be made meanwhile."""
        ...

    def ownership(self, shard: int) -> Ownership | None:
        """Return who owns a shard; None if nobody does."""
        ...


class MigrationLedger(Protocol):
    """What `gossamer migrate` reads and writes besides: of a crawl that no node works on."""

    def pages(self, part: int) -> Iterator[list[Row]]:
        """Yield contents (hash, and the id of the first URL with it) and signatures (by URL id), in slices.

        `part` is one of `PAGE_PARTS`.
        """
        ...

    def add_pages(self, rows: Sequence[Row]) -> None:
        """Store contents and signatures as `pages` yields them, unless there are some with their keys.

        Unlike those of a commit, signatures are stored even if they are like others.
        """
        ...

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        """Yield what waits in the inboxes of shards, each in order: shard and links."""
        ...


class SharedLedger(CrawlRecordStore, NodeLedger, LedgerReader, MigrationLedger, Protocol):
    """All of the above, by one engine."""

    def close(self) -> None:
        """Release connections. Leases stay."""
        ...
