"""One node of a simulated cluster: the real engine in virtual time, and the processes that follow under its name.

What `runtime/cluster/node_agent` does with threads and timers happens here in steps of the scheduler
(`sim/cluster/cluster`), each of which takes a while, may fail, and may find that the process has died, stands still,
or has lost its lease meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.core.ledger.rows import SHARDED
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import divide, shard_of, use
from gossamer.engine.cluster.node import ClusterNode, opened
from gossamer.engine.crawl import Crawl
from gossamer.model.errors import LeaseLostError, LedgerUnavailableError, NodeNameTakenError
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Outcome, Result
from gossamer.ports import SealedChanges
from gossamer.ports.shared_ledger import Commit, KnownBefore, NodeId
from gossamer.sim.cluster.plan import SimulatedPage
from gossamer.sim.driver import ImaginedRequest

if TYPE_CHECKING:
    from gossamer.sim.cluster.cluster import ClusterSim

T = TypeVar("T")
LEASE_S = 10.0
COMMIT_EVERY_S = 1.0
RECEIVE_EVERY_S = 0.7
RESERVE_EVERY_S = 0.15
CLAIM_PAGES = 16
PART_LINKS = 2  # so that most messages are offered in several parts


class VirtualNode:
    """One process of a node, and those that follow under its name."""

    def __init__(self, name: str, sim: ClusterSim, label: str = "") -> None:
        self.name = name
        self.label = label
        self._sim = sim
        self._incarnation = 0
        self.is_alive = False
        self.has_ended = False
        self.paused_until = 0.0
        self.cut_off_until = 0.0
        self.archive: list[SimulatedPage] = []

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a process: nothing is known but the archive on disk."""
        self._incarnation += 1
        self.is_alive = True
        self._id = NodeId(self.name, f"{self._incarnation}")
        rules = self._sim.plan.regions
        self._regions = None if rules is None else rules.without_homes()
        divide(self._regions)
        self._ledger = MemoryLedger()
        scenario = self._sim.plan.scenario()
        scenario.ledger = self._ledger
        if self._sim.plan.max_pages is not None:
            scenario.limits.max_pages = 0
        self._crawl: Crawl = scenario.engine()
        if self._regions is not None and self._regions.has_countries:
            self._crawl.shards.learn_countries(self._regions, self._sim.plan.country_of, self._crawl.state)
        self._node = ClusterNode(self._id, self._crawl, self.label, self._regions)
        self._node.part_links = PART_LINKS
        self._is_committing = self._is_offering = False
        self._is_moving = False
        self._is_pumping_at = float("inf")
        self._out: dict[int, FetchTask] = {}
        self._record_version = 0
        self._join()

    def die(self) -> None:
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
            use(self._ledger.identity)  # a real node is a process of its own
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
        """Call the shared ledger; if it cannot be reached try again, if the lease is lost begin anew."""
        try:
            act()
        except LedgerUnavailableError:
            self._later(again_s, lambda: self._guarded(act, again_s))
        except LeaseLostError:
            self._lose()

    def _call(self, what: Callable[[MemorySharedLedger], T]) -> T:
        if self._sim.now < self.cut_off_until:
            raise LedgerUnavailableError("cut off")
        return self._sim.call(what)

    def _join(self) -> None:
        asked = self._node.ask(self._sim.now)
        try:
            membership = self._call(lambda shared: shared.join(self._id, self.label, LEASE_S))
        except (LedgerUnavailableError, NodeNameTakenError):
            self._later(1.0, self._join)
            return
        ends = self._sim.shared.archive_ends(self.name)
        del self.archive[ends.get(f"{self.name}.warc", 0) :]
        self._crawl.begin_as_node(self._sim.now)
        self._learn_record(self._sim.shared)
        self._node.learn(membership, asked)
        self._later(0.0, self._renew)
        self._later(COMMIT_EVERY_S, self._commit)
        self._later(RECEIVE_EVERY_S, self._receive)
        self._later(RESERVE_EVERY_S, self._reserve)
        self._pump()

    def _learn_record(self, shared: MemorySharedLedger) -> None:
        record = shared.record()
        assert record is not None
        self._record_version = record.version
        self._node.learn_record(record)

    # -- lease and shards -------------------------------------------------------------------------

    def _renew(self) -> None:
        self._later(LEASE_S / 5, self._renew)
        if self._is_lease_over():
            return
        sim = self._sim
        node = self._node
        try:
            asked = node.ask(sim.now)
            status = node.status(sim.now, 300.0, self._record_version)
            membership = self._call(lambda shared: shared.renew(self._id, status))
            node.learn(membership, asked)
            if membership.record_version != self._record_version:
                self._call(self._learn_record)
            if membership.ended or (status.idle and self._call(lambda shared: shared.try_end(self._id))):
                self.has_ended = True
                return
            self._claim()
        except LedgerUnavailableError:
            return
        except LeaseLostError:
            self._lose()
            return
        self._move_shards()
        self._pump()

    def _claim(self) -> None:
        wanted = self._node.wanted_claim(CLAIM_PAGES, self._sim.now)
        if wanted is not None:
            got = self._call(lambda shared: shared.claim(self._id, "pages", wanted))
            self._node.claim(got, self._sim.now)

    def _reserve(self) -> None:
        addresses = self._crawl.frontier.addresses
        asked_at = self._sim.now
        asks = addresses.asks(asked_at)
        if not asks:
            self._later(RESERVE_EVERY_S, self._reserve)
            return
        try:
            grants = self._call(lambda shared: shared.reserve(self._id, addresses.rules, asks))
        except LedgerUnavailableError:
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
            node.record_move()
            self._call(lambda shared: shared.release(self._id, leaving))
            node.forget_shards(leaving)
            self._ledger.drop_rows(leaving)
        if wanted := node.to_take():
            node.record_move()
            node.grant(self._call(lambda shared: shared.take(self._id, wanted)))
        if node.granted:
            self._call(self._learn_record)
            self._later(self._sim.step(), lambda: self._guarded(self._restore, 0.5))
        else:
            self._is_moving = False

    def _restore(self) -> None:
        shards = self._node.granted
        with_rows: set[int] = set()
        self._ledger.drop_rows(frozenset(shards))  # of an earlier try
        for rows in self._call(lambda shared: list(shared.restore(self._id, shards, SHARDED))):
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
        self._crawl.finish_message(self._sim.now)
        self._crawl.save_state(0.0, 0.0, self._sim.now)
        sealed: SealedChanges = self._ledger.seal()
        commit = self._node.seal(sealed)
        self._later(self._sim.step(), lambda: self._guarded(lambda: self._send(commit), 0.3))

    def _send(self, commit: Commit) -> None:
        if self._is_lease_over():
            return
        known = self._call(lambda shared: shared.commit(self._id, commit))
        self._later(self._sim.step(), lambda: self._committed(commit, known))

    def _committed(self, commit: Commit, known: KnownBefore) -> None:
        self._is_committing = False
        self._node.committed(commit, known, self._sim.now)

    def _receive(self) -> None:
        self._later(RECEIVE_EVERY_S, self._receive)
        if self._is_offering:
            return
        try:
            read = self._node.read_ids()
            deliveries = opened(self._call(lambda shared: shared.receive(self._id, read, 1 << 20)))
            if self._node.needs_record(deliveries):
                self._call(self._learn_record)
        except LedgerUnavailableError:
            return
        except LeaseLostError:
            self._lose()
            return
        self._node.receive(deliveries)
        self._is_offering = True
        self._offer_slice()

    def _offer_slice(self) -> None:
        """Offer a part of what was received; commits and moves of shards may come between two of them."""
        self._is_offering = self._node.offer_slice(self._sim.now)
        if self._is_offering:
            self._later(self._sim.step(), self._offer_slice)
        self._pump()

    # -- requests ---------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Make the tasks that are due."""
        sim = self._sim
        if sim.now >= self._is_pumping_at:  # else one more is under way
            self._is_pumping_at = float("inf")
        if sim.now >= self._node.lease_until:
            return
        for task in self._crawl.tasks(sim.now):
            self._out[task.id] = task
            answer = sim.web.answer(task, sim.now)
            until = self._crawl.frontier.addresses.send_until(task.addresses[0])
            timed = replace(task, send_until=until)
            self._later(answer.sent_after_s, lambda task=timed, answer=answer: self._send_request(task, answer))  # type: ignore[misc]
        for host in self._crawl.take_resolves():
            self._later(0.02, lambda host=host: self._resolved(host))  # type: ignore[misc]
        wakeup = self._crawl.next_wakeup()
        if wakeup is not None:
            self._pump_at(max(wakeup, sim.now + 0.001))

    def _pump_at(self, at: float) -> None:
        if at < self._is_pumping_at:
            self._is_pumping_at = at
            self._later(at - self._sim.now, self._pump)

    def _send_request(self, task: FetchTask, answer: object) -> None:
        """Write a request, unless the lease has ended meanwhile."""
        sim = self._sim
        if task.id not in self._out:
            return
        if sim.now >= self._node.lease_until:
            del self._out[task.id]
            return
        if sim.now >= task.send_until:
            self._finish(task, Result(task.id, Outcome.WORKER_LOST))
            return
        result: Result = answer.result  # type: ignore[attr-defined]
        rest_s = answer.done_after_s - answer.sent_after_s  # type: ignore[attr-defined]
        result.sent_at = sim.now
        result.finished_at = sim.now + rest_s
        result.requests_sent = 1
        sim.record_request(self._id, ImaginedRequest(sim.now, task.host, task.url, sim.now + rest_s))
        if task.report_sent:
            self._crawl.mark_sent(task.id, sim.now, sim.now)
        self._later(rest_s, lambda: self._finish(task, result))

    def _finish(self, task: FetchTask, result: Result) -> None:
        if self._out.pop(task.id, None) is None:
            return
        now = self._sim.now
        result.finished_at = now
        if result.outcome is Outcome.OK and task.kind is FetchKind.PAGE:
            self.archive.append(SimulatedPage(link_to(task.url).id, now))
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
