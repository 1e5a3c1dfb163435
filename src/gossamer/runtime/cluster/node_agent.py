"""Keeps a node in its cluster: renews the lease, takes and releases shards, receives links, sends commits.

Beside the hub in one event loop. Calls of the shared ledger block, so they run in threads; what they return is
applied in the loop, where the engine may be changed. The decisions are in `engine/cluster/node`.

**The lease is a promise about requests.** It is counted on a clock that goes on while the machine sleeps, from before
the renewal was sent, and ends early. When it ends, the run fails with `LeaseLostError`: all connections are closed and
nothing is committed; the node joins again with a new incarnation. If the whole process stood still, requests may be
ready to be written before this module runs again: a task names the time until which it may be sent, and the worker
compares it with the clock right before it writes.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.cluster.regions import Regions
from gossamer.core.ledger.row_checks import row_problem
from gossamer.core.ledger.rows import SHARDED, queued_id
from gossamer.core.url.identity import shard_of
from gossamer.engine.cluster.node import ClusterNode, opened
from gossamer.engine.crawl import Crawl
from gossamer.model.commands import CommitSoon, Stop, Submit, Wake
from gossamer.model.errors import CorruptRowError, GossamerError, LeaseLostError, LedgerUnavailableError, damage_of
from gossamer.model.figures import Totals
from gossamer.model.records import FetchTask
from gossamer.model.state import ORIGIN_NODE, CrawlRecord, NodeStatus
from gossamer.ports import Ledger, SealedChanges
from gossamer.ports.shared_ledger import Commit, KnownBefore, Message
from gossamer.reading.cluster_catalog import SharedCatalog
from gossamer.reading.host_states import HostTally
from gossamer.runtime.cluster.seat import Seat
from gossamer.runtime.recovery.refused_messages import REFUSED, refusal, set_message_aside
from gossamer.runtime.session.clock import lease_clock
from gossamer.runtime.stores.outage import Outage
from gossamer.telemetry.text import waiting_for

RENEWALS_PER_LEASE = 10  # with each a node learns who has died
RECEIVE_EVERY_S = 0.3
RECORD_EVERY_S = 0.7  # commands of the operator are obeyed within two seconds
RECEIVE_BYTES = 1 << 20
MOVE_EVERY_S = 0.3
SHARDS_AT_ONCE = 64  # restored before the loop continues with other work
CLAIM_PAGES = 64
MAX_CLAIM_PAGES = 2000
REFUSED_CLAIM_S = 1.0  # until the budget is asked again, after it had less than was wanted
CLAIM_EVERY_S = 0.1
RESERVE_EVERY_S = 0.15
RETRY_S = 0.3
PAUSED_BY = "ledger"
JUST_AFTER_S = 0.02
WARN_EVERY_S = 30.0
WARN_OF_WAITING_EVERY_S = 300.0
COUNT_PAGES_EVERY_S = 5.0  # of all nodes


class CommittedCrawl(Struct, frozen=True):
    totals: Totals
    urls_queued: int
    urls_parked: int
    requisites_queued: int


class NodeAgent:
    """One incarnation of a node, while it runs."""

    def __init__(
        self,
        seat: Seat,
        crawl: Crawl,
        ledger: Ledger,
        *,
        max_wait_s: float,
        regions: Regions | None,
        now: Callable[[], float],
        on_failure: Callable[[GossamerError], None],
        warn: Callable[[str, str], None],
    ) -> None:
        self._seat = seat
        self._crawl = crawl
        self._ledger = ledger
        self._max_wait_s = max_wait_s
        self.now = now
        self._on_failure = on_failure
        self._warn = warn
        self.node = ClusterNode(seat.node, crawl, seat.label, regions)
        self.record: CrawlRecord = seat.record
        self.commits = NodeCommits(self, seat, ledger)
        self._submit: Submit | None = None
        self._warned_at = self._waiting_warned_at = float("-inf")
        self._share_record: Callable[[CrawlRecord], CrawlRecord] | None = None
        self._pages_at_claim = 0
        self._claims_at = 0.0
        self._all_pages: int | None = None
        self._counted_at = 0.0
        self._machine = socket.gethostname()

    @property
    def name(self) -> str:
        return self._seat.node.name

    @property
    def lease_until(self) -> float:
        """When the lease ends, on the lease clock."""
        return self.node.lease_until

    def send_until(self, task: FetchTask) -> float:
        """Return until when a task may be sent, on the lease clock."""
        left_s = self._crawl.frontier.addresses.send_until(task.addresses[0]) - self.now()
        return min(self.lease_until, lease_clock() + left_s)

    def begin(
        self,
        submit: Submit,
        share_record: Callable[[CrawlRecord], CrawlRecord],
        add_load: Callable[[NodeStatus], NodeStatus],
    ) -> None:
        """Begin without shards, in the engine.

        `share_record` applies what the crawl's record says to this run, and returns it with what this run adds to it.
        """
        self._submit = submit
        self._add_load = add_load
        self._share_record = share_record
        self._crawl.begin_as_node(self.now())
        self.node.learn_record(self.record)
        share_record(self.record)
        self.node.learn(self._seat.membership, self.node.ask(self._seat.asked_at))
        if "pages" in self.record.budgets:
            self.node.claim(0, self.now())

    async def run(self) -> None:
        """Keep the node in its cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_lease())
            group.create_task(self._every(self._seat.membership.lease_s / RENEWALS_PER_LEASE, self._renew))
            group.create_task(self._every(RECORD_EVERY_S, self._watch_record))
            group.create_task(self._every(RECEIVE_EVERY_S, self._receive))
            group.create_task(self._every(MOVE_EVERY_S, self._move_shards))
            group.create_task(self._every(CLAIM_EVERY_S, self._claim))
            group.create_task(self._every(RESERVE_EVERY_S, self._reserve))

    async def _watch_lease(self) -> None:
        while True:
            left_s = self.lease_until - lease_clock()
            if left_s <= 0:
                self._on_failure(LeaseLostError(f"node {self.name}: its lease ended before it was renewed"))
                return
            await asyncio.sleep(min(left_s, 0.2))

    async def _every(self, seconds: float, act: Callable[[], Awaitable[bool]]) -> None:
        """Call a function again and again: at once if it says that there is more to do."""
        while True:
            try:
                has_more = await act()
            except LedgerUnavailableError as error:
                has_more = False
                if self.now() - self._warned_at >= WARN_EVERY_S:
                    self._warned_at = self.now()
                    self._warn("ledger_unreachable", f"{error}; trying again until the lease ends")
            except GossamerError as error:
                self._on_failure(error)
                return
            except Exception as error:
                damage = damage_of(error)
                if damage is None:
                    raise
                self._on_failure(damage)
                return
            if not has_more:
                await asyncio.sleep(seconds)

    def _wake(self) -> None:
        assert self._submit is not None
        self._submit(Wake())

    # -- lease ------------------------------------------------------------------------------------

    async def _renew(self) -> bool:
        seat = self._seat
        node = self.node
        self.commits.apply()
        asked = node.ask(lease_clock())
        status = node.status(self.now(), self._max_wait_s, self.record.version)
        if status.waiting and self.now() - self._waiting_warned_at >= WARN_OF_WAITING_EVERY_S:
            self._waiting_warned_at = self.now()
            self.warn_of_waiting()
        status = self._add_load(replace(status, machine=self._machine, folder=seat.folder))
        membership = await asyncio.to_thread(seat.shared.renew, seat.node, status)
        node.learn(membership, asked)
        if membership.record_version != self.record.version:
            await self._read_record()
        await self._extend_record()
        ended = membership.ended
        if not ended and status.idle:
            ended = await asyncio.to_thread(seat.shared.try_end, seat.node)
        reason = ended or self._stop_reason()
        if reason:
            assert self._submit is not None
            self._submit(Stop(reason))
        elif membership.first_end_s < membership.lease_s / RENEWALS_PER_LEASE:
            await asyncio.sleep(membership.first_end_s + JUST_AFTER_S)  # a node seems to have died
            return True
        return False

    def warn_of_waiting(self) -> None:
        """Tell the operator what this node stores for others, and must not fetch itself."""
        for label, waiting in self.node.count_waiting(self.now()).items():
            self._warn("strict_regions", f"{waiting_for(label, waiting)}; join with --label {label} to fetch them")

    async def _watch_record(self) -> bool:
        """Act on what other nodes or the operator have changed."""
        version = await asyncio.to_thread(self._seat.shared.record_version)
        if version != self.record.version:
            await self._read_record()
            await self._extend_record()
        return False

    def _stop_reason(self) -> str:
        """Return why the operator wants this node to stop, if that was said after it joined."""
        joined = self._seat.record.version
        if self.record.stop_version > joined:
            return "stopped"
        return "left" if self.record.leaving.get(self.name, 0) > joined else ""

    async def _read_record(self) -> None:
        record = await asyncio.to_thread(self._seat.shared.record)
        if record is not None:
            self.record = record
            self.node.learn_record(record)

    async def _extend_record(self) -> None:
        """Tell the other nodes what this one adds to the record, besides what extends the scope."""
        assert self._share_record is not None
        record = self._share_record(self.record)
        if record != self.record:
            record = replace(record, version=record.version + 1)
            if await asyncio.to_thread(self._seat.shared.change_record, record):
                self.record = record  # else another node changed it first: it is read with the next renewal

    async def _claim(self) -> bool:
        """Claim pages of the crawl's budget: more at a time if the last lot was used up quickly."""
        pages = self._crawl.totals.pages
        lot = min(MAX_CLAIM_PAGES, max(CLAIM_PAGES, 2 * (pages - self._pages_at_claim)))
        wanted = self.node.wanted_claim(lot, self.now())
        if wanted is not None and self.now() >= self._claims_at:
            got = await asyncio.to_thread(self._seat.shared.claim, self._seat.node, "pages", wanted)
            self._pages_at_claim = pages
            self._claims_at = self.now() + (REFUSED_CLAIM_S if got < wanted else 0.0)
            self.node.claim(got, self.now())
            self._wake()
        return False

    async def _reserve(self) -> bool:
        """Ask for what this node needs at addresses that other nodes contact too."""
        addresses = self._crawl.frontier.addresses
        seat = self._seat
        asked_at = self.now()
        if asks := addresses.asks(asked_at):
            grants = await asyncio.to_thread(seat.shared.reserve, seat.node, addresses.rules, asks)
            addresses.grant(grants, asked_at, self.now())
            self._wake()
        return False

    # -- shards -----------------------------------------------------------------------------------

    async def _move_shards(self) -> bool:
        seat = self._seat
        node = self.node
        if node.end_drained(self.now()):
            assert self._submit is not None
            self._submit(CommitSoon())
        self.commits.apply()
        if leaving := node.ended_shards():
            node.record_move()
            await asyncio.to_thread(seat.shared.release, seat.node, leaving)
            node.forget_shards(leaving)
            await asyncio.to_thread(self._ledger.drop_rows, leaving)
        if wanted := node.to_take():
            node.record_move()
            node.grant(await asyncio.to_thread(seat.shared.take, seat.node, wanted))
        if node.granted:
            await self._read_record()  # the last owner may have extended it since
        while granted := node.granted:
            await self._restore(granted[:SHARDS_AT_ONCE])
        return False

    async def _restore(self, shards: list[int]) -> None:
        with_rows = await asyncio.to_thread(self._load, shards)
        self.node.begin_shards([shard for shard in shards if shard not in with_rows], (), self.now())
        for shard in sorted(with_rows):
            await asyncio.sleep(0)  # one may have a thousand hosts
            self.node.begin_shards([shard], [shard], self.now())
        self._wake()

    def _load(self, shards: list[int]) -> set[int]:
        """Copy the rows of shards; return which of them have any. In a thread."""
        with_rows: set[int] = set()
        self._ledger.drop_rows(shards)  # of an earlier try: the engine may have lost some of them since
        granted = frozenset(shards)
        known: set[bytes] = set()
        for rows in self._seat.shared.restore(self._seat.node, shards, SHARDED):
            for row in rows:
                if problem := row_problem(*row, granted):
                    raise CorruptRowError.of(row.table, row.key, problem)
                if row.table == "urls":
                    known.add(row.key)
                elif row.table == "queue" and queued_id(row.key) not in known:
                    raise CorruptRowError.of(row.table, row.key, "its URL is not in the catalog")
            self._ledger.load_rows(rows)
            with_rows |= {shard_of(row.key) for row in rows}
        return with_rows

    # -- links ------------------------------------------------------------------------------------

    async def _receive(self) -> bool:
        seat = self._seat
        node = self.node
        self.commits.apply()
        read = node.read_ids()
        inboxes = await asyncio.to_thread(seat.shared.receive, seat.node, read, RECEIVE_BYTES)
        if not inboxes:
            return False
        deliveries = await asyncio.to_thread(opened, inboxes)
        for shard, some in deliveries.items():
            for delivery, message in zip(some, inboxes[shard], strict=True):
                if delivery.problem:
                    await self._set_aside(shard, message, delivery.problem)
        if node.needs_record(deliveries):
            await self._read_record()
        if read != node.read_ids():
            return True  # a commit has moved the inboxes meanwhile
        node.receive(deliveries)
        while node.offer_slice(self.now()):  # noqa: ASYNC110 - each call does a part of the work
            await asyncio.sleep(0)
        self._wake()
        return sum(len(message.links) for messages in inboxes.values() for message in messages) >= RECEIVE_BYTES

    async def _set_aside(self, shard: int, message: Message, problem: str) -> None:
        """Store a message, of which a part or all is not received, before a commit removes it from its inbox."""
        place = await asyncio.to_thread(set_message_aside, CrawlFolder(Path(self._seat.folder)), message.links)
        if place:
            self._warn(REFUSED, refusal(shard, problem, place, message.id))

    async def count_pages(self) -> int | None:
        """Return the pages of all nodes, counted now and then; None if another node is to act on them."""
        if not self.node.owns_first:
            self._all_pages = None
        elif self._all_pages is None or self.now() >= self._counted_at + COUNT_PAGES_EVERY_S:
            self._counted_at = self.now()
            views = await asyncio.to_thread(self._seat.shared.nodes)
            self._all_pages = sum(view.totals.pages for view in views.values())
        return self._all_pages

    def outage(self) -> Outage:
        """Return what pauses fetching while the ledger accepts no commit."""
        assert self._submit is not None
        return Outage(PAUSED_BY, "ledger_unreachable", self._submit, self._warn, asyncio.get_running_loop())

    def archive_ends(self) -> dict[str, int]:
        """Return the committed lengths of the archive files in this node's folder."""
        shared = self._seat.shared
        name = self.name
        origin = self.record.origin
        has_origin = origin is not None and origin.node == name
        return {**(shared.archive_ends(ORIGIN_NODE) if has_origin else {}), **shared.archive_ends(name)}

    def leave(self, max_wait_s: float) -> CommittedCrawl | None:
        """End the lease: everything is committed. Return the figures of all nodes, if they can be read."""
        shared = self._seat.shared
        with suppress(LedgerUnavailableError):  # it ends by itself
            shared.leave(self._seat.node)
            totals = Totals()
            hosts = HostTally(self.now(), max_wait_s)
            for each in shared.nodes().values():
                totals.add(each.totals)
            for host in SharedCatalog(shared, self.record).hosts():
                hosts.add(host)
            return CommittedCrawl(totals, hosts.urls_queued, hosts.urls_parked, hosts.requisites_queued)
        return None


