"""A cluster in virtual time: real engines over a shared ledger in memory, and a scheduler that means harm.

Nodes die between any two steps, stand still beyond their lease, and start again under their name or never; answers of
the shared ledger are lost, it is away for seconds, for all or for one node, and it goes back in time. Everything
follows from one seed. After a while the faults end, and the crawl must come to its end: `cluster_judge` says what is
wrong then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.core.identity import host_id, shard_of
from gossamer.core.intake import LinkContext
from gossamer.core.rows import SHARDED, decode_url
from gossamer.core.url import link_to
from gossamer.engine.crawl import Crawl
from gossamer.engine.link_messages import Letter, encode_letter, message_of
from gossamer.engine.node import ClusterNode
from gossamer.errors import EngineUnavailableError, LeaseLostError, NodeNameTakenError
from gossamer.figures import Totals
from gossamer.ports import SealedChanges
from gossamer.ports.shared_ledger import Commit, KnownBefore, NodeId
from gossamer.records import ArchiveSpan, Order, OrderKind, Outcome, Result, Source, UrlId, UrlRecord
from gossamer.sim.cluster_plan import ClusterPlan, StoredPage
from gossamer.sim.driver import Request
from gossamer.sim.scenarios import START
from gossamer.state import CrawlRecord, Terms

T = TypeVar("T")
LEASE_S = 10.0
COMMIT_EVERY_S = 1.0
RECEIVE_EVERY_S = 0.7
RESERVE_EVERY_S = 0.15
CLAIM_LOT = 16
STEP_S = (0.001, 0.3)  # how long a call of the engine, or a sync, takes


class VirtualNode:
    """One process of a node, and those that follow under its name."""

    def __init__(self, name: str, sim: ClusterSim) -> None:
        self.name = name
        self._sim = sim
        self._incarnation = 0
        self.is_alive = False
        self.has_ended = False
        self.paused_until = 0.0
        self.cut_off_until = 0.0
        self.archive: list[StoredPage] = []

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a process: nothing is known but the archive on disk."""
        self._incarnation += 1
        self.is_alive = True
        self._id = NodeId(self.name, f"{self._incarnation}")
        self._ledger = MemoryLedger()
        scenario = self._sim.plan.scenario()
        scenario.ledger = self._ledger
        if self._sim.plan.max_pages is not None:
            scenario.limits.max_pages = 0
        self._crawl: Crawl = scenario.engine()
        self._node = ClusterNode(self._id, self._crawl)
        self._is_committing = False
        self._is_moving = False
        self._is_pumping_at = float("inf")
        self._out: dict[int, Order] = {}
        self._record_version = 0
        self._join()

    def die(self) -> None:
        """End the process at once."""
        self.is_alive = False

    def _later(self, delay_s: float, what: Callable[[], None]) -> None:
        """Do something later, if this process is still alive; if it stands still then, when it goes on."""
        incarnation = self._incarnation

        def act() -> None:
            if not self.is_alive or self._incarnation != incarnation or self.has_ended:
                return
            if self.paused_until > self._sim.now:
                self._sim.at(self.paused_until + self._sim.random.uniform(0.0, 0.01), act)
                return
            what()

        self._sim.at(self._sim.now + delay_s, act)

    def _lose(self) -> None:
        """The lease is lost: close all connections, drop the copy, join again."""
        self._sim.losses += 1
        self._incarnation += 1
        self.is_alive = False
        self._sim.at(self._sim.now + self._sim.step(), self.restart)

    def restart(self) -> None:
        """Start a process under the name, unless there is one."""
        if not self.is_alive and not self.has_ended:
            self.start()

    def _guarded(self, act: Callable[[], None], again_s: float) -> None:
        """Call the engine; if it cannot be reached try again, if the lease is lost begin anew."""
        try:
            act()
        except EngineUnavailableError:
            self._later(again_s, lambda: self._guarded(act, again_s))
        except LeaseLostError:
            self._lose()

    def _call(self, what: Callable[[MemorySharedLedger], T]) -> T:
        if self._sim.now < self.cut_off_until:
            raise EngineUnavailableError("cut off")
        return self._sim.call(what)

    def _join(self) -> None:
        asked = self._node.ask(self._sim.now)
        try:
            membership = self._call(lambda engine: engine.join(self._id, "", LEASE_S))
        except (EngineUnavailableError, NodeNameTakenError):
            self._later(1.0, self._join)
            return
        ends = self._sim.engine.archive_ends(self.name)
        del self.archive[ends.get(f"{self.name}.warc", 0) :]
        self._crawl.begin_as_node(self._sim.now)
        self._node.learn(membership, asked)
        self._later(0.0, self._renew)
        self._later(COMMIT_EVERY_S, self._commit)
        self._later(RECEIVE_EVERY_S, self._receive)
        self._later(RESERVE_EVERY_S, self._reserve)
        self._pump()

    # -- lease and shards -------------------------------------------------------------------------

    def _renew(self) -> None:
        self._later(LEASE_S / 5, self._renew)
        if self._is_lease_over():
            return
        sim, node = self._sim, self._node
        try:
            asked = node.ask(sim.now)
            status = node.status(sim.now, 300.0, sim.engine_version())
            membership = self._call(lambda engine: engine.renew(self._id, status))
            node.learn(membership, asked)
            if membership.ended or (status.idle and self._call(lambda engine: engine.try_end(self._id))):
                self.has_ended = True
                return
            self._claim()
        except EngineUnavailableError:
            return
        except LeaseLostError:
            self._lose()
            return
        self._move_shards()
        self._pump()

    def _claim(self) -> None:
        wanted = self._node.wanted_claim(CLAIM_LOT)
        if wanted is not None:
            got = self._call(lambda engine: engine.claim(self._id, "pages", wanted))
            self._node.claim(got, self._sim.now)

    def _reserve(self) -> None:
        addresses, asked_at = self._crawl.frontier.addresses, self._sim.now
        asks = addresses.asks()
        if not asks:
            self._later(RESERVE_EVERY_S, self._reserve)
            return
        try:
            grants = self._call(lambda engine: engine.reserve(self._id, addresses.rules, asks))
        except EngineUnavailableError:
            self._later(RESERVE_EVERY_S, self._reserve)
            return
        except LeaseLostError:
            self._lose()
            return

        def granted() -> None:
            addresses.grant(grants, asked_at, self._sim.now)
            self._later(RESERVE_EVERY_S, self._reserve)
            self._pump()

        self._later(self._sim.step(), granted)

    def _is_lease_over(self) -> bool:
        if self._sim.now < self._node.lease_until:
            return False
        self._lose()
        return True

    def _move_shards(self) -> None:
        node = self._node
        node.end_drained(self._sim.now)
        if not self._is_moving:
            self._is_moving = True
            self._later(self._sim.step(), lambda: self._guarded(self._exchange_shards, 0.5))

    def _exchange_shards(self) -> None:
        node = self._node
        if node.ended_shards():
            leaving = node.ended_shards()
            node.note_move()
            self._call(lambda engine: engine.release(self._id, leaving))
            node.forget_shards(leaving)
            self._ledger.drop_rows(leaving)
        if wanted := node.to_take():
            node.note_move()
            node.grant(self._call(lambda engine: engine.take(self._id, wanted)))
        if node.granted:
            self._later(self._sim.step(), lambda: self._guarded(self._restore, 0.5))
        else:
            self._is_moving = False

    def _restore(self) -> None:
        shards = self._node.granted
        with_rows: set[int] = set()
        self._ledger.drop_rows(frozenset(shards))  # of an earlier try
        for rows in self._call(lambda engine: list(engine.restore(self._id, shards, SHARDED))):
            self._ledger.load_rows(rows)
            with_rows |= {shard_of(row.key) for row in rows}
        if self._is_lease_over():
            return
        self._node.begin_shards(shards, with_rows, self._sim.now)
        self._is_moving = False
        self._pump()

    # -- commits and links ------------------------------------------------------------------------

    def _commit(self) -> None:
        self._later(COMMIT_EVERY_S, self._commit)
        if self._is_committing or not self._node.has_news():
            return
        self._is_committing = True
        self._crawl.save_state(0.0, 0.0, self._sim.now)
        sealed: SealedChanges = self._ledger.seal()
        commit = self._node.seal(sealed)
        self._later(self._sim.step(), lambda: self._guarded(lambda: self._send(commit), 0.3))

    def _send(self, commit: Commit) -> None:
        if self._is_lease_over():
            return
        known = self._call(lambda engine: engine.commit(self._id, commit))
        self._later(self._sim.step(), lambda: self._committed(commit, known))

    def _committed(self, commit: Commit, known: KnownBefore) -> None:
        self._is_committing = False
        self._node.committed(commit, known, self._sim.now)

    def _receive(self) -> None:
        self._later(RECEIVE_EVERY_S, self._receive)
        try:
            read = self._node.read_ids()
            inboxes = self._call(lambda engine: engine.receive(self._id, read, 1 << 20))
        except EngineUnavailableError:
            return
        except LeaseLostError:
            self._lose()
            return
        self._node.receive(inboxes, self._sim.now)
        self._pump()

    # -- requests ---------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Make the orders that are due."""
        sim = self._sim
        self._is_pumping_at = float("inf")
        if sim.now >= self._node.lease_until:
            return
        for order in self._crawl.orders(sim.now):
            self._out[order.id] = order
            answer = sim.web.answer(order, sim.now)
            until = self._crawl.frontier.addresses.send_until(order.addresses[0])
            timed = replace(order, send_until=until)
            self._later(answer.sent_after_s, lambda order=timed, answer=answer: self._send_request(order, answer))  # type: ignore[misc]
        for host in self._crawl.take_resolves():
            self._later(0.02, lambda host=host: self._resolved(host))  # type: ignore[misc]
        wakeup = self._crawl.next_wakeup()
        if wakeup is not None:
            self._pump_at(max(wakeup, sim.now + 0.001))

    def _pump_at(self, at: float) -> None:
        if at < self._is_pumping_at:
            self._is_pumping_at = at
            self._later(at - self._sim.now, self._pump)

    def _send_request(self, order: Order, answer: object) -> None:
        """Write a request, unless the lease has ended meanwhile."""
        sim = self._sim
        if order.id not in self._out:
            return
        if sim.now >= self._node.lease_until:
            del self._out[order.id]
            return
        if sim.now >= order.send_until:
            self._finish(order, Result(order.id, Outcome.WORKER_LOST))
            return
        result: Result = answer.result  # type: ignore[attr-defined]
        rest_s = answer.done_after_s - answer.sent_after_s  # type: ignore[attr-defined]
        result.sent_at, result.finished_at, result.requests_sent = sim.now, sim.now + rest_s, 1
        sim.record_request(self._id, Request(sim.now, order.host, order.url, sim.now + rest_s))
        if order.report_sent:
            self._crawl.mark_sent(order.id, sim.now, sim.now)
        self._later(rest_s, lambda: self._finish(order, result))

    def _finish(self, order: Order, result: Result) -> None:
        if self._out.pop(order.id, None) is None:
            return
        now = self._sim.now
        result.finished_at = now
        if result.outcome is Outcome.OK and order.kind is OrderKind.PAGE:
            self.archive.append(StoredPage(link_to(order.url).id, now))
            result.archived = ArchiveSpan(f"{self.name}.warc", len(self.archive) - 1, 1)
            result.archive_end = len(self.archive)
        self._crawl.complete(result, now)
        self._pump()

    def _resolved(self, host: str) -> None:
        addresses, outcome = self._sim.web.resolve(host)
        if addresses:
            self._crawl.learn_address(host, addresses, self._sim.now + 3600.0, self._sim.now)
        else:
            self._crawl.fail_address(host, outcome, "imagined", self._sim.now)
        self._pump()


