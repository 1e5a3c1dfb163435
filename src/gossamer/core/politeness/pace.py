"""How long must a host be left alone? Pace, refusals and parking; all of it durable in `HostRecord`.

The delay in force is the larger of the configured delay and the host's Crawl-delay,
doubled once for each step of backoff and of slowness; backoff begins with at least half a second.
It never falls below that floor. A
refusal (429, or 503 with Retry-After) parks the whole host, and so do failures of five URLs in a
row; a URL that fails again when it is tried again counts only once the host is parked.
Each doubling of the latency doubles the delay, and each halving halves it again, one step at a
time. Requests that were on their way when the delay was doubled do not double it again.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from gossamer.core.politeness.retry import HOST_FAILURES, MAX_RETRY_AFTER_S
from gossamer.model.records import HostRecord, Outcome, Result

FAILURES_BEFORE_PARKING = 5
FAILURES_BEFORE_BACKOFF = 2
FIRST_PARK_S = 60.0
MAX_PARK_S = 3600.0
MAX_BACKOFF = 8  # 256 times the delay
MIN_BACKOFF_S = 0.5  # what is doubled after failures, however short the delay is
MAX_DELAY_S = 3600.0
FIRST_REFUSAL_S = 5.0
MIN_REFUSAL_S = 2.0  # a commit starts at once and has ended by then: a refusal is durable before the next request
LATENCY_NOTICED_S = 0.25  # below this, network and our own processing are of the same size
MAX_SLOW_STEPS = 6
ANSWERS_PER_STEP = 5
# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_SERVER_ERROR = Outcome.SERVER_ERROR
_RATE_LIMITED = Outcome.RATE_LIMITED
_WORKER_LOST = Outcome.WORKER_LOST


class PaceRule(Struct, frozen=True):
    """Delay and connections for the hosts that a pattern names (`example.org`, `*.example.org`)."""

    pattern: str
    delay_s: float | None = None
    connections: int | None = None


class Pace:
    def __init__(self, delay_s: float, connections: int, rules: Sequence[PaceRule] = ()) -> None:
        self._delay_s = delay_s
        self._connections = connections
        self.change_rules(rules)

    def change_rules(self, rules: Sequence[PaceRule]) -> None:
        """Replace the rules. The narrowest that matches a host counts: its name, then the longest pattern."""
        self._rules = tuple(sorted(rules, key=lambda rule: (_has_wildcard(rule.pattern), -len(rule.pattern))))
        self._rule = lru_cache(maxsize=10_000)(self._find_rule)

    def _find_rule(self, host: str) -> PaceRule | None:
        return next((rule for rule in self._rules if fnmatch.fnmatchcase(host, rule.pattern.lower())), None)

    def pattern_of(self, host: str) -> str:
        """Return the pattern of the rule that counts for a host; empty if none does."""
        rule = self._rule(host)
        return "" if rule is None else rule.pattern

    @property
    def has_delay(self) -> bool:
        return self._delay_s > 0 or any(rule.delay_s for rule in self._rules)

    def floor_s(self, host: str, crawl_delay_s: float | None) -> float:
        """Return the minimum delay of a host, before any backoff."""
        rule = self._rule(host) if self._rules else None
        delay_s = self._delay_s if rule is None or rule.delay_s is None else rule.delay_s
        return max(delay_s, crawl_delay_s or 0.0)

    def connections(self, host: str) -> int:
        """Return how many requests a host may have in flight."""
        rule = self._rule(host) if self._rules else None
        return self._connections if rule is None or rule.connections is None else rule.connections


def _has_wildcard(pattern: str) -> bool:
    return any(each in pattern for each in "*?[")


def count_server_error(record: HostRecord, now: float) -> None:
    """Count an answer with 5xx, by the hour; hours that ended a day ago are forgotten."""
    hour = int(now // 3600)
    counts = dict(record.server_errors)
    counts[hour] = counts.get(hour, 0) + 1
    record.server_errors = [(when, count) for when, count in counts.items() if when > hour - 24]


def server_errors_24h(record: HostRecord, now: float) -> int:
    """Return how many answers of the last 24 hours had 5xx."""
    return sum(count for when, count in record.server_errors if when > now // 3600 - 24)


def delay_in_force_s(record: HostRecord, floor_s: float) -> float:
    """Return the host's delay including backoff and slowness."""
    if not record.backoff and not record.slow_steps:
        return floor_s
    # With a configured delay of 0, failures cause a delay, but slow answers do not.
    min_s = max(floor_s, MIN_BACKOFF_S) if record.backoff else floor_s
    return max(floor_s, min(MAX_DELAY_S, min_s * float(1 << (record.backoff + record.slow_steps))))


