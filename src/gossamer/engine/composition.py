"""Which parts does a crawl consist of, and which of them know each other? Built once, for `Crawl`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.links.intake import Intake
from gossamer.core.revisit.shares import FetchShares
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.eviction import Eviction
from gossamer.engine.admission.first_pass import FirstPassProgress
from gossamer.engine.admission.holding import Holding
from gossamer.engine.admission.link_backlog import LinkBacklog
from gossamer.engine.admission.link_following import LinkFollowing
from gossamer.engine.admission.removal import Removal
from gossamer.engine.admission.rereading import Rereading
from gossamer.engine.admission.revival import Revival
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.admission.seed_rules import SeedRules
from gossamer.engine.admission.seeding import Seeding
from gossamer.engine.admission.trap_verdicts import TrapVerdicts
from gossamer.engine.cluster.letters import Letters
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.frontier_commands import CommandParts, FrontierCommands
from gossamer.engine.results.copies import Copies
from gossamer.engine.results.domain_ranks import DomainRanks
from gossamer.engine.results.evidence import Evidence
from gossamer.engine.results.near_duplicates import NearDuplicates
from gossamer.engine.results.page_results import PageResults
from gossamer.engine.results.requisites import RequisiteQueue
from gossamer.engine.results.robots_results import RobotsResults
from gossamer.engine.results.spam_watch import SpamWatch
from gossamer.engine.results.visit_results import VisitResults
from gossamer.engine.revisit.due_urls import DueUrls
from gossamer.engine.revisit.notices import Notices
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.engine.rules import CrawlRules
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.engine.shards.shard import Shards
from gossamer.model.state import CrawlState

if TYPE_CHECKING:
    from gossamer.ports import Ledger


class CrawlParts(Struct, frozen=True, kw_only=True):
    """The parts of one crawl."""

    state: CrawlState
    seeds: SeedRules
    scope: ScopeRecord
    near: NearDuplicates
    hosts: HostDirectory
    holding: Holding
    admission: Admission
    revival: Revival
    removal: Removal
    evidence: Evidence
    first_pass: FirstPassProgress
    shards: Shards
    robots: RobotsResults
    verdicts: TrapVerdicts
    rereading: Rereading
    seeding: Seeding
    pages: PageResults
    requisites: RequisiteQueue
    backlog: LinkBacklog
    letters: Letters
    revisits: Revisits
    visits: VisitResults
    commands: FrontierCommands
    notices: Notices
    eviction: Eviction | None


class _Entrance(Struct, frozen=True):
    """How URLs get into the queue."""

    state: CrawlState
    seeds: SeedRules
    scope: ScopeRecord
    hosts: HostDirectory
    admission: Admission


def _build_entrance(
    rules: CrawlRules, frontier: Frontier, intake: Intake, ledger: Ledger, emitter: EventEmitter
) -> _Entrance:
    state = CrawlState()
    seeds = SeedRules(intake, frontier.limits, ledger)
    hosts = HostDirectory(frontier, ledger, DomainRanks(frontier, ledger, rules.host_ranks, state))
    admission = Admission(rules, frontier, intake, ledger, hosts=hosts, emitter=emitter, state=state)
    return _Entrance(state, seeds, ScopeRecord(intake.scope, seeds, state), hosts, admission)


def compose(rules: CrawlRules, frontier: Frontier, intake: Intake, ledger: Ledger, emitter: EventEmitter) -> CrawlParts:
    """Return the parts of a new crawl."""
    way = _build_entrance(rules, frontier, intake, ledger, emitter)
    state = way.state
    admission = way.admission
    holding = way.admission.holding
    hosts = way.hosts
    scope = way.scope
    near = NearDuplicates(ledger, rules.near_dup)
    removal = Removal(frontier, ledger, hosts=hosts, scope=scope, emitter=emitter, state=state)
    verdicts = TrapVerdicts(intake, ledger, removal=removal, admission=admission, emitter=emitter, state=state)
    evidence = Evidence(intake, ledger, verdicts, holding, emitter, is_on=rules.watches_traps)
    first_pass = FirstPassProgress(intake, ledger, admission, holding, continues=rules.continues_after_target)
    robots = RobotsResults(
        rules, ledger, admission=admission, first_pass=first_pass, scope=scope, emitter=emitter, state=state
    )
    backlog = LinkBacklog(ledger, admission, emitter, state)
    links = LinkFollowing(rules, ledger, admission, scope, backlog=backlog, emitter=emitter, state=state)
    requisites = RequisiteQueue(rules, frontier, intake, ledger, admission=admission, emitter=emitter, state=state)
    rereading = Rereading(
        ledger,
        frontier.limits,
        state,
        admission=admission,
        links=links,
        robots=robots,
        requisites=requisites,
        emitter=emitter,
    )
    copies = Copies(ledger, near, emitter, state)
    revisits = Revisits(rules.revisits, DueUrls(frontier, ledger, hosts), ledger)
    if revisits.is_on:
        admission.revisits = revisits
        frontier.visits.shares = FetchShares(rules.revisits.known_share) if rules.revisits else frontier.visits.shares
    spam = SpamWatch(rules.spam, intake, frontier.limits.demoted_hosts, ledger, emitter=emitter, state=state)
    pages = PageResults(
        rules,
        ledger,
        copies=copies,
        links=links,
        evidence=evidence,
        spam=spam,
        requisites=requisites,
        revisits=revisits,
        emitter=emitter,
    )
    visits = VisitResults(
        ledger, revisits, copies=copies, links=links, requisites=requisites, emitter=emitter, state=state
    )
    memories = (evidence, spam, first_pass, holding, backlog, admission.introduced, revisits)
    concerned = CommandParts(
        hosts=hosts, removal=removal, evidence=evidence, first_pass=first_pass, revisits=revisits, visits=visits
    )
    return CrawlParts(
        state=state,
        seeds=way.seeds,
        scope=scope,
        near=near,
        hosts=hosts,
        holding=holding,
        admission=admission,
        revival=Revival(ledger, hosts, holding, emitter),
        removal=removal,
        evidence=evidence,
        verdicts=verdicts,
        first_pass=first_pass,
        shards=Shards(ledger, frontier, intake, hosts=hosts, admission=admission, memories=memories),
        robots=robots,
        rereading=rereading,
        seeding=Seeding(way.seeds, scope, admission, rereading),
        pages=pages,
        requisites=requisites,
        backlog=backlog,
        revisits=revisits,
        visits=visits,
        commands=FrontierCommands(frontier, ledger, concerned),
        notices=Notices(intake, ledger, admission, revisits),
        letters=Letters(
            frontier,
            ledger,
            hosts=hosts,
            admission=admission,
            scope=scope,
            robots=robots,
            copies=copies,
            requisites=requisites,
        ),
        eviction=_build_eviction(rules, frontier, ledger, way, removal=removal, emitter=emitter),
    )


def _build_eviction(
    rules: CrawlRules,
    frontier: Frontier,
    ledger: Ledger,
    way: _Entrance,
    *,
    removal: Removal,
    emitter: EventEmitter,
) -> Eviction | None:
    tails = way.admission.tails
    if rules.max_queued is None or tails is None:
        return None
    return Eviction(
        rules.max_queued, tails, frontier=frontier, ledger=ledger, removal=removal, emitter=emitter, state=way.state
    )
