"""How long does a crawl need for what is queued now? From queue and pace of each host; what it will find is not known.

A host with a wait w and an interval i between two requests has made 1 + (t - w) / i of its n requests at a time t,
until all are made at w + (n - 1) i. The sum over all hosts says when a number of requests is made. Hosts are not
stored: their parts of the sum are added up by the classes (10 % wide) of the times at which they begin and end, so
that the sum is exact at the bounds of classes. A host costs 1.2 µs. Pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import accumulate, pairwise
from math import ceil, log

from msgspec import Struct

from gossamer.model.figures import Forecast, SlowHost, Totals
from gossamer.model.records import HostRecord
from gossamer.telemetry.text import agreeing, count, plural, roughly

_FIRST_S = 0.1
_STEP = 1.1
_LOG_STEP = log(_STEP)
_CLASSES = 240  # up to 25 years
_MIN_INTERVAL_S = 0.001
_MAX_S = 1e9  # any longer time is as good as never
_TOP = 11  # hosts that take longest, one more than can be slow
_SLOW_S = 60.0
MIN_TRIED = 20  # requests for URLs: before that, each counts as a page
_SLOW_FACTOR = 2.0  # slow hosts take this much longer than the slowest of the others
KNOWN_NOW = "(of what is known now)"
GROWING = "at least: more URLs are found than fetched"
NOTHING_QUEUED = "nothing is queued"
_BOUNDS_S = [_FIRST_S * _STEP**index for index in range(_CLASSES)]


class ForecastLimits(Struct, frozen=True):
    """What may end a crawl before its queue is empty, and what may slow it down besides its hosts."""

    pages_left: int | None = None  # until `--max-pages`
    seconds_left: float | None = None  # until `--max-time`
    pages_per_fetch: float = 1.0
    requests_per_url: float = 1.0  # with its retries
    max_fetches_per_s: float | None = None  # if something else than politeness binds it
    is_growing: bool = False  # more URLs are found than fetched

    @property
    def pages_per_url(self) -> float:
        """How many pages a URL brings, with its retries."""
        return max(0.01, min(1.0, self.pages_per_fetch * self.requests_per_url))


def limits_of(
    totals: Totals,
    *,
    pages_left: int | None = None,
    seconds_left: float | None = None,
    max_fetches_per_s: float | None = None,
    is_growing: bool = False,
) -> ForecastLimits:
    """Return the limits of a crawl whose URLs take as many requests, and bring as many pages, as they did so far."""
    tried = totals.fetches - totals.robots_fetches - totals.failed_lookups
    is_known = tried >= MIN_TRIED
    return ForecastLimits(
        pages_left=pages_left,
        seconds_left=seconds_left,
        pages_per_fetch=totals.pages / tried if is_known else 1.0,
        requests_per_url=tried / max(1, tried - totals.retries) if is_known else 1.0,
        max_fetches_per_s=max_fetches_per_s,
        is_growing=is_growing,
    )


class Forecaster:
    """One pass over the hosts that have queued URLs."""

    def __init__(self, max_wait_s: float) -> None:
        self._max_wait_s = max_wait_s
        self._counts_until_s = max_wait_s  # a host that waits for longer is decided on in `settle`
        self._begin = [0.0] * _CLASSES  # sum of 1 - w / i, by the class of w; like the next
        self._speed = [0.0] * _CLASSES  # sum of 1 / i
        self._end = [0.0] * _CLASSES  # sum of e / i, by the class of the end e; like the next
        self._ended_speed = [0.0] * _CLASSES
        self._longest: list[tuple[float, str, int, float]] = []  # a heap: seconds, name, URLs, interval
        self._resting: list[tuple[float, str, int, float, float]] = []  # wait, name, URLs, interval, more requests
        self.urls = 0
        self.requests = 0.0  # for these
        self.retried_urls = 0  # of these, that wait to be tried again
        self.over_budget_urls = 0  # that are not fetched
        self.parked_urls = 0  # of hosts that wait for longer than the crawl does
        self.parked_hosts = 0
        self.unknown_urls = 0  # of hosts that are not in memory
        self.min_s = 0.0  # that everything takes, since hosts share an address or a domain with a delay of its own

    def add(
        self, name: str, urls: int, interval_s: float, wait_s: float, *, more_requests: float = 0.0, last_s: float = 0.0
    ) -> None:
        """Add a host: its URLs, the time between two requests, and before the first.

        It takes `more_requests` than one for each URL, and at least until `last_s`.
        """
        if wait_s > self._counts_until_s:
            self._resting.append((wait_s, name, urls, interval_s, more_requests))
            return
        interval_s = min(max(interval_s, _MIN_INTERVAL_S), _MAX_S)
        wait_s = min(wait_s, _MAX_S)
        self.urls += urls
        requests = urls + more_requests
        self.requests += requests
        end_s = wait_s + (requests - 1) * interval_s
        begin = _class_of(wait_s)
        end = _class_of(end_s)
        speed = 1 / interval_s
        self._begin[begin] += 1 - wait_s * speed
        self._speed[begin] += speed
        self._end[end] += end_s * speed
        self._ended_speed[end] += speed
        end_s = max(end_s, last_s)  # a few retries do not matter for when most is done
        if len(self._longest) < _TOP:
            heapq.heappush(self._longest, (end_s, name, urls, interval_s))
        elif end_s > self._longest[0][0]:
            heapq.heapreplace(self._longest, (end_s, name, urls, interval_s))

    def add_parked(self, urls: int) -> None:
        """Add a host that may never answer again: its URLs are not in the forecast."""
        self.parked_urls += urls
        self.parked_hosts += 1

    def settle(self) -> None:
        """Count hosts that wait for longer than the crawl would for them alone, if it lasts until then anyway."""
        resting = sorted(self._resting)
        self._resting = []
        for wait_s, name, urls, interval_s, more_requests in resting:
            if wait_s <= max((each[0] for each in self._longest), default=0.0) + self._max_wait_s:
                self._counts_until_s = wait_s
                self.add(name, urls, interval_s, wait_s, more_requests=more_requests)
            else:
                self.add_parked(urls)
        self._counts_until_s = self._max_wait_s

    def _made_by(self) -> Iterator[tuple[float, float]]:
        """Yield times, and how many requests are made by then."""
        sums = (accumulate(each) for each in (self._begin, self._speed, self._end, self._ended_speed))
        for at_s, begin, speed, end, ended_speed in zip(_BOUNDS_S, *sums, strict=True):
            yield at_s, begin + at_s * speed - at_s * ended_speed + end

    def seconds_for(self, requests: float) -> float | None:
        """Return when this many requests are made; None if fewer are queued."""
        self.settle()
        if requests > self.requests:
            return None
        before_s = made_before = 0.0
        for at_s, made in self._made_by():
            if made >= requests:
                share = (requests - made_before) / (made - made_before) if made > made_before else 1.0
                return before_s + share * (at_s - before_s)
            before_s = at_s
            made_before = made
        return None

    def forecast(self, limits: ForecastLimits, age_s: float = 0.0) -> Forecast:
        """Return the forecast, some time after the hosts and the limits were read."""
        self.settle()
        hosts = sorted(self._longest, reverse=True)
        slow = hosts[: _slow_count([each[0] for each in hosts])]
        rest = hosts[len(slow) :]
        at_rate_s = max(self.min_s, self.requests / limits.max_fetches_per_s if limits.max_fetches_per_s else 0.0)
        rest_s = max(0.0, max(rest[0][0] if rest else 0.0, at_rate_s) - age_s)
        whole_s = max(hosts[0][0] if hosts else 0.0, at_rate_s)
        slow_hosts = [
            SlowHost(name, urls, interval_s, max(0.0, end_s - age_s)) for end_s, name, urls, interval_s in slow
        ]
        end_s, limit = _first_end(whole_s, self._pages_end_s(limits), limits.seconds_left)
        end_s = max(0.0, end_s - age_s)
        is_at_least = limits.is_growing and not limit and self.urls > 0
        text = self._text(end_s, limit, rest_s, slow_hosts)
        if is_at_least:
            text = text.replace(KNOWN_NOW, GROWING)
        return Forecast(end_s, min(rest_s, end_s), slow_hosts, text, is_at_least)

    def _pages_end_s(self, limits: ForecastLimits) -> float | None:
        if limits.pages_left is None:
            return None
        requests = limits.pages_left / max(limits.pages_per_fetch, 0.01)
        end_s = self.seconds_for(requests)
        if end_s is None or not limits.max_fetches_per_s:
            return end_s
        return max(end_s, requests / limits.max_fetches_per_s)

    def _text(self, end_s: float, limit: str, rest_s: float, slow: list[SlowHost]) -> str:
        parked = _not_counted(self.parked_urls, "of parked hosts")
        parked += _not_counted(self.unknown_urls, "of hosts that are not in memory")
        if self.over_budget_urls:
            parked += f"; {agreeing(self.over_budget_urls, 'URL')} over budget and not fetched"
        if not self.urls:
            left_out = self.over_budget_urls or self.parked_urls or self.unknown_urls
            return f"{'nothing is to be fetched' if left_out else NOTHING_QUEUED}{parked}"
        if self.retried_urls == self.urls:
            each = "it fails" if self.urls == 1 else "they fail"
            verb = agreeing(self.urls, "URL", "waits for its retry", "wait for their retries")
            return f"{verb}: done in about {roughly(end_s)} if {each} again{parked}"
        if limit:
            return f"{limit} ends it in about {roughly(end_s)} {KNOWN_NOW}{parked}"
        if not slow:
            return f"{agreeing(self.urls, 'queued URL')} done in about {roughly(end_s)} {KNOWN_NOW}{parked}"
        first = slow[0]
        more = f" and {len(slow) - 1} more like it" if len(slow) > 1 else ""
        slowest = (
            f"{first.name}: {plural(first.queued, 'URL')} at {first.delay_s:.3g} s = {roughly(first.seconds)}{more}"
        )
        return f"{slowest}; everything else is done in {roughly(rest_s)} {KNOWN_NOW}{parked}"


def _not_counted(urls: int, which: str) -> str:
    return f"; {plural(urls, 'URL')} {which} {'is' if urls == 1 else 'are'} not counted" if urls else ""


def _class_of(seconds: float) -> int:
    if seconds <= _FIRST_S:
        return 0
    return min(_CLASSES - 1, ceil(log(seconds / _FIRST_S) / _LOG_STEP))


def _slow_count(ends_s: list[float]) -> int:
    """Return how many of the hosts that take longest, the longest first, take much longer than the next."""
    gaps = [
        (longer / max(shorter, 1.0), index + 1)
        for index, (longer, shorter) in enumerate(pairwise(ends_s))
        if longer >= _SLOW_S
    ]
    widest, number = max(gaps, default=(0.0, 0))
    return number if widest >= _SLOW_FACTOR else 0


def _first_end(whole_s: float, pages_s: float | None, left_s: float | None) -> tuple[float, str]:
    """Return when the crawl ends, and the limit that ends it; empty if its queue does."""
    ends = [(whole_s, "")]
    if pages_s is not None:
        ends.append((pages_s, "--max-pages"))
    if left_s is not None:
        ends.append((max(0.0, left_s), "--max-time"))
    return min(ends)


class HostLeft(Struct, frozen=True, kw_only=True):
    """How long the queue of a host takes by politeness alone: first its wait, then one delay per request."""

    name: str
    queued: int
    delay_s: float
    wait_s: float
    seconds: float  # for what will be fetched
    beyond: float = 0.0  # of those queued: not fetched by the budget of the host or its domain, not rounded
    more_requests: float = 0.0  # than one for each URL: retries, robots.txt

    @property
    def urls(self) -> int:
        """How many of those queued will be fetched."""
        return ceil(self.queued - self.beyond)

    @property
    def over_budget(self) -> int:
        """How many of those queued will not be fetched."""
        return self.queued - self.urls


def queued_text(left: HostLeft) -> str:
    """Return how many URLs a host has queued, and how many of them will not be fetched."""
    return count(left.queued) + (f" ({count(left.over_budget)} over budget)" if left.over_budget else "")


def queue_time(host: HostRecord, now: float, interval_s: float, limits: ForecastLimits, urls: float) -> HostLeft:
    """Return how long the queue of a host takes, its wait first, if so many of its URLs will be fetched.

    `interval_s` is the time between two requests.
    """
    wait_s = max(0.0, host.next_at - now, host.parked_until - now)
    more = urls * (limits.requests_per_url - 1.0) + (not host.fetches) if urls else 0.0  # robots.txt
    seconds = wait_s + max(0.0, urls + more - 1) * interval_s if urls else 0.0
    return HostLeft(
        name=host.name,
        queued=host.queued,
        delay_s=round(interval_s, 3),
        wait_s=round(wait_s, 1),
        seconds=round(seconds, 1),
        beyond=round(host.queued - urls, 9),
        more_requests=round(more, 3),
    )
