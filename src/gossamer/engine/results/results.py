"""What follows from the end of a task: for its host and domain, the archive, and its URL?

What follows for a URL is in a module per kind: `robots_results`, `page_results`, `visit_results`, `requisites`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.frontier.effects import Effects
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.links.intake import Intake
from gossamer.core.url.forms import origin_of
from gossamer.core.url.host_patterns import names_host
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.eviction import Eviction
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.link_backlog import LinkBacklog
from gossamer.engine.admission.link_following import LinkFollowing
from gossamer.engine.admission.removal import Removal
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.admission.trap_verdicts import TrapVerdicts
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.copies import Copies
from gossamer.engine.results.evidence import Evidence
from gossamer.engine.results.page_results import PageResults
from gossamer.engine.results.requisites import RequisiteQueue
from gossamer.engine.results.robots_results import RobotsResults
from gossamer.engine.results.spam_watch import SpamWatch
from gossamer.engine.results.visit_results import VisitResults
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.rules import CrawlRules
from gossamer.model.figures import MAX_DEPTH, NOFOLLOW, TRUNCATED_PAGES, add_count
from gossamer.model.records import Completed, DomainRecord, FetchKind, FetchTask, Outcome, QueuedUrl, Result, UrlState
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_WORKER_LOST = Outcome.WORKER_LOST
_PAGE = FetchKind.PAGE
_REQUISITE = FetchKind.REQUISITE


class Results:
    def __init__(
        self,
        rules: CrawlRules,
        frontier: Frontier,
        intake: Intake,
        ledger: Ledger,
        *,
        admission: Admission,
        backlog: LinkBacklog,
        scope: ScopeRecord,
        removal: Removal,
        first_pass: FirstPassProgress,
        revisits: Revisits,
        emitter: EventEmitter,
        state: CrawlState,
    ) -> None:
        self._rules = rules
        self._ledger = ledger
        self._events = emitter
        self._state = state
        self._first_pass = first_pass
        self._holding = admission.holding
        self.copies = Copies(ledger, rules.near_dup, emitter, state)
        self.verdicts = TrapVerdicts(intake, ledger, removal=removal, admission=admission, emitter=emitter, state=state)
        self.evidence = Evidence(
            intake,
            ledger,
            self.verdicts,
            admission.holding,
            emitter,
            is_on=rules.watches_traps,
            max_oversize=rules.max_oversize,
        )
        self.spam = SpamWatch(rules.spam, intake, frontier.limits.demoted_hosts, ledger, emitter=emitter, state=state)
        self.links = LinkFollowing(rules, ledger, admission, scope, backlog=backlog, emitter=emitter, state=state)
        self.requisites = RequisiteQueue(
            rules, frontier, intake, ledger, admission=admission, emitter=emitter, state=state
        )
        self.robots = RobotsResults(
            rules, ledger, admission=admission, first_pass=first_pass, scope=scope, emitter=emitter, state=state
        )
        self._pages = PageResults(
            rules,
            ledger,
            copies=self.copies,
            links=self.links,
            evidence=self.evidence,
            spam=self.spam,
            requisites=self.requisites,
            revisits=revisits,
            emitter=emitter,
        )
        self.visits = VisitResults(
            ledger,
            revisits,
            copies=self.copies,
            links=self.links,
            requisites=self.requisites,
            emitter=emitter,
            state=state,
        )
        self.eviction = Eviction(
            rules.max_queued,
            admission.tails,
            frontier=frontier,
            ledger=ledger,
            removal=removal,
            evidence=self.evidence,
            first_pass=first_pass,
            emitter=emitter,
            state=state,
        )

    def record(self, task: FetchTask, result: Result, effects: Effects, now: float) -> Completed:
        """Record the end of a task, as the frontier has decided."""
        ledger = self._ledger
        if result.outcome is not _WORKER_LOST:
            self._state.totals.count_fetch(task.kind, result)
            if effects.fallbacks:
                self._state.totals.count_missing_https(result.outcome)
        if task.kind is _PAGE:
            self.evidence.record_size(effects.hosts[0], result)
        host = effects.hosts[0]
        if host.is_unreached or (host.errors and not host.has_answered):
            self._holding.count_contact(host)
        for record in effects.hosts:
            ledger.put_host(record)
        if effects.domain_pages or effects.is_lost_page:
            name = effects.hosts[0].domain
            domain = ledger.domain(name) or DomainRecord(name, hosts=1)
            domain.pages = effects.domain_pages
            ledger.put_domain(domain)
        if result.archived is not None:
            ledger.put_archive_end(result.archived.file, result.archive_end)
        completed = self._record_url(task, result, effects, now)
        if effects.parked_s:
            self._events.parked(effects.hosts[0], effects.parked_s, now)
        return completed

    def _record_url(self, task: FetchTask, result: Result, effects: Effects, now: float) -> Completed:
        """Record what follows from the end of a task for its URL."""
        if effects.url is None:
            self.robots.record(task, result, effects, now)
        elif effects.retry is not None:
            self._state.totals.retries += result.outcome is not _WORKER_LOST
            self._pages.record_retry(task, effects.url, result, effects.retry, now)
        elif effects.url.known:
            return self.visits.record(task, effects.url, result, effects, now)
        elif effects.url.kind is _REQUISITE:
            self.requisites.record(task, effects.url, result, effects.state, now)
        else:
            completed = self._pages.record(task, effects.url, result, effects, now)
            self._count_page(task, effects.url, result, effects, now)
            self.eviction.evict_excess(now)
            return completed
        return Completed(task, result)

    def _count_page(self, task: FetchTask, url: QueuedUrl, result: Result, effects: Effects, now: float) -> None:
        totals = self._state.totals
        if result.links_found and not task.needs_links:
            totals.count_cut(MAX_DEPTH, result.links_found)
        if result.nofollow_links and "nofollow" in result.directives:
            totals.count_cut(NOFOLLOW, result.nofollow_links)
        if not effects.is_page:
            totals.dead += effects.state is UrlState.DEAD
            # The target of a redirect has been counted by itself, whether of the same domain or not.
            self._first_pass.fail(url.host, now)
            return
        totals.count_page(result)
        if result.truncated:
            add_count(totals.cuts, TRUNCATED_PAGES, 1)
        if effects.hosts[0].pages == 1:
            totals.unique_hosts += 1
            if self._rules.insecure and url.url.startswith("https:"):
                authority = origin_of(url.url).removeprefix("https://")
                totals.unchecked_hosts += any(names_host(each, url.host, authority) for each in self._rules.insecure)
        if effects.domain_pages == 1:
            totals.unique_domains += 1
            self._first_pass.reach(effects.hosts[0].domain)
