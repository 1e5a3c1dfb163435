"""How many of the visits of known pages may one registrable domain have?

A budget of visits is spent where pages change, and whether a page has changed is what its server says. A host that says
it of every page, brings new links with each answer, lists everything as new in its feed and sends notices would get
nearly all visits. So each domain has a *share* of the budget, by its pages, and what it gets beyond that comes out of a
*pool*, a fifth of what the others have: one domain gets a fifth of the pool, several get less each, and all of them
together no more than the pool. A domain that wants less than that is never counted.

What a domain has had is a bucket that leaks at the rate it may have. If it is full, the domain is *held*: its hosts are
put off, each to a time of its own, until the bucket has leaked. While a domain is held its pages are in a census of
their own, so that what it would like to have does not raise the price of a visit for the others.

A domain gets more only while nobody else waits: if it is the only one that was visited for `ALONE_DAYS`, anything; if
the pages of the others are visited so often that hardly a visit finds a change (`IDLE_CHANCE`), what is left then.

Pure. O(1) per visit. Memory: a bucket of a domain that has had little is empty soon and is forgotten, so that there are
some five per held domain, and a few dozen if none is.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct

POOL = 0.2  # of the others' shares, for what domains have beyond theirs
_OTHERS = 4  # one greedy domain gets a fifth of the pool
MIN_SHARE = 0.001  # of the budget, of a domain without pages while all others are held, too
BURST_DAYS = 2.0  # of what a domain may have, at once
MIN_BURST = 16.0  # visits
ALONE_DAYS = 30.0
MAX_WAIT_DAYS = 1.0
IDLE_CHANCE = 0.05  # of a change at a visit
_DAY_S = 86_400.0


class _Bucket(Struct):
    """What a domain has had."""

    pages: int
    level: float = 0.0  # visits
    at: float = 0.0  # when the level was right
    is_held: bool = False
    next_turn: float = 0.0  # of the next of its hosts that is put off


class DomainShares:
    """Bounds the visits of each domain."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}
        self._last: dict[str, float] = {}  # the two domains that were visited last, and when
        self._budget = 0.0  # visits per day; 0: nothing is bounded
        self._pages = 1  # of all domains
        self._beyond = 0.0  # a domain's share, per day
        self._lent = 0.0  # to each domain that is held, per day
        self.held = 0
        self._had_before = 0.0

    def is_held(self, domain: str) -> bool:
        bucket = self._buckets.get(domain)
        return bucket is not None and bucket.is_held

    def room(self, domain: str, pages: int, now: float) -> int:
        """Return how many visits of a domain with so many pages may begin, up to `MIN_BURST`; 0 if it is held."""
        bucket = self._buckets.get(domain)
        if bucket is None or not self._budget or self._is_alone(domain, now):
            return int(MIN_BURST)
        bucket.pages = pages
        self._leak(bucket, now)
        room = int(min(self._capacity(bucket) - bucket.level, MIN_BURST) + 1e-6)
        if room < 1 and not bucket.is_held:
            bucket.is_held = True
            self.held += 1
            self._had_before += bucket.level
        return max(room, 0)

    def count(self, domain: str, pages: int, visits: int, now: float) -> None:
        """Count visits that begin."""
        if domain not in self._last and len(self._last) > 1:
            del self._last[min(self._last, key=self._last.__getitem__)]
        self._last[domain] = now
        bucket = self._buckets.get(domain)
        if bucket is None:
            bucket = self._buckets[domain] = _Bucket(pages, at=now)
        self._leak(bucket, now)
        bucket.level += visits

    def next_turn(self, domain: str, now: float) -> float:
        """Return when a host of a domain that is held is to be looked at again: each host at another time."""
        bucket = self._buckets[domain]
        per_s = self._per_day(bucket) / _DAY_S
        first = now + max(bucket.level + 1 - self._capacity(bucket), 0.0) / per_s
        turn = min(max(first, bucket.next_turn), now + MAX_WAIT_DAYS * _DAY_S)
        bucket.next_turn = turn + 1 / per_s
        return turn

    def adjust(self, budget_per_day: float, pages: int, now: float) -> float:
        """Set the budget for all pages; return how much of it is for domains that are held. 0: nothing is bounded.

        Who has had little is forgotten.
        """
        for domain, bucket in list(self._buckets.items()):
            self._leak(bucket, now)
            if not bucket.level or not budget_per_day:
                self.held -= bucket.is_held
                del self._buckets[domain]
        self._budget = budget_per_day
        self._pages = max(pages, 1)
        held = [bucket for bucket in self._buckets.values() if bucket.is_held]
        of_others = budget_per_day * max(1 - sum(bucket.pages for bucket in held) / self._pages, 0.0)
        self._beyond = POOL / (_OTHERS + max(len(held), 1)) * of_others
        self._lent = 0.0
        return sum(map(self._per_day, held))

    def lend(self, per_day: float) -> None:
        """Add to what domains that are held may have until the next `adjust`: nobody else waits for it."""
        self._lent = per_day / max(self.held, 1)

    def take_had_before(self) -> float:
        """Return how many visits domains that are held since the last call have had lately: not from their pool."""
        had = self._had_before
        self._had_before = 0.0
        return had

    def _is_alone(self, domain: str, now: float) -> bool:
        since = now - ALONE_DAYS * _DAY_S
        return all(other == domain or at < since for other, at in self._last.items())

    def _per_day(self, bucket: _Bucket) -> float:
        share = min(bucket.pages / self._pages, 1.0)
        allowed = share * self._budget + self._beyond + self._lent * bucket.is_held
        return max(allowed, MIN_SHARE * self._budget)

    def _capacity(self, bucket: _Bucket) -> float:
        return max(BURST_DAYS * self._per_day(bucket), MIN_BURST)

    def _leak(self, bucket: _Bucket, now: float) -> None:
        if now > bucket.at:
            per_day = self._per_day(bucket) if self._budget else inf
            bucket.level = max(bucket.level - per_day * (now - bucket.at) / _DAY_S, 0.0)
            bucket.at = now
