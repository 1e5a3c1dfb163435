"""Which rule sets the pace of a host, and with which value? For `why`, `hosts`, and the dashboard.

    least delay         the larger of Crawl-delay and the settings: the narrowest `pace` rule, else --politeness-ms
    doubled             once per step of back-off, from half a second at least, and of slowness
    left alone          parked: Retry-After, a refusal, failures in a row, robots.txt that cannot be reached

The values are those of `core/politeness/pace`, applied to what is committed.
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.politeness.pace import MIN_BACKOFF_S, delay_in_force_s
from gossamer.core.robots.answers import is_ban
from gossamer.core.robots.rules import parse_robots
from gossamer.model.records import HostRecord
from gossamer.reading.host_view import HostSource
from gossamer.settings.identity import robots_token_of
from gossamer.settings.model import Settings
from gossamer.settings.rules import pace_of
from gossamer.telemetry.text import duration, plural


class PaceView(Struct, frozen=True, kw_only=True):
    """The pace of a host, and what set it."""

    delay_s: float  # between two requests, from start to start
    connections: int
    rule: str  # what set the least delay: crawl-delay, pace, or politeness-ms
    pattern: str  # of the `pace` rule that counts for the host; empty if none does
    least_delay_s: float  # before it was doubled
    crawl_delay_s: float | None
    backoff: int  # how often it was doubled after failures and refusals
    slow_steps: int  # how often because answers take longer than they did
    parked_s: float  # how long the host is left alone from now on
    park_reason: str
    also: list[str]  # delays that it shares with other hosts

    def lines(self) -> list[str]:
        """Return the pace for people: what is in force and why, then what else the host waits for."""
        start = f" from {MIN_BACKOFF_S:g} s" if self.least_delay_s < MIN_BACKOFF_S else ""
        times = f"doubled {plural(self.backoff, 'time')}{start} after failures or refusals (back-off)"
        doubled = [times] if self.backoff else []
        if self.slow_steps:
            doubled.append(f"doubled {plural(self.slow_steps, 'time')} because its answers became slower")
        reasons = ", ".join([self._least(), *doubled])
        lines = [f"one request every {self.delay_s:g} s, {self.connections} at a time: {reasons}"]
        if self.parked_s > 0:
            lines.append(f"left alone for {duration(self.parked_s)} more: {self.park_reason or 'no reason given'}")
        return [*lines, *self.also]

    def _least(self) -> str:
        if self.rule == "crawl-delay":
            return f"Crawl-delay {self.least_delay_s:g} s of its robots.txt"
        overridden = f"; its Crawl-delay is {self.crawl_delay_s:g} s" if self.crawl_delay_s else ""
        if self.rule == "pace":
            return f"the pace of {self.least_delay_s:g} s set for {self.pattern}{overridden}"
        return f"--politeness-ms {1000 * self.least_delay_s:g}{overridden}"


def pace_view(crawl: HostSource, name: str, host: HostRecord | None = None) -> PaceView:
    """Return the pace of a host; of one that is not known yet, what the settings say."""
    settings = crawl.settings
    now = crawl.now
    host = host or crawl.ledger.host(name) or HostRecord(name, "")
    pace = pace_of(settings)
    crawl_delay_s = _crawl_delay_s(crawl, name)
    by_settings_s = pace.floor_s(name, None)
    least_s = pace.floor_s(name, crawl_delay_s)
    pattern = pace.pattern_of(name)
    has_delay = any(rule.host == pattern and rule.delay is not None for rule in settings.pace)
    return PaceView(
        delay_s=round(delay_in_force_s(host, least_s), 3),
        connections=pace.connections(name),
        rule="crawl-delay" if least_s > by_settings_s else "pace" if has_delay else "politeness-ms",
        pattern=pattern,
        least_delay_s=least_s,
        crawl_delay_s=crawl_delay_s,
        backoff=host.backoff,
        slow_steps=host.slow_steps,
        parked_s=round(max(0.0, host.parked_until - now), 3),
        park_reason=host.park_reason,
        also=_shared(settings),
    )


def _crawl_delay_s(crawl: HostSource, name: str) -> float | None:
    """Return the largest Crawl-delay of the host's origins: the crawl applies it to all of them."""
    token = robots_token_of(crawl.settings)
    records = (record for record in crawl.ledger.robots(crawl.ledger.host_id(name)) if not is_ban(record))
    delays = [parse_robots(record.body, token).crawl_delay_s for record in records]
    return max((delay for delay in delays if delay is not None), default=None)


def _shared(settings: Settings) -> list[str]:
    gates = (("address", settings.address_politeness_ms), ("domain", settings.domain_politeness_ms))
    return [
        f"{delay / 1000:g} s between requests to its {what} (--{what}-politeness-ms)" for what, delay in gates if delay
    ]
