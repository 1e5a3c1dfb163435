"""The shared ledger on Kafka and Cassandra: see the modules beside it for how each part works.

    layout    how rows and links are divided       record   the crawl's record
    leases    nodes, and the fence of each          owners   who owns which shard
    commits   how a commit is made                  claims   who may use how much of a budget
    topic     links on their way                    inbox    links that wait for a commit
    rows      rows of shards                        pages    contents and signatures

One instance makes the calls of an incarnation: it knows which links it has offered.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from threading import RLock

import msgspec
from msgspec import Struct, field

from gossamer.backends.kafka.claims import Claims
from gossamer.backends.kafka.commits import Commits, plan_of, similar_in
from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.ending import Ending
from gossamer.backends.kafka.inbox import Inbox, InboxMessage
from gossamer.backends.kafka.layout import Layout, check_layout
from gossamer.backends.kafka.leases import Copy, Lease
from gossamer.backends.kafka.owners import Owned, Owner, Owners
from gossamer.backends.kafka.record import Record
from gossamer.backends.kafka.topic import Reader, Topic
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.politeness.address_pool import SharedAddress, is_new
from gossamer.model.errors import LeaseLostError
from gossamer.model.records import UrlId
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import (
    Commit,
    KnownBefore,
    Member,
    Membership,
    Message,
    NodeId,
    NodeView,
    Ownership,
)

# Addresses that several nodes contact, on Cassandra: a row each, changed if nobody else did meanwhile.

_READ = "SELECT version, body FROM addresses WHERE crawl = ? AND address = ?"
_CREATE = "INSERT INTO addresses (crawl, address, version, body) VALUES (?, ?, 1, ?) IF NOT EXISTS USING TTL 86400"
_CHANGE = "UPDATE addresses USING TTL 86400 SET version = ?, body = ? WHERE crawl = ? AND address = ? IF version = ?"
_address = msgspec.msgpack.Decoder(SharedAddress).decode


class Addresses:
    """See the module."""

    def __init__(self, database: Keyspace, record: Record) -> None:
        self._database = database
        self._record = record
        self._first: int | None = None  # generation of the server when the crawl started; 0: it has others beside it
        self._crawl = database.name

    def reserve(
        self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk], now: float
    ) -> dict[str, AddressGrant]:
        """Return what a node gets; nothing at an address that others ask for at the same time: it asks again soon."""
        me = f"{node.name}/{node.incarnation}"
        may_be_old = is_new(rules, self._since_start_s(now))
        names = list(asks)
        found = self._database.read_many((_READ, (self._crawl, name)) for name in names)
        grants: dict[str, AddressGrant] = {}
        changes: list[tuple[str, tuple[object, ...]]] = []
        for name, rows in zip(names, found, strict=True):
            version, address = (rows[0][0], _address(rows[0][1])) if rows else (0, SharedAddress())
            grants[name] = address.grant(me, rules, asks[name], now, is_new=may_be_old)
            body = _encode(address)
            if version:
                changes.append((_CHANGE, (version + 1, body, self._crawl, name, version)))
            else:
                changes.append((_CREATE, (self._crawl, name, body)))
        made = self._database.read_many(changes)
        return {
            name: grants[name] if rows[0][0] else AddressGrant(min(grants[name].permits, asks[name].in_use), 0.0)
            for name, rows in zip(names, made, strict=True)
        }

    def _since_start_s(self, now: float) -> float:
        """Return how long ago the server was restarted. One of several loses nothing: the others have copies."""
        if self._first is None:
            self._first = 0 if self._database.replication() > 1 else self._record.first_generation()
        generation = self._record.generation() if self._first else 0
        return math.inf if generation == self._first else now - generation


BUFFER_BYTES = 8 << 20  # of links that wait for a commit, before more are read
POSITIONS_EVERY = 256  # messages: then positions of shards without links are stored too
_READ_POSITIONS = "SELECT shard, position FROM positions WHERE crawl = ?"
_encode = msgspec.msgpack.Encoder().encode


class _Seat(Struct):
    """What this process knows of a node."""

    inbox: Inbox
    reader: Reader
    owned: dict[int, int]  # shard -> epoch
    lock: RLock = field(default_factory=RLock)
    done: dict[int, int] = field(default_factory=dict)  # partition -> offset up to which nothing waits, a moment ago
    untouched: set[int] = field(default_factory=set)  # shards that nobody owned before: they have no rows
    stored: dict[int, int] = field(default_factory=dict)  # partition -> offset up to which positions are stored


class KafkaSharedLedger:
    """See `gossamer.ports.shared_ledger` for the contract. Thread-safe."""

    def __init__(self, database: Keyspace, topic: Topic) -> None:
        self._database = database
        self._topic = topic
        self._name = database.name
        self._record = Record(database)
        self._commits = Commits(database, self._record)
        self._leases = self._commits.leases
        self._owners = Owners(database)
        self._claims = Claims(database, self._leases)
        self._addresses = Addresses(database, self._record)
        self._ending = Ending(self._record, self._leases, self._owners, topic)
        self._seats: dict[NodeId, _Seat] = {}
        self._copies: dict[str, tuple[NodeId, Copy]] = {}  # senders of messages

    @property
    def _layout(self) -> Layout:
        return self._commits.layout

    # -- the record -------------------------------------------------------------------------------

    def start(self, record: CrawlRecord) -> CrawlRecord:
        self._topic.check_rights()
        found = self._record.read()
        if found is None:
            layout = Layout(self._topic.partition_count(), self._record.planned_buckets())
            check_layout(layout, self._topic.name)
            self._owners.create(layout)
            self._record.create(record, layout)
            found = self._record.read()
            assert found is not None
        return found.record

    def record(self) -> CrawlRecord | None:
        found = self._record.read()
        return None if found is None else found.record

    def record_version(self) -> int:
        return self._record.version()

    def change_record(self, record: CrawlRecord) -> bool:
        return self._record.change(record)

    # -- leases -----------------------------------------------------------------------------------

    def join(self, node: NodeId, label: str, lease_s: float) -> Membership:
        self._topic.check_rights()
        self._leases.join(node, label, lease_s)
        return self._membership(node)

    def renew(self, node: NodeId, status: NodeStatus) -> Membership:
        # Without the lock: a commit that waits for Kafka must not cost the lease.
        self._leases.renew(node, status, self._seat(node).done)
        return self._membership(node)

    def _membership(self, node: NodeId) -> Membership:
        requests = [*self._leases.reading(node), self._record.reading()]
        moment, own, all_of, ((version, ended, budget),) = self._database.read_many(requests)
        now = self._leases.now_of(moment)
        lease = self._leases.live(node, own)
        copies = self._leases.copies_of(all_of)
        live = {each: copy for each, copy in copies.items() if copy.is_live(now)}
        return Membership(
            now=now,
            lease_s=lease.lease_s,
            members=tuple(sorted((Member(each.name, copy.label) for each, copy in live.items()), key=_by_name)),
            shards=self._owners.shards_of(node),
            commit=lease.commit,
            claimed=None if budget is None else lease.claimed,
            record_version=version,
            domains=sum(copy.domains for copy in copies.values()),
            first_end_s=min((copy.until for copy in live.values()), default=lease.until) - now,
            ended=ended or "",
            shards_per_range=self._layout.shards_per_range,
        )

    def leave(self, node: NodeId) -> None:
        self._leases.leave(node)
        seat = self._seats.pop(node, None)
        if seat is not None:
            seat.reader.close()

    def take(self, node: NodeId, shards: Collection[int]) -> dict[int, int]:
        self._leases.require(node)
        seat = self._seat(node)
        if not shards:
            return {}
        self._leases.note_busy(node)
        now_us = round(self._leases.now() * 1e6)
        wanted = sorted(shards)

        former: set[int] = set()  # shards that had an owner before

        def taken(known: Owned) -> dict[int, Owner]:
            former.update(known)
            margins = {owner: self._margin(owner) for owner in {each.node for each in known.values()}}
            free = [shard for shard in wanted if shard not in known or margins[known[shard].node] is not None]
            floors = [known[shard].epoch + (margins[known[shard].node] or 0) for shard in free if shard in known]
            first = max([now_us, *floors]) + 1
            return {shard: Owner(node.name, node.incarnation, first + number) for number, shard in enumerate(free)}

        changed = self._owners.change(shards, self._layout, taken)
        epochs = {shard: owner.epoch for shard, owner in changed.items()}
        with seat.lock:
            self._collect(seat, epochs)
            seat.untouched |= epochs.keys() - former
            seat.untouched -= former
        return epochs

    def _margin(self, node: NodeId) -> int | None:
        """Return by how much new epochs must exceed a node's, so that nothing it wrote is newer; None if it lives."""
        if not node.name:
            return 1  # what a node releases it has raised already
        if not self._leases.bury(node):
            return None
        lease = self._leases.read(node)
        return 1 + (lease.commit if lease is not None else 0)

    def _collect(self, seat: _Seat, epochs: Mapping[int, int]) -> None:
        """Read links for shards, where their last owners had read."""
        if epochs:
            positions: dict[int, int] = dict(self._database.read(_READ_POSITIONS, self._name))
            seat.owned |= epochs
            seat.inbox.add_shards({shard: positions.get(shard, 0) for shard in epochs})
            seat.done = seat.inbox.done_offsets()

    def _seat(self, node: NodeId) -> _Seat:
        seat = self._seats.get(node)
        if seat is None:
            seat = _Seat(Inbox(self._layout), Reader(self._topic), {})
            self._collect(seat, self._owners.shards_of(node))
            seat = self._seats.setdefault(node, seat)
        return seat

    def release(self, node: NodeId, shards: Collection[int]) -> None:
        lease = self._leases.require(node)
        seat = self._seat(node)
        with seat.lock:
            mine = [shard for shard in shards if shard in seat.owned]
            # Newer than the positions of the last commit, older than those of the next owner.
            positions = {
                shard: (position, seat.owned[shard] + lease.commit + 1)
                for shard, position in seat.inbox.positions_after({}).items()
                if shard in mine
            }
            self._commits.write_positions(positions)

            def freed(known: Owned) -> dict[int, Owner]:
                return {
                    shard: Owner("", "", owner.epoch + lease.commit + 2)
                    for shard, owner in known.items()
                    if owner.node == node
                }

            self._owners.change(shards, self._layout, freed)
            for shard in mine:
                del seat.owned[shard]
            seat.inbox.remove_shards(mine)
            seat.done = seat.inbox.done_offsets()

    # -- rows and links ---------------------------------------------------------------------------

    def commit(self, node: NodeId, commit: Commit) -> KnownBefore:
        seat = self._seat(node)
        with seat.lock:
            lease = self._leases.require(node)
            if commit.number <= lease.commit:
                return self._answer_again(node, seat, lease, commit)
            self._check_basis(node, seat, lease, commit)
            similar = self._commits.pages.add_signatures(commit.signatures, self._layout)
            at_us = round(self._leases.about_now() * 1e6)
            plan = plan_of(commit, self._positions(seat, commit), at_us)
            self._topic.send(f"{node.name}/{node.incarnation}/{commit.number}".encode(), commit.links, self._layout)
            if not self._commits.make(node, plan, similar):
                decided = self._leases.read(node)
                if decided is not None and decided.commit == commit.number and not decided.is_over:
                    return self._answer_again(node, seat, decided, commit)  # an earlier try had been successful
                raise LeaseLostError(f"ledger {self._name}: node {node.name}: its lease has ended")
            self._note_read(seat, commit)
            return KnownBefore(self._commits.apply(node, plan), similar)

    def _answer_again(self, node: NodeId, seat: _Seat, lease: Lease, commit: Commit) -> KnownBefore:
        """Return the answer to a commit that was made; it may not be applied."""
        if commit.number < lease.commit:
            return KnownBefore()
        self._commits.complete(node, lease)
        self._note_read(seat, commit)
        first = self._commits.pages.known_contents(commit.contents, self._layout)
        repeated = {each: page for each, page in first.items() if page != commit.contents[each]}
        return KnownBefore(repeated, similar_in(lease.answer))

    def _note_read(self, seat: _Seat, commit: Commit) -> None:
        read = {shard: ids for shard, ids in commit.read.items() if ids and seat.inbox.begins_with(shard, ids)}
        seat.inbox.remove(read)
        seat.untouched.difference_update(commit.rows)
        seat.done = seat.inbox.done_offsets()
        seat.reader.tell(seat.done)

    def _check_basis(self, node: NodeId, seat: _Seat, lease: Lease, commit: Commit) -> None:
        """Raise if a commit is based on what is no longer there."""
        where = f"ledger {self._name}: node {node.name}"
        if commit.number != lease.commit + 1:
            raise LeaseLostError(f"{where}: the engine has lost its commit {commit.number - 1}")
        if commit.totals.new_pages > lease.claimed:
            record = self.record()
            if record is not None and "pages" in record.budgets:
                raise LeaseLostError(f"{where}: the engine has lost its claim to {commit.totals.new_pages} pages")
        needed = {*commit.rows, *commit.read}
        owned = (
            self._owners.shards_of(node) if needed else {}
        )  # not what this process knows: the engine may have lost it
        for shard in needed:
            if owned.get(shard) != commit.epochs[shard]:
                raise LeaseLostError(f"{where}: shard {shard} is not its own any more")
        for shard, ids in commit.read.items():
            if not seat.inbox.begins_with(shard, ids):
                raise LeaseLostError(f"{where}: the engine has lost messages to shard {shard}")

    def _positions(self, seat: _Seat, commit: Commit) -> dict[int, tuple[int, int]]:
        """Return the positions to store with a commit: of shards with links, and now and then of all."""
        after = seat.inbox.positions_after(commit.read)
        behind = {
            number
            for number, offset in seat.inbox.next_offsets.items()
            if offset - seat.stored.get(number, 0) >= POSITIONS_EVERY
        }
        seat.stored |= {number: seat.inbox.next_offsets[number] for number in behind}
        return {
            shard: (after[shard], epoch + commit.number)
            for shard, epoch in seat.owned.items()
            if shard in commit.read or self._layout.range_of(shard) in behind
        }

    def receive(self, node: NodeId, read: Mapping[int, Sequence[bytes]], max_bytes: int) -> dict[int, list[Message]]:
        self._leases.require(node)
        seat = self._seat(node)
        with seat.lock:
            inbox = seat.inbox
            room = BUFFER_BYTES - inbox.waiting_bytes
            if room > 0:
                for message in seat.reader.read(dict(inbox.next_offsets), room):
                    inbox.add(*message)
            self._look_at_senders(message for _, message in inbox.messages())
            inbox.drop(self._is_void)
            seat.done = inbox.done_offsets()
            return inbox.offer(read, self._is_made, max_bytes)

    def _look_at_senders(self, messages: Iterator[InboxMessage]) -> None:
        """Find out which commits were made; end senders that have died, so that it is known."""
        known = self._copies  # a sender that is not among them may have joined since
        if all(each.sender in known and (self._is_made(each) or self._is_void(each)) for each in list(messages)):
            return
        self._read_copies()
        now = self._leases.about_now()
        if [node for node, copy in self._copies.values() if not copy.is_over and not copy.is_live(now)]:
            for node, copy in self._copies.values():
                if not copy.is_over and not copy.is_live(now):
                    self._leases.bury(node)
            self._read_copies()

    def _read_copies(self) -> None:
        self._copies = {f"{node.name}/{node.incarnation}": (node, copy) for node, copy in self._leases.copies().items()}

    def _is_made(self, message: InboxMessage) -> bool:
        known = self._copies.get(message.sender)
        return known is not None and message.number <= known[1].commit

    def _is_void(self, message: InboxMessage) -> bool:
        """Return whether a commit was never made: its node has ended, or is one of an earlier crawl of this name."""
        known = self._copies.get(message.sender)
        return bool(self._copies) and (known is None or (known[1].is_over and message.number > known[1].commit))

    def restore(self, node: NodeId, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        self._require_owner(node, shards)
        seat = self._seat(node)
        with_rows = [shard for shard in shards if shard not in seat.untouched]
        if with_rows:
            yield from self._commits.rows.read(with_rows, tables, self._layout)
            self._require_owner(node, shards)
        seat.untouched.difference_update(shards)

    def _require_owner(self, node: NodeId, shards: Collection[int]) -> None:
        self._leases.require(node)
        owned = self._seat(node).owned
        if not all(shard in owned for shard in shards):
            raise LeaseLostError(f"node {node.name}: shards that it reads are not its own any more")

    # -- the whole crawl --------------------------------------------------------------------------

    def claim(self, node: NodeId, budget: str, amount: int) -> int:
        record = self.record()
        assert record is not None
        return self._claims.claim(node, budget, record.budgets[budget], amount)

    def reserve(self, node: NodeId, rules: AddressRules, asks: Mapping[str, AddressAsk]) -> dict[str, AddressGrant]:
        self._leases.require(node)
        return self._addresses.reserve(node, rules, asks, self._leases.now())

    def try_end(self, node: NodeId) -> str:
        self._leases.require(node)
        return self._ending.try_end(self._layout)

    def nodes(self) -> dict[NodeId, NodeView]:
        return self._leases.views()

    def archive_ends(self, name: str) -> dict[str, int]:
        text = "SELECT file, length FROM archives WHERE crawl = ? AND node = ?"
        return dict(self._database.read(text, self._name, name))

    # -- for readers ------------------------------------------------------------------------------

    def look_up(self, ids: Sequence[UrlId]) -> list[bytes | None]:
        known = self._commits.rows.look_up(ids, self._layout)
        return [known.get(each) for each in ids]

    def scan(self, shards: Collection[int], tables: Sequence[str]) -> Iterator[list[Row]]:
        """Yield the rows of shards, whoever owns them."""
        yield from self._commits.rows.read(shards, tables, self._layout)

    def ownership(self, shard: int) -> Ownership | None:
        owner = self._owners.read().get(shard)
        if owner is None or not owner.name:
            return None
        lease = self._leases.read(owner.node)
        return Ownership(owner.node, owner.epoch, lease is not None and lease.is_live(self._leases.now()))

    # -- for `gossamer migrate` -------------------------------------------------------------------

    def pages(self, part: int) -> Iterator[list[Row]]:
        yield from self._commits.pages.rows(part, self._layout)

    def add_pages(self, rows: Sequence[Row]) -> None:
        self._commits.pages.load(rows, self._layout)

    def messages(self, shards: Collection[int]) -> Iterator[tuple[int, bytes]]:
        positions: dict[int, int] = dict(self._database.read(_READ_POSITIONS, self._name))
        self._read_copies()
        for number in sorted({self._layout.range_of(shard) for shard in shards}):
            inbox = Inbox(self._layout)
            reader = Reader(self._topic)
            some = [shard for shard in shards if self._layout.range_of(shard) == number]
            inbox.add_shards({shard: positions.get(shard, 0) for shard in some})
            for message in reader.read(dict(inbox.next_offsets), 1 << 62):
                inbox.add(*message)
            reader.close()
            waiting = [(shard, message) for shard, message in inbox.messages() if self._is_made(message)]
            yield from ((shard, message.links) for shard, message in sorted(waiting, key=_by_shard))

    def close(self) -> None:
        for seat in self._seats.values():
            seat.reader.close()
        self._topic.close()
        self._database.close()


def _by_name(member: Member) -> str:
    return member.name


def _by_shard(each: tuple[int, InboxMessage]) -> int:
    return each[0]