def usual_delay_s(record: HostRecord, floor_s: float) -> float:
    """Return the host's delay once back-off is over: each success takes back one step of it."""
    return max(floor_s, min(MAX_DELAY_S, floor_s * float(1 << record.slow_steps)))


def park_after(failures_in_a_row: int) -> float:
    """Return for how long a host is parked after so many failures in a row; 0: it is not."""
    if failures_in_a_row < FAILURES_BEFORE_PARKING:
        return 0.0
    doublings = min(10, failures_in_a_row - FAILURES_BEFORE_PARKING)  # beyond MAX_PARK_S
    return min(MAX_PARK_S, FIRST_PARK_S * float(1 << doublings))


def record_latency(record: HostRecord, latency_s: float) -> None:
    """Adapt the pace to how long answers take: one step at a time, a few answers per step."""
    smooth_s = latency_s if not record.latency_s else 0.8 * record.latency_s + 0.2 * latency_s
    record.latency_s = smooth_s
    # The best latency drifts towards the usual one: a site that became permanently slower recovers its pace.
    best_s = record.best_latency_s
    record.best_latency_s = smooth_s if not best_s or smooth_s < best_s else best_s + 0.0005 * (smooth_s - best_s)
    record.answers += 1
    is_quick = not record.slow_steps and smooth_s < 2 * LATENCY_NOTICED_S  # no step: spares the logarithm
    if is_quick or record.answers < ANSWERS_PER_STEP:
        return
    wanted = int(math.log2(max(1.0, smooth_s / max(record.best_latency_s, LATENCY_NOTICED_S))))
    if wanted != record.slow_steps:
        record.slow_steps = min(MAX_SLOW_STEPS, record.slow_steps + (1 if wanted > record.slow_steps else -1))
        record.answers = 0


def is_refusal(result: Result) -> bool:
    """Return whether an answer asks the crawler to slow down."""
    is_busy = result.outcome is _SERVER_ERROR and result.retry_after_s > 0
    return is_busy or result.outcome is _RATE_LIMITED


def record_result(record: HostRecord, result: Result, now: float, *, has_failed_before: bool = False) -> None:
    """Update backoff and parking of a host after a fetch.

    With `has_failed_before` the URL's failure says nothing new of a host that has not been parked: it is the URL's.
    """
    if is_refusal(result):
        _park_after_refusal(record, result, now)
    elif result.outcome in HOST_FAILURES:
        if not has_failed_before or record.failures_in_a_row >= FAILURES_BEFORE_PARKING:
            _record_failure(record, result, now)
    elif result.outcome is not _WORKER_LOST:
        record.failures_in_a_row = 0
        record.backoff = max(0, record.backoff - 1)
        record.park_reason = ""


def _park_after_refusal(record: HostRecord, result: Result, now: float) -> None:
    # A burst counts once: a refusal that arrives while the host is parked can only extend the time.
    if record.parked_until <= now:
        _double(record, result, now)
    wait_s = result.retry_after_s if result.retry_after_s > 0 else FIRST_REFUSAL_S * 2 ** max(0, record.backoff - 1)
    record.parked_until = max(record.parked_until, now + min(max(wait_s, MIN_REFUSAL_S), MAX_RETRY_AFTER_S))
    record.park_reason = f"{result.status} Retry-After" if result.retry_after_s > 0 else str(result.status)


def _double(record: HostRecord, result: Result, now: float) -> None:
    """Double the delay, unless the request was on its way when it was doubled last: a burst counts once."""
    if (result.sent_at or now) >= record.slowed_at:
        record.backoff = min(MAX_BACKOFF, record.backoff + 1)
        record.slowed_at = now


def _record_failure(record: HostRecord, result: Result, now: float) -> None:
    record.failures_in_a_row += 1
    if record.failures_in_a_row >= FAILURES_BEFORE_BACKOFF:
        _double(record, result, now)
    if park_s := park_after(record.failures_in_a_row):
        record.parked_until = max(record.parked_until, now + park_s)
        record.park_reason = f"{record.failures_in_a_row} failures in a row, last {result.outcome}"