class ClusterSim:
    """All nodes, the engine, and the scheduler."""

    def __init__(self, plan: ClusterPlan, seed: int) -> None:
        self.plan = plan
        self.random = random.Random(seed)
        self.now = START
        self.web = plan.scenario().web
        self.engine = MemorySharedLedger(lambda: self.now)
        self.requests: list[Request] = []
        self.strays: list[Request] = []
        self.losses = 0
        self.faults_made = 0
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._away_until = 0.0
        self._calm_at = START + plan.faults.until_s
        self.nodes = [VirtualNode(f"n{number}", self) for number in range(plan.nodes)]

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Do something at a time."""
        heappush(self._events, (when, next(self._numbers), what))

    def step(self) -> float:
        """Return how long one step takes."""
        return self.random.uniform(*STEP_S)

    def engine_version(self) -> int:
        """Return the version of the crawl's record."""
        record = self.engine.record()
        return record.version if record is not None else 0

    def call(self, what: Callable[[MemorySharedLedger], T]) -> T:
        """Call the engine: it may be away, and its answer may be lost after it did what was asked."""
        if self.now < self._away_until:
            raise EngineUnavailableError("away")
        answer = what(self.engine)
        if self.now < self._calm_at and self.random.random() < self.plan.faults.lost_answers:
            self.faults_made += 1
            raise EngineUnavailableError("the answer was lost")
        return answer

    # -- the run ----------------------------------------------------------------------------------

    def run(self) -> str:
        """Run to the end of the crawl; return why it ended, or "stuck"."""
        self._start_crawl()
        for node in self.nodes:
            self.at(self.now + self.random.uniform(0.0, 5.0), node.restart)
        self.at(self.now + 1.0, self._harm)
        while self._events and self.now < START + self.plan.max_s:
            when, _, what = heappop(self._events)
            self.now = max(self.now, when)
            what()
            if all(node.has_ended for node in self.nodes):
                break
        record = self.engine.record()
        return record.ended or "stuck" if record is not None else "stuck"

    def _start_crawl(self) -> None:
        budgets = {} if self.plan.max_pages is None else {"pages": self.plan.max_pages}
        self.engine.start(CrawlRecord(Terms(1, "2", ""), b"", budgets=budgets, started_at=self.now))
        sower = NodeId("sower", "1")
        self.engine.join(sower, "", LEASE_S)
        letters: dict[int, Letter] = {}
        for seed in self.plan.scenario().seeds:
            link = link_to(seed)
            letter = letters.setdefault(shard_of(link.id), Letter())
            letter.links.append(message_of(link, LinkContext(0, Source.SEED)))
        links = {shard: encode_letter(letter) for shard, letter in letters.items()}
        self.engine.commit(sower, Commit(1, Totals(), links=links))
        self.engine.leave(sower)

    def _harm(self) -> None:
        """Plan the faults of the next second."""
        faults = self.plan.faults
        if self.now >= self._calm_at:
            for node in self.nodes:
                self.at(self.now + self.random.uniform(0.0, 5.0), node.restart)
            return
        for node in self.nodes:
            if node.is_alive and self.random.random() < faults.deaths:
                self.at(self.now + self.random.random(), lambda node=node: self._kill(node))  # type: ignore[misc]
            elif self.random.random() < faults.pauses:
                node.paused_until = self.now + self.random.uniform(0.0, faults.max_pause_s)
                self.faults_made += 1
            if self.random.random() < faults.cuts:
                node.cut_off_until = self.now + self.random.uniform(0.0, faults.max_cut_s)
                self.faults_made += 1
        if self.random.random() < faults.outages:
            self._away_until = self.now + self.random.uniform(0.0, faults.max_outage_s)
            self.faults_made += 1
        if self.random.random() < faults.roll_backs:
            snapshot = self.engine.snapshot()
            self.at(self.now + self.random.uniform(0.0, faults.max_roll_back_s), lambda: self._roll_back(snapshot))
        self.at(self.now + 1.0, self._harm)

    def _kill(self, node: VirtualNode) -> None:
        node.die()
        self.faults_made += 1
        if self.random.random() < 0.8:
            self.at(self.now + self.random.uniform(0.5, 30.0), node.restart)

    def _roll_back(self, snapshot: object) -> None:
        self.engine.roll_back(snapshot)
        self.faults_made += 1

    # -- the judge --------------------------------------------------------------------------------

    def record_request(self, node: NodeId, request: Request) -> None:
        """Record a request; one by a node that is not the owner any more is a stray.

        Not if the engine goes back in time: then it forgets who owns what, and the owners learn that later.
        """
        self.requests.append(request)
        owner = self.engine.owner(shard_of(host_id(request.host)))
        if owner != node and not self.plan.faults.roll_backs:
            self.strays.append(request)

    def rows(self) -> Mapping[UrlId, UrlRecord]:
        """Return the rows of all URLs."""
        tables = self.engine.table("urls")
        return {key: decode_url(value) for key, value in tables.items()}

    def stored(self) -> list[StoredPage]:
        """Return the pages in all archives, up to what is committed."""
        pages: list[StoredPage] = []
        for node in self.nodes:
            pages += node.archive[: self.engine.archive_ends(node.name).get(f"{node.name}.warc", 0)]
        return pages
