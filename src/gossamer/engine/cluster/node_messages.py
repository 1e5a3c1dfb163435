"""What other nodes send and get: links, robots.txt files at another node's hosts, and which pages are copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.workbench import RobotsRequest
from gossamer.core.url.forms import host_of
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.cluster.link_messages import NodeMessage, RobotsAnswer, link_of
from gossamer.engine.results.results import Results
from gossamer.engine.results.robots_results import result_of
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.model.records import FetchKind, Source
from gossamer.model.state import DomainRank

if TYPE_CHECKING:
    from gossamer.ports import HostStore

_OF_SEEDS = (Source.SEED, Source.REDIRECT)


class NodeMessages:
    def __init__(
        self,
        frontier: Frontier,
        ledger: HostStore,
        *,
        hosts: HostDirectory,
        admission: Admission,
        scope: ScopeRecord,
        results: Results,
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._hosts = hosts
        self._admission = admission
        self._scope = scope
        self._robots = results.robots
        self.copies = results.copies
        self._requisites = results.requisites

    def receive(self, message: NodeMessage, now: float) -> None:
        """Offer the links of a message, and exchange robots.txt files."""
        if self._admission.rehoming is not None:
            self._admission.rehoming.store_homes(message)
        if message.ranks:  # before the links, whose hosts may be new
            self._learn_ranks(message.ranks, now)
        for link in message.links:
            if link.depth == 0 and link.kind is FetchKind.PAGE and link.source in _OF_SEEDS:
                self._scope.join(link_of(link), link.seed)
        self._admission.receive(message.links, now)
        self._requisites.receive(message.requisites, now)
        for question in message.questions:
            if self._admission.owns_host(question.url):
                self._frontier.ask_robots(RobotsRequest(question.origin, question.url, question.hops), now)
            else:  # its domain has another home than the sender knew
                self._admission.message_to(question.url).questions.append(question)
        for answer in message.answers:
            if self._admission.owns_host(answer.origin + "/"):
                self._learn_robots(answer, now)
            else:
                self._admission.message_to(answer.origin + "/").answers.append(answer)

    def take_outbox(self) -> dict[int, NodeMessage]:
        """Remove and return what goes to shards that are not owned, with the next commit."""
        return self._admission.take_outbox()

    def _learn_ranks(self, ranks: Sequence[DomainRank], now: float) -> None:
        own: list[DomainRank] = []
        for rank in ranks:
            home = f"http://{rank.domain}/"
            if self._admission.owns_host(home):
                own.append(rank)
            else:  # as above
                self._admission.message_to(home).ranks.append(rank)
        self._hosts.learn_ranks(own, now)

    def _learn_robots(self, answer: RobotsAnswer, now: float) -> None:
        host = host_of(answer.origin + "/")
        if not self._frontier.has_host(host):
            self._hosts.bring_in(host, now)
        request = RobotsRequest(answer.origin, answer.url, answer.hops)
        effects = self._frontier.learn_robots(request, result_of(answer), now)
        if effects is not None:
            self._ledger.put_host(effects.hosts[0])
            self._robots.record_answer(answer, effects, now)
