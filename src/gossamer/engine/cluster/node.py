"""One node of a cluster: which shards it owns, what it has read and sent, and whether it has anything left to do.

Pure, like the rest of the engine: the driver (`runtime/cluster/node_agent` in real time, `sim/cluster/cluster` in
virtual time) calls the shared ledger and reports what came of it. The order of calls for a shard:

    wanted but not owned    take at the engine -> `grant` -> restore its rows -> `begin_shards`: it is crawled
    owned but not wanted    `end_drained` -> commit -> release at the engine -> `forget_shards`

A shard is in one of three states here: granted (its rows are being read), owned, leaving (its rows wait for a commit).
Links to shards that are not owned go to their inboxes with the commit; so do those to a shard that is only granted.

**Strict regions.** Shards of a label that no live node has are owned, too, so that links to them are queued and the end
of the crawl is not declared while they have any; but nothing of them is looked up or requested (`_barred`).

**Read positions.** Messages stay in an inbox until the commit that contains what followed from them. `_read_ids` lists,
per shard, the messages that were offered and are still in the inbox; `seal` hands them to the commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from gossamer.core.cluster.assignment import barred_from, share_of
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.cluster.regions import Regions, labels_in
from gossamer.core.dedup.minhash import SIGNATURE_BYTES
from gossamer.core.ledger.rows import decode_content
from gossamer.core.url.identity import shard_of
from gossamer.engine.cluster.link_messages import NodeMessage, encode_message, parts_of
from gossamer.engine.cluster.message_checks import checked
from gossamer.engine.crawl import Crawl
from gossamer.model.errors import LeaseLostError
from gossamer.model.state import CrawlRecord, NodeStatus, OperatorRequest, Waiting
from gossamer.ports import Row, SealedChanges
from gossamer.ports.shared_ledger import OBSERVER, Commit, KnownBefore, Member, Membership, Message, NodeId

LEASE_MARGIN = 0.9  # of a lease: it ends early here, so that no request leaves when another node may begin
PART_LINKS = 1_000  # 10 to 25 ms
REST_S = 5.0  # a node that can contact no host for so long returns what it claimed of the budget
COUNT_EVERY_S = 5.0  # what waits for a label: a pass over its hosts
_CONTENTS = "contents"
_ARCHIVES = "archives"
_SIGNATURES = "signatures"
_ID_BYTES = 16
_SIGNED_BYTES = _ID_BYTES + SIGNATURE_BYTES


class AskedState(NamedTuple):
    """What a node knew when it asked the engine: an answer is compared with that."""

    at: float  # on the driver's clock
    moves: int
    committed: int
    claims: int


class Delivery(NamedTuple):
    """What one commit sent to one shard, decoded."""

    id: bytes
    message: NodeMessage  # without what no node can have sent
    problem: str = ""  # what is wrong with the rest; empty if nothing is


class Received:
    """A message of which a part may have been offered."""

    __slots__ = ("epoch", "id", "is_begun", "part", "parts", "shard")

    def __init__(self, shard: int, epoch: int, message: bytes, parts: Iterator[NodeMessage]) -> None:
        self.shard = shard
        self.epoch = epoch
        self.id = message
        self.parts = parts
        self.part = next(parts, None)  # that is offered next
        self.is_begun = False


def opened(inboxes: Mapping[int, Sequence[Message]]) -> dict[int, list[Delivery]]:
    """Decode the messages of inboxes. May run in a thread."""
    return {
        shard: [Delivery(message.id, *checked(message.links)) for message in messages]
        for shard, messages in inboxes.items()
    }


class ClusterNode:
    """The state of one incarnation of a node."""

    def __init__(self, node: NodeId, crawl: Crawl, label: str = "", regions: Regions | None = None) -> None:
        self.id = node
        self._crawl = crawl
        self._label = label
        self._regions = regions
        self._barred = barred_from(labels_in(label), regions)
        self._waiting: dict[str, Waiting] = {}
        self._waiting_counted: tuple[float, tuple[int, ...]] = (float("-inf"), ())
        self._members: tuple[Member, ...] = ()
        self._wanted: frozenset[int] = frozenset()
        self._granted: dict[int, int] = {}  # shard -> epoch
        self._owned: dict[int, int] = {}
        self._draining: set[int] = set()  # owned, but only until their requests have ended
        self._requests: list[OperatorRequest] = []  # of the crawl's record
        self._returning: set[int] = set()  # released and taken again: that fulfils a request
        self._scope_added: list[str] = []  # URLs that extended the scope here since the last commit
        self._scope_seen = 0  # how much of the crawl's scope is from the record, or was added to it
        self._leaving: dict[int, int] = {}
        self._leaves_with: dict[int, int] = {}  # shard -> the commit with its last rows
        self._moves = 0  # how often the above changed at the engine: a membership from before is outdated
        self._read_ids: dict[int, list[bytes]] = {}  # offered, and not in a commit that the engine has
        self._read_robots = crawl.frontier.robots_cache.reader().read_on
        self.part_links = PART_LINKS  # offered before the event loop continues with other work
        crawl.finish_message = self.finish_message
        self._in_hand: deque[Received] = deque()  # read from inboxes, and not offered in full
        self._sealed_read: dict[int, int] = {}  # of these, how many are in the commit in progress
        self._claims = 0  # how often the claim to the budget changed
        self._commits = 0  # sealed
        self._committed = 0
        self._received = 0
        self._joined_at: float | None = None
        self._activity_at_seal: tuple[int, ...] = ()
        self.lease_until = 0.0  # on the driver's own clock

    # -- leases -----------------------------------------------------------------------------------

    def ask(self, at: float) -> AskedState:
        """Return what to pass to `learn` with the answer to `join` or `renew` that is about to be requested."""
        return AskedState(at, self._moves, self._committed, self._claims)

    def learn(self, membership: Membership, asked: AskedState) -> None:
        """Record an answer to `join` or `renew`.

        Raises if the engine has gone back in time and lost shards or commits of this node: one that has nothing to do
        would not notice otherwise, since it makes no commits.
        """
        if membership.commit < asked.committed:
            raise LeaseLostError(f"node {self.id.name}: the engine has lost commits of it")
        if asked.moves == self._moves:
            self._compare_shards(membership.shards)
        if asked.claims == self._claims:
            self._crawl.frontier.change_limits(asked.at, max_pages=membership.claimed)
        self._crawl.first_pass.learn(membership.domains)
        self.lease_until = asked.at + LEASE_MARGIN * membership.lease_s
        if self._joined_at is None:
            self._joined_at = asked.at
        # Until a lease has passed, the others may not know that there is one node more to share with.
        members = tuple(member for member in membership.members if member.label != OBSERVER)
        count = len(members)
        is_known = count == 1 or asked.at >= self._joined_at + membership.lease_s
        self._crawl.frontier.addresses.share_with(count if is_known else 0)
        if members != self._members:
            self._members = members
            labels = {member.name: labels_in(member.label) for member in members}
            self._wanted = share_of(self.id.name, labels, self._regions, membership.shards_per_range)

    def _compare_shards(self, at_engine: Mapping[int, int]) -> None:
        mine = self._granted | self._owned | self._leaving
        if mine == at_engine:
            return
        if any(at_engine.get(shard) != epoch for shard, epoch in mine.items()):
            raise LeaseLostError(f"node {self.id.name}: the engine has lost shards that it owns")
        # The answer to `take` was lost, or the engine has lost a release: read their rows, whatever was known of them.
        self._granted |= {shard: epoch for shard, epoch in at_engine.items() if shard not in mine}

    def to_take(self) -> list[int]:
        """Return the shards to take; another node may still own some of them."""
        return sorted(self._wanted - self._granted.keys() - self._owned.keys() - self._leaving.keys())

    def learn_record(self, record: CrawlRecord) -> None:
        """Apply the crawl's record, when it was read for the first time or has changed."""
        self._scope_added += self._crawl.state.scope[self._scope_seen :]
        self._crawl.scope.adopt(record.scope)
        self._scope_seen = len(self._crawl.state.scope)
        self._crawl.seeds.adopt(record.seeds)
        self._learn_requests(record.requests)

    def take_additions(self) -> Additions:
        """Return what the crawl's record gets with the commit that is sealed now."""
        scope = (*self._scope_added, *self._crawl.state.scope[self._scope_seen :])
        self._scope_added, self._scope_seen = [], len(self._crawl.state.scope)
        return Additions(scope, self._crawl.seeds.take_joined())

    def _learn_requests(self, requests: Sequence[OperatorRequest]) -> None:
        """Record what the operator requests of owners. A shard that is owned is released and taken again for it."""
        new = [request for request in requests if request not in self._requests]
        self._requests = list(requests)
        self._returning |= {shard for request in new for shard in request.shards} & self._owned.keys()

    def end_drained(self, now: float) -> bool:
        """Make no more tasks for shards that others are to own, and end those that have no task out.

        Return whether any was ended. The commit that follows has their last rows.
        """
        self.finish_message(now)
        frontier = self._crawl.frontier
        rehoming = self._crawl.shards.rehoming
        if rehoming is not None:
            self._returning |= rehoming.due(now) & self._owned.keys()
        unwanted = ((self._owned.keys() - self._wanted) | self._returning) - self._draining
        self._returning.clear()
        frontier.drain(unwanted)
        self._draining |= unwanted  # for good: a shard that is wanted again meanwhile is taken again
        ended = self._draining - frontier.busy_shards() if self._draining else set()
        self._draining -= ended
        if ended:
            self._crawl.release(ended, now)
        for shard in ended:
            self._leaving[shard] = self._owned.pop(shard)
            self._leaves_with[shard] = self._commits + 1
        return bool(ended)

    def record_move(self) -> None:
        """Record that a call that takes or releases shards is about to be made."""
        self._moves += 1

    def grant(self, epochs: Mapping[int, int]) -> None:
        """Record which shards were taken."""
        self._moves += 1
        self._granted.update(epochs)

    def begin_shards(self, shards: Collection[int], with_rows: Collection[int], now: float) -> None:
        """Crawl shards that were granted: their rows, if there are any, are in the node's ledger now."""
        for shard in shards:
            self._owned[shard] = self._granted.pop(shard)
        self._crawl.frontier.drain(self._barred.intersection(shards))
        for shard in with_rows:
            self._crawl.take(shard, now, self._requests)
        self._crawl.take_empty([shard for shard in shards if shard not in with_rows], now)

    def ended_shards(self) -> list[int]:
        """Return the shards to release at the engine: it has the commit with their last rows."""
        return sorted(shard for shard, commit in self._leaves_with.items() if commit <= self._committed)

    def forget_shards(self, shards: Collection[int]) -> None:
        """Record that shards were released at the engine."""
        self._moves += 1
        for shard in shards:
            del self._leaving[shard], self._leaves_with[shard]
            self._read_ids.pop(shard, None)

    @property
    def granted(self) -> list[int]:
        """Shards whose rows are to be restored."""
        return sorted(self._granted)

    @property
    def owns_first(self) -> bool:
        """Whether this node owns the first shard: then it does what one node does for all."""
        return 0 in self._owned

    # -- links ------------------------------------------------------------------------------------

    def read_ids(self) -> dict[int, tuple[bytes, ...]]:
        """Return the messages of each inbox that are offered and not removed from it yet."""
        return {shard: tuple(ids) for shard, ids in self._read_ids.items()}

    def needs_record(self, inboxes: Mapping[int, Sequence[Delivery]]) -> bool:
        """Return whether links descend from a seed that is not known: the crawl's record is to be read first."""
        messages = (delivery.message for deliveries in inboxes.values() for delivery in deliveries)
        return not self._crawl.seeds.knows(
            max((link.seed for message in messages for link in message.links), default=0)
        )

    def receive(self, inboxes: Mapping[int, Sequence[Delivery]]) -> None:
        """Accept what other nodes sent, for `offer_slice`. That of a shard that is not owned stays in its inbox."""
        for shard, deliveries in inboxes.items():
            for delivery in deliveries if shard in self._owned else ():
                parts = parts_of(delivery.message, self.part_links)
                self._in_hand.append(Received(shard, self._owned[shard], delivery.id, parts))

    def offer_slice(self, now: float) -> bool:
        """Offer some of what was received, so that it does not hold the event loop; return whether there is more."""
        offered = 0
        while self._in_hand and offered < self.part_links:
            message = self._in_hand[0]
            part = message.part
            if self._owned.get(message.shard) != message.epoch:  # its next owner gets it
                self._in_hand.popleft()
            elif part is not None and not all(self._read_robots(each.body) for each in part.answers if each.body):
                return True
            else:
                offered += self._offer_part(message, now)
        return bool(self._in_hand)

    def finish_message(self, now: float) -> None:
        """Offer the rest of a message of which a part was offered.

        A commit contains all that follows from a message and its removal from the inbox, or neither.
        """
        while self._in_hand and self._in_hand[0].is_begun:
            self._offer_part(self._in_hand[0], now)

    def _offer_part(self, message: Received, now: float) -> int:
        """Offer the next part of a message, the first one in hand; return how many links it had."""
        part = message.part
        if part is not None:
            message.is_begun = True
            self._crawl.receive(part, now)
            message.part = next(message.parts, None)
        if message.part is None:
            self._in_hand.popleft()
            self._read_ids.setdefault(message.shard, []).append(message.id)
            self._received += 1
        return len(part.links) + len(part.requisites) if part is not None else 0

    # -- commits ----------------------------------------------------------------------------------

    def _activity(self) -> tuple[int, ...]:
        """Return numbers of which one grows with everything that a commit must contain."""
        totals = self._crawl.totals
        return (
            totals.fetches,
            totals.urls_seen,
            totals.excluded,
            totals.robots_disallowed,
            totals.requisites_denied,
            totals.duplicates,
            self._received,
            self._moves,
        )

    def has_news(self) -> bool:
        """Return whether something happened since the last seal."""
        return self._activity() != self._activity_at_seal or self._commits + 1 in self._leaves_with.values()

    def seal(self, sealed: SealedChanges) -> Commit:
        """Return the next commit: the ledger's sealed changes, and the links that follow from them."""
        self._commits += 1
        self._activity_at_seal = self._activity()
        unsharded = sealed.unsharded()
        rows = sealed.by_shard()
        self._sealed_read = {shard: len(ids) for shard, ids in self._read_ids.items()}
        mine = self._owned | self._leaving
        return Commit(
            number=self._commits,
            totals=self._crawl.totals.copy(),
            epochs={shard: mine[shard] for shard in {*rows, *self._read_ids}},
            rows=rows,
            links={shard: encode_message(message) for shard, message in self._crawl.messages.take_outbox().items()},
            read=self.read_ids(),
            contents={row.key: decode_content(row.value or b"").url_id for row in unsharded if _is_new(row, _CONTENTS)},
            signatures={value[:_ID_BYTES]: value[_ID_BYTES:] for value in _values(unsharded, _SIGNATURES)},
            archives=[row for row in unsharded if _is_new(row, _ARCHIVES)],
            added=self.take_additions(),
        )

    def committed(self, commit: Commit, known: KnownBefore, now: float) -> None:
        """Record that the engine has a commit; pages that it knew before are copies of others."""
        self._committed = commit.number
        for shard, count in self._sealed_read.items():
            ids = self._read_ids.get(shard)
            if ids is not None:
                del ids[:count]
                if not ids:
                    del self._read_ids[shard]
        self._sealed_read = {}
        for content_hash, first in known.contents.items():
            page = commit.contents[content_hash]
            if first != page and shard_of(page) in self._owned:
                self._crawl.messages.copies.mark(page, first, now)
        for page, other in known.similar.items():
            if shard_of(page) in self._owned:
                self._crawl.messages.copies.mark_near(page, other, now)

    # -- the budget of pages ----------------------------------------------------------------------

    def wanted_claim(self, lot: int, now: float) -> int | None:
        """Return how much of the crawl's budget of pages to claim in all; None if the claim is right as it is.

        What is claimed and not needed soon is returned: all that is queued here may wait for a retry, while other nodes
        could use it up.
        """
        frontier = self._crawl.frontier
        claimed = frontier.limits.max_pages
        counts = frontier.counts
        if claimed is None:
            return None
        used = counts.pages + counts.pages_in_flight
        queued = counts.queued - counts.requisites - sum(waiting.urls for waiting in self._waiting.values())
        if queued <= 0 or frontier.is_at_rest(now, REST_S):
            return used if claimed > used else None
        return used + lot if queued > counts.pages_in_flight and used + lot // 2 >= claimed else None

    def claim(self, pages: int, now: float) -> None:
        """Record how much of the budget this node may use up."""
        self._claims += 1
        self._crawl.frontier.change_limits(now, max_pages=pages)

    # -- status -----------------------------------------------------------------------------------

    def count_waiting(self, now: float) -> dict[str, Waiting]:
        """Return what waits for a node with a label, by label; counted now and then, if something has changed."""
        counted_at, known = self._waiting_counted
        activity = (*self._activity(), self._crawl.frontier.counts.queued)
        if self._regions is None or not self._barred or now < counted_at + COUNT_EVERY_S or activity == known:
            return self._waiting
        self._waiting_counted = now, activity
        found: dict[str, Waiting] = {}
        for shard in sorted(self._barred & self._owned.keys()):
            if urls := self._crawl.shards.queued_in(shard):
                label = self._regions.label_of_shard(shard)
                before = found.get(label, Waiting())
                found[label] = Waiting(before.shards + 1, before.urls + urls)
        self._waiting = found
        return found

    def status(self, now: float, max_wait_s: float, record_version: int) -> NodeStatus:
        """Return what to report with a renewal."""
        view = self._crawl.frontier
        return NodeStatus(
            commit=self._committed,
            idle=self._idle(now, max_wait_s),
            record_version=record_version,
            domains=self._crawl.first_pass.reached_by_all,
            label=self._label,
            restoring=len(self._granted),
            in_flight=view.in_flight,
            queued=view.counts.queued - view.counts.requisites,
            waiting=self.count_waiting(now),
        )

    def _idle(self, now: float, max_wait_s: float) -> str:
        """Return why there is nothing to do and nothing to commit; empty if there is."""
        is_moving = (
            self._granted or self._leaving or self._returning or self._draining or self._wanted != self._owned.keys()
        )
        rehoming = self._crawl.shards.rehoming
        if rehoming is not None and rehoming.is_pending:
            return ""
        if is_moving or self._commits != self._committed or self.has_news():
            return ""
        why = self._crawl.why_over(now, max_wait_s) or ""
        if why != "max_pages":
            return why
        # What was claimed and is not needed has been returned, so that the claim looks used up.
        frontier = self._crawl.frontier
        if not frontier.counts.queued:
            return self._crawl.end_of_queue
        return frontier.why_waiting(now, max_wait_s) or why


def _values(changed: Sequence[Row], table: str) -> list[bytes]:
    """Return the new values of a table; of signatures only MinHash's, which are compared with those of other nodes."""
    return [row.value for row in changed if row.table == table and row.value and len(row.value) == _SIGNED_BYTES]


def _is_new(row: Row, table: str) -> bool:
    return row.table == table and row.value is not None
