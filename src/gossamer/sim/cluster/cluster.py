"""A cluster in virtual time: real engines over a shared ledger in memory, and a scheduler that means harm.

Nodes die between any two steps, stand still beyond their lease, and start again under their name or never; answers of
the shared ledger are lost, it is away for seconds, for all or for one node, and it goes back in time. Everything
follows from one seed. After a while the faults end, and the crawl must come to its end: `runs.judge` says what is wrong
then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.core.cluster.regions import labels_in
from gossamer.core.ledger.rows import decode_url
from gossamer.core.ledger.tables import HOMES
from gossamer.core.links.intake import LinkContext
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import divide, host_id, shard_of
from gossamer.engine.admission.seed_rules import numbered
from gossamer.engine.cluster.link_messages import NodeMessage, encode_message, message_of
from gossamer.model.errors import LedgerUnavailableError
from gossamer.model.figures import Totals
from gossamer.model.records import Source, UrlId, UrlRecord
from gossamer.model.state import CrawlRecord, Terms
from gossamer.ports.shared_ledger import Commit, NodeId
from gossamer.sim.cluster.node import LEASE_S, VirtualNode
from gossamer.sim.cluster.plan import ClusterPlan, SimulatedPage
from gossamer.sim.driver import ImaginedRequest
from gossamer.sim.scenarios import START

T = TypeVar("T")
STEP_S = (0.001, 0.3)  # how long a call of the shared ledger, or a sync, takes


class ClusterSim:
    def __init__(self, plan: ClusterPlan, seed: int) -> None:
        self.plan = plan
        self.random = random.Random(seed)
        self.now = START
        self.web = plan.scenario().web
        self.shared = MemorySharedLedger(lambda: self.now)
        self.requests: list[ImaginedRequest] = []
        self.strays: list[ImaginedRequest] = []
        self.losses = 0
        self.faults_made = 0
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._away_until = 0.0
        self._rolled_back_at = 0.0
        self._calm_at = START + plan.faults.until_s
        self.nodes = [VirtualNode(f"n{number}", self, plan.label_of(number)) for number in range(plan.nodes)]
        self.misplaced: list[ImaginedRequest] = []
        divide(plan.regions)

    def at(self, when: float, what: Callable[[], None]) -> None:
        heappush(self._events, (when, next(self._numbers), what))

    def step(self) -> float:
        return self.random.uniform(*STEP_S)

    def call(self, what: Callable[[MemorySharedLedger], T]) -> T:
        """Call the shared ledger: it may be away, and its answer may be lost after it did what was asked."""
        if self.now < self._away_until:
            raise LedgerUnavailableError("away")
        answer = what(self.shared)
        if self.now < self._calm_at and self.random.random() < self.plan.faults.lost_answers:
            self.faults_made += 1
            raise LedgerUnavailableError("the answer was lost")
        return answer

    # -- the run ----------------------------------------------------------------------------------

    def run(self) -> str:
        """Run to the end of the crawl; return why it ended, or "stuck"."""
        self._start_crawl()
        late_s = self.plan.last_node_at_s
        for node in self.nodes if late_s is None else self.nodes[:-1]:
            self.at(self.now + self.random.uniform(0.0, 5.0), node.restart)
        if late_s is not None:
            self.at(self.now + late_s, self.nodes[-1].restart)
        self.at(self.now + 1.0, self._harm)
        while self._events and self.now < START + self.plan.max_s:
            when, _, what = heappop(self._events)
            self.now = max(self.now, when)
            what()
            if all(node.has_ended for node in self.nodes):
                break
        self._learn_homes()
        record = self.shared.record()
        return record.ended or "stuck" if record is not None else "stuck"

    def _learn_homes(self) -> None:
        """Make ids as a reader of the crawl does."""
        if self.plan.regions is not None:
            regions = self.plan.regions.without_homes()
            regions.learn_homes(HOMES.decode(row) for row in self.shared.table("homes").values())
            divide(regions)

    def _start_crawl(self) -> None:
        scenario = self.plan.scenario()
        budgets = {} if self.plan.max_pages is None else {"pages": self.plan.max_pages}
        ruled = {seed.url: seed for seed in numbered([], scenario.seed_rules)}
        scope = [url for url in scenario.seeds if url not in ruled]
        terms = Terms(1, "2", "")
        record = CrawlRecord(terms, b"", budgets=budgets, started_at=self.now, scope=scope, seeds=list(ruled.values()))
        self.shared.start(record)
        sower = NodeId("sower", "1")
        self.shared.join(sower, "", LEASE_S)
        messages: dict[int, NodeMessage] = {}
        for seed in scenario.seeds:
            link = link_to(seed)
            number = ruled[seed].number if seed in ruled else 0
            message = messages.setdefault(shard_of(link.id), NodeMessage())
            message.links.append(message_of(link, LinkContext(0, Source.SEED, seed=number)))
        links = {shard: encode_message(message) for shard, message in messages.items()}
        self.shared.commit(sower, Commit(1, Totals(), links=links))
        self.shared.leave(sower)

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
            snapshot = self.shared.snapshot()
            taken_at = self.now
            after_s = self.random.uniform(0.0, faults.max_roll_back_s)
            self.at(self.now + after_s, lambda: self._roll_back(snapshot, taken_at))
        self.at(self.now + 1.0, self._harm)

    def _kill(self, node: VirtualNode) -> None:
        node.die()
        self.faults_made += 1
        if self.random.random() < 0.8:
            self.at(self.now + self.random.uniform(0.5, 30.0), node.restart)

    def _roll_back(self, snapshot: object, taken_at: float) -> None:
        """Go back in time, but not to what an earlier step back has undone: that would be a step forward."""
        if taken_at < self._rolled_back_at:
            return
        self._rolled_back_at = self.now
        self.shared.roll_back(snapshot)
        self.faults_made += 1

    # -- the judge --------------------------------------------------------------------------------

    def record_request(self, node: NodeId, request: ImaginedRequest) -> None:
        """Record a request; one by a node that is not the owner any more is a stray.

        Not if the shared ledger goes back in time: then it forgets who owns what, and the owners learn that later.
        """
        self.requests.append(request)
        owner = self.shared.owner(shard_of(host_id(request.host)))
        if owner != node and not self.plan.faults.roll_backs:
            self.strays.append(request)
        regions = self.plan.regions
        if regions is not None and regions.is_strict:
            country = self.plan.country_of(self.web.resolve(request.host)[0][0])
            label = regions.label_of(registrable_domain(request.host), country)
            labels = next(labels_in(each.label) for each in self.nodes if each.name == node.name)
            if label and label not in labels:
                self.misplaced.append(request)

    def rows(self) -> Mapping[UrlId, UrlRecord]:
        tables = self.shared.table("urls")
        return {key: decode_url(value) for key, value in tables.items()}

    def stored(self) -> list[SimulatedPage]:
        """Return the pages in all archives, up to what is committed."""
        pages: list[SimulatedPage] = []
        for node in self.nodes:
            pages += node.archive[: self.shared.archive_ends(node.name).get(f"{node.name}.warc", 0)]
        return pages
