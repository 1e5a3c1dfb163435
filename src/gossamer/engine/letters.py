"""What other nodes send and get: links, robots.txt files at another node's hosts, and which pages are copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer.core.frontier import Frontier
from gossamer.core.url import host_of
from gossamer.core.workbench import RobotsRequest
from gossamer.engine.admission import Admission
from gossamer.engine.copies import Copies
from gossamer.engine.host_directory import HostDirectory
from gossamer.engine.link_messages import Letter, RobotsAnswer, link_of
from gossamer.engine.requisites import RequisiteQueue
from gossamer.engine.robots_results import RobotsResults, result_of
from gossamer.engine.scope_record import ScopeRecord
from gossamer.records import OrderKind, Source
from gossamer.state import DomainRank

if TYPE_CHECKING:
    from gossamer.ports import HostStore

_OF_SEEDS = (Source.SEED, Source.REDIRECT)


class Letters:
    """Applies letters to the crawl."""

    def __init__(
        self,
        frontier: Frontier,
        ledger: HostStore,
        *,
        hosts: HostDirectory,
        admission: Admission,
        scope: ScopeRecord,
        robots: RobotsResults,
        copies: Copies,
        requisites: RequisiteQueue,
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._hosts = hosts
        self._admission = admission
        self._scope = scope
        self._robots = robots
        self.copies = copies
        self._requisites = requisites

    def receive(self, letter: Letter, now: float) -> None:
        """Offer the links of a letter, and exchange robots.txt files."""
        if self._admission.rehoming is not None:
            self._admission.rehoming.settle(letter)
        if letter.ranks:  # before the links, whose hosts may be new
            self._learn_ranks(letter.ranks, now)
        for message in letter.links:
            if message.depth == 0 and message.kind is OrderKind.PAGE and message.source in _OF_SEEDS:
                self._scope.join(link_of(message), message.seed)
        self._admission.receive(letter.links, now)
        self._requisites.receive(letter.requisites, now)
        for question in letter.questions:
            if self._admission.owns_host(question.url):
                self._frontier.ask_robots(RobotsRequest(question.origin, question.url, question.hops), now)
            else:  # its domain has another home than the sender knew
                self._admission.letter_to(question.url).questions.append(question)
        for answer in letter.answers:
            if self._admission.owns_host(answer.origin + "/"):
                self._learn_robots(answer, now)
            else:
                self._admission.letter_to(answer.origin + "/").answers.append(answer)

    def take_outbox(self) -> dict[int, Letter]:
        """Remove and return what goes to shards that are not owned, with the next commit."""
        return self._admission.take_outbox()

    def _learn_ranks(self, ranks: Sequence[DomainRank], now: float) -> None:
        own: list[DomainRank] = []
        for rank in ranks:
            home = f"http://{rank.domain}/"
            if self._admission.owns_host(home):
                own.append(rank)
            else:  # as above
                self._admission.letter_to(home).ranks.append(rank)
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
