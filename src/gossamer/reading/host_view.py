"""A host as it is shown: by `gossamer hosts`, and on the dashboard."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import Struct

from gossamer.core.ledger.tables import QUARANTINES, SPAM, quarantine_key, spam_key
from gossamer.core.politeness.pace import server_errors_24h
from gossamer.core.spam.hosts import described
from gossamer.core.traps.quarantine import SPAM_PATTERN
from gossamer.core.url.identity import domain_id, shard_of
from gossamer.model.figures import Totals
from gossamer.model.records import HostRecord, RobotsRecord
from gossamer.model.state import SpamTally
from gossamer.ports import Catalog
from gossamer.reading.budgets import rank_of
from gossamer.reading.host_states import OVER_BUDGET, WITH_WORK, host_state_of
from gossamer.reading.outlook import outlook_of
from gossamer.settings.model import Settings
from gossamer.settings.rules import pace_of
from gossamer.telemetry.text import plural


class HostSource(Protocol):
    """What a host is shown from: a crawl that is read, or one that runs."""

    @property
    def ledger(self) -> Catalog:
        """What is known about hosts."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the crawl."""
        ...

    @property
    def totals(self) -> Totals:
        """What was counted so far."""
        ...

    @property
    def now(self) -> float:
        """The moment that is shown."""
        ...


class HostView(Struct, kw_only=True):
    """A host, and when it may be contacted next."""

    name: str
    domain: str
    state: str = msgspec.field(name="place")
    pages: int
    queued: int
    fetches: int
    errors: int
    bytes: int
    latency_ms: float | None  # None: it has not answered yet
    delay_s: float  # in force
    backoff: int
    next_at: float
    next_in_s: float
    time_left_s: float  # for what will be fetched of its queue
    over_budget: int  # of those queued: not fetched
    parked_until: float
    park_reason: str
    first_seen_at: float
    last_fetch_at: float
    addresses: tuple[str, ...]
    robots_tries: int  # consecutive, without an answer
    rank: float  # from 0, least important, to 1
    connections: int  # requests that it may have in flight
    server_errors_24h: int  # answers with 5xx
    is_blocked: bool  # by --block-host or blocked.txt
    robots: list[RobotsView]
    in_flight: int = 0  # requests; known to a crawl that runs
    pace_rule: str = ""  # the pattern of the `[[pace]]` rule that counts for it
    spam_ratio: float = 0.0  # of its pages
    spam: str = ""  # what follows from that, and why; empty if there is none
    waits_for: str = ""  # requests of others that must end first; known to a crawl that runs


class RobotsView(Struct, kw_only=True):
    """robots.txt of one origin of a host."""

    origin: str
    status: int
    outcome: str
    age_s: float
    expires_in_s: float
    bytes: int


def host_view(crawl: HostSource, host: HostRecord) -> HostView:
    """Return a host as it is shown."""
    now = crawl.now
    state = host_state_of(host, now)
    pace = pace_of(crawl.settings)
    domains = crawl.ledger.domains(shard_of(domain_id(host.domain)))
    left = outlook_of(crawl.settings, crawl.totals, domains, now).of(host) if host.queued else None
    tally = crawl.ledger.record(SPAM, spam_key(host.name, is_domain=False))
    return HostView(
        name=host.name,
        domain=host.domain,
        state=OVER_BUDGET if left and not left.urls and state in WITH_WORK else state,
        pages=host.pages,
        queued=host.queued,
        fetches=host.fetches,
        errors=host.errors,
        bytes=host.bytes,
        latency_ms=round(1000 * host.latency_s, 1) if host.latency_s else None,
        delay_s=round(host.delay_s or pace.floor_s(host.name, None), 3),
        backoff=host.backoff,
        next_at=host.next_at,
        next_in_s=round(max(0.0, host.next_at - now, host.parked_until - now), 3),
        time_left_s=left.seconds if left else 0.0,
        over_budget=left.over_budget if left else 0,
        parked_until=host.parked_until,
        park_reason=host.park_reason,
        first_seen_at=host.first_seen_at,
        last_fetch_at=host.last_fetch_at,
        addresses=host.addresses,
        robots_tries=host.robots_tries,
        rank=rank_of(crawl.ledger, host),
        connections=pace.connections(host.name),
        pace_rule=pace.pattern_of(host.name),
        server_errors_24h=server_errors_24h(host, now),
        is_blocked=host.is_blocked,
        robots=[_robots_view(record, now) for record in crawl.ledger.robots(crawl.ledger.host_id(host.name))],
        spam_ratio=round(min(1.0, tally.spam / max(1, host.pages)), 3) if tally is not None else 0.0,
        spam=_spam(crawl.ledger, host.name, tally) if tally is not None and tally.spam else "",
    )


def _spam(ledger: Catalog, host: str, tally: SpamTally) -> str:
    """Return how much of a host is spam, what follows, and why."""
    decided = ledger.record(QUARANTINES, quarantine_key(host, SPAM_PATTERN))
    if decided is None:
        return f"{plural(tally.spam, 'page')} ({described(tally.signals)}): no consequences"
    if decided.is_released:
        return f"{plural(tally.spam, 'page')} ({described(tally.signals)}): released by the operator"
    return f"{'demoted' if decided.demotes_only else 'links to it are held back'}: {decided.reason}"


def _robots_view(record: RobotsRecord, now: float) -> RobotsView:
    return RobotsView(
        origin=record.origin,
        status=record.status,
        outcome=record.outcome,
        age_s=round(now - record.fetched_at, 1),
        expires_in_s=round(record.expires_at - now, 1),
        bytes=len(record.body),
    )
