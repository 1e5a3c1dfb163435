"""The first pass for breadth, between core and ledger: reserves are stored, a failed domain tries the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer.core.links.intake import Intake, LinkContext
from gossamer.core.links.requisite import queued_pages
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.holding import Holding
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.records import DomainRecord, HostRecord, Link, Source
from gossamer.model.state import HoldRule

if TYPE_CHECKING:
    from gossamer.core.links.first_pass import FirstPass
    from gossamer.ports import HostStore


class FirstPassProgress(ShardMemory):
    """The progress of the first pass. Does nothing in a crawl without one."""

    def __init__(
        self, intake: Intake, ledger: HostStore, admission: Admission, holding: Holding, *, continues: bool
    ) -> None:
        self._intake = intake
        self._ledger = ledger
        self._admission = admission
        self._holding = holding
        self._continues = continues  # after the target, with the normal policy
        intake.holds_first_pass = continues
        self.is_target_reached = False

    @property
    def _pass(self) -> FirstPass | None:
        return self._intake.first_pass

    @property
    def current(self) -> FirstPass | None:
        return self._pass

    @property
    def is_running(self) -> bool:
        """Whether links are refused because of the first pass."""
        return self._pass is not None

    @property
    def domains_left(self) -> int | None:
        """How many domains are to be reached before the crawl ends; None if it does not end by that."""
        return None if self._pass is None or self._continues else self._pass.domains_left

    def load(self, shard: int | None) -> None:
        """Restore what an earlier run reached and had in reserve."""
        if self._pass is None:
            return
        for domain in self._ledger.domains(shard):
            if domain.pages:
                self._pass.reach(domain.name)
            self._pass.restore(domain.name, domain.reserves)
        self._check_target()

    def load_host(self, host: HostRecord) -> None:
        if self._pass is not None and queued_pages(host):
            self._pass.queue(host.domain, queued_pages(host))

    def save(self) -> None:
        """Add changed reserves to the ledger's pending changes."""
        if self._pass is None:
            return
        for name, reserves in self._pass.take_changed().items():
            record = self._ledger.domain(name) or DomainRecord(name)
            record.reserves = reserves
            self._ledger.put_domain(record)

    def reach(self, domain: str) -> None:
        if self._pass is not None:
            self._pass.reach(domain)
            self._check_target()

    @property
    def reached_by_all(self) -> int | None:
        """How many domains the nodes of a cluster have reached, as far as is known; None if the pass is over."""
        return None if self._pass is None else self._pass.reached_by_all

    def learn(self, reached_by_all: int) -> None:
        """Record how many domains the nodes of a cluster have reached together."""
        if self._pass is not None:
            self._pass.reached_by_all = reached_by_all
            self.is_target_reached = False  # an engine that goes back in time has fewer than before
            self._check_target()

    def _check_target(self) -> None:
        if self._pass is not None and self._pass.is_over:
            if self._continues:
                self.save()
                self._intake.first_pass = None
                self._holding.release_first_pass()
            else:
                self.is_target_reached = True

    def hold(self, links: Sequence[Link], context: LinkContext, now: float) -> None:
        """Hold links back until the pass is over; if the crawl does not continue then, they are not needed."""
        if self._continues:
            self._admission.hold(links, context, HoldRule.FIRST_PASS, now)

    def fail(self, host: str, now: float) -> None:
        """Record that a queued URL brought no page; queue a reserve of its domain if nothing else is queued there."""
        first_pass = self._pass
        if first_pass is None:
            return
        reserve = first_pass.fail(registrable_domain(host))
        while reserve is not None:
            context = LinkContext(depth=reserve.depth, source=Source.REDIRECT, seed=reserve.seed)
            if self._admission.offer([link_to(reserve.url)], context, now).new:
                return
            reserve = first_pass.fail(registrable_domain(host))
