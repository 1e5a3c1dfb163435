"""In which state is each host of a crawl, according to the ledger? One pass over the hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gossamer.core.links.requisite import queued_pages
from gossamer.model.figures import Forecast
from gossamer.model.records import HostRecord
from gossamer.reading.aggregates import Leaders
from gossamer.reading.outlook import Outlook
from gossamer.telemetry.forecast import Forecaster
from gossamer.telemetry.text import plural

OVER_BUDGET = "over_budget"  # of a host with queued URLs, none of which its budgets allow
HOST_STATES = ("ready", "waiting", "parked", "swapped_out", "dead", "blocked", "idle")
STATES = (*HOST_STATES, OVER_BUDGET)
WITH_WORK = frozenset({"ready", "waiting", "parked", "swapped_out"})
_PARKED_SHOWN = 5


def host_state_of(host: HostRecord, now: float) -> str:
    if host.is_blocked:
        return "blocked"
    if host.is_dead:
        return "dead"
    if not host.queued:
        return "idle"
    if host.parked_until > now:
        return "parked"
    if host.swapped_out_until > now:
        return "swapped_out"
    return "waiting" if host.next_at > now else "ready"


def shown_state(host: HostRecord, outlook: Outlook, now: float) -> str:
    """Return the state of a host, its budgets included."""
    state = host_state_of(host, now)
    return OVER_BUDGET if state in WITH_WORK and not outlook.of(host).urls else state


class HostTally:
    """The hosts counted by state, what is queued at them, and when the first of them may be contacted."""

    def __init__(self, now: float, max_wait_s: float, outlook: Outlook | None = None) -> None:
        self._now = now
        self._horizon = now + max_wait_s
        self._max_wait_s = max_wait_s
        self.states = dict.fromkeys(STATES, 0)
        self.next_at = float("inf")
        self.urls_queued = 0
        self.requisites_queued = 0
        self.urls_parked = 0  # queued at hosts that may not be contacted within `max_wait_s`
        self._beyond = 0.0
        self.urls_over_budget = 0  # queued, and not fetched by the budgets of hosts and domains
        self.outlook = outlook or Outlook(now)
        self.ahead = Forecaster(max_wait_s)
        self.parked: Leaders[HostRecord] = Leaders(_PARKED_SHOWN)  # with the most URLs

    def add(self, host: HostRecord) -> None:
        """Count a host."""
        state = host_state_of(host, self._now)
        left = self.outlook.of(host) if state in WITH_WORK else None
        if left is not None and left.beyond:
            state = state if left.urls else OVER_BUDGET
            self._beyond += left.beyond
            self.urls_over_budget = self.ahead.over_budget_urls = round(self._beyond)
        self.states[state] += 1
        self.urls_queued += queued_pages(host)
        self.requisites_queued += host.requisites
        if max(host.next_at, host.parked_until) > self._horizon:
            self.urls_parked += queued_pages(host)
        if state == "parked":
            self.parked.offer(host.queued, host)
        if left is not None and left.urls:
            next_at = max(self._now, host.next_at, host.parked_until)
            self.next_at = min(self.next_at, next_at)
            wait_s = next_at - self._now
            if wait_s > self._max_wait_s and (host.failures_in_a_row or host.robots_tries):
                self.ahead.add_parked(left.urls)
            else:
                self.ahead.add(host.name, left.urls, left.delay_s, wait_s, more_requests=left.more_requests)

    def forecast(self) -> Forecast:
        """Return how long what is queued takes."""
        return self.ahead.forecast(self.outlook.limits)


def left_alone(hosts: Iterable[HostRecord], names: Collection[str]) -> str:
    """Return for people what a block of hosts or domains concerns. One pass over the hosts."""
    known: set[str] = set()
    queued = 0
    for host in hosts:
        found = {host.name, host.domain}.intersection(names)
        known |= found
        queued += host.queued if found else 0
    unknown = [name for name in names if name not in known]
    hint = f"; no host of this crawl yet: {', '.join(unknown)}" if unknown else ""
    return f"{plural(queued, 'queued URL')} left alone{hint}"