class NodeCommits:
    """The commits of a node: see `ports.CommitLog`. They are durable when the shared ledger has them."""

    def __init__(self, agent: NodeAgent, seat: Seat, ledger: Ledger) -> None:
        self._agent = agent
        self._seat = seat
        self._ledger = ledger
        self._written: tuple[Commit, KnownBefore] | None = None

    def apply(self) -> None:
        """Record the commit that was written last, if it is not recorded yet. In the event loop."""
        written = self._written
        self._written = None
        if written is not None:
            self._agent.node.committed(*written, self._agent.now())

    def seal(self) -> SealedChanges:
        """Close the changes so far. If nothing of them is for the cluster, they are only written here."""
        self.apply()
        sealed = self._ledger.seal()
        if not self._agent.node.has_news() and not sealed.by_shard():
            return sealed
        return SealedNode(self, sealed, self._agent.node.seal(sealed), self._agent.outage())

    def write(self, sealed: SealedChanges, commit: Commit, outage: Outage) -> None:
        """Send a commit until the shared ledger has it, or the lease ends; then write it here. In a thread.

        Meanwhile fetching is paused: what is not committed may be fetched again by others.
        """
        known = None
        while known is None:
            if lease_clock() >= self._agent.lease_until:
                raise LeaseLostError(f"node {self._seat.node.name}: its lease ended before a commit could be made")
            try:
                known = self._seat.shared.commit(self._seat.node, commit)
            except LedgerUnavailableError as error:
                outage.go_on(error)
                time.sleep(RETRY_S)
        outage.end()
        sealed.write()
        # Not before: shards that leave with this commit are dropped from the local store when it is recorded.
        self._written = commit, known


class SealedNode:
    """See `gossamer.ports.SealedChanges`."""

    def __init__(self, commits: NodeCommits, sealed: SealedChanges, commit: Commit, outage: Outage) -> None:
        self._outage = outage
        self._commits = commits
        self._sealed = sealed
        self._commit = commit
        self.by_shard = sealed.by_shard
        self.unsharded = sealed.unsharded

    def write(self) -> None:
        """Make the changes durable: at the shared ledger first."""
        self._commits.write(self._sealed, self._commit, self._outage)
