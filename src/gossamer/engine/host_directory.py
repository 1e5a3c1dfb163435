"""Which hosts are in memory, and what the ledger keeps of the others.

A host is in the frontier, asleep in the ledger until a time, or idle there. Whatever changes
a host's record puts it among the ledger's pending changes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer.core.domains import registrable_domain
from gossamer.core.frontier import Frontier
from gossamer.core.robots import parse_robots
from gossamer.core.robots_state import LAST_GOOD_S
from gossamer.core.url import host_id
from gossamer.core.workbench import OriginRules
from gossamer.ports import Ledger
from gossamer.records import DomainRecord, HostRecord, Outcome, RobotsRecord


class HostDirectory:
    """The hosts of a crawl, between ledger and frontier."""

    def __init__(self, frontier: Frontier, ledger: Ledger, robots_token: str) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._token = robots_token
        self.opted_out: frozenset[str] = frozenset()
        self.ranks: Callable[[str], float] = lambda _host: 0.5

    def record(self, name: str, now: float) -> HostRecord:
        """Return what the ledger knows of a host; a new one is made."""
        record = self._ledger.host(name)
        if record is None:
            record = HostRecord(name, registrable_domain(name), rank=self.ranks(name), first_seen_at=now)
            self._ledger.put_host(record)
            domain = self._ledger.domain(record.domain) or DomainRecord(record.domain)
            domain.hosts += 1
            self._ledger.put_domain(domain)
        return record

    def load(self, record: HostRecord, now: float) -> None:
        """Bring a host into memory, with its domain and its robots.txt."""
        origins = {
            robots.origin: self._rules_kept(robots)
            for robots in self._ledger.robots(host_id(record.name))
            if robots.expires_at > now or robots.outcome == Outcome.OK.value
        }
        domain = self._ledger.domain(record.domain) or DomainRecord(record.domain)
        record.is_blocked = self.has_opted_out(record)
        self._frontier.load_host(record, domain, origins, now)
        self._ledger.put_host(record)  # with its promises renewed

    def _rules_kept(self, robots: RobotsRecord) -> OriginRules:
        """Return the rules of a robots.txt that the ledger holds; a file whose day is over waits to be renewed."""
        is_file = robots.outcome == Outcome.OK.value
        return OriginRules(
            rules=parse_robots(robots.body, self._token),
            expires_at=robots.expires_at,
            good_until=robots.fetched_at + LAST_GOOD_S if is_file else 0.0,
            etag=robots.etag,
            last_modified=robots.last_modified,
        )

    def bring_in(self, host: str, now: float) -> None:
        """Bring a host into memory where there is room and it may be swapped_in."""
        record = self.record(host, now)
        if not record.swapped_out_until and self._frontier.has_room():
            self.load(record, now)

    def swap_out(self, record: HostRecord, until: float) -> None:
        """Leave a host to the ledger until a time."""
        if record.swapped_out_until or self._frontier.knows(record.name):
            return
        record.swapped_out_until = until
        self._ledger.put_host(record)
        self._ledger.swap_out(record.name, until)
        self._frontier.note_swapped_out(until)

    def swap_in(self, count: int, now: float) -> None:
        """Bring in hosts whose sleep is over."""
        for name in self._ledger.swap_in_due(now, count):
            # A host that robots.txt of another led to is in memory already.
            record = self._frontier.record_of(name) or self.record(name, now)
            record.swapped_out_until = 0.0
            self._ledger.put_host(record)
            self.load(record, now)
        self._frontier.swapped_in(*self._ledger.swapped_out())

    def count_swapped_out(self, hosts: Sequence[str], now: float) -> None:
        """Count URLs of hosts that stay out of memory."""
        for host in hosts:
            record = self.record(host, now)
            record.queued += 1
            self._ledger.put_host(record)
            self.swap_out(record, now)

    def has_opted_out(self, record: HostRecord) -> bool:
        """Tell whether a host, or its domain, wants to be left alone."""
        return record.name in self.opted_out or record.domain in self.opted_out
