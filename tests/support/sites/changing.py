"""Pages that change, appear and vanish, in virtual time: what does a revisit policy get for its budget?

Nothing is fetched and nothing is parsed: a million pages over 30 days are millions of visits, and only when each of
them happens and what it finds matters. A page changes by a Poisson process, so what happened since the last visit is
drawn when the next one comes. Time runs in slots of 15 minutes; what is due in a slot and beyond the budget is late,
and comes first in the next one. Freshness is counted at marks, four per day: of the pages that are known and not
known to be gone, the share whose copy is what the server has. 2 µs per visit, and what the policy takes.
"""

from __future__ import annotations

from array import array
from bisect import bisect
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from math import ceil, exp, inf
from random import Random
from typing import Protocol

from msgspec import Struct

from gossamer.core.revisit.classes import RARE_PER_DAY, PageClass
from gossamer.core.revisit.page import VisitFound

SLOTS_PER_DAY = 96
MARKS_PER_DAY = 4
DELAY_BINS_PER_DAY = 96
MAX_DELAY_DAYS = 30
_CARRIED_SLOTS = 24  # of a budget that was not spent


class Kind(Struct, frozen=True):
    """Pages that change about as often as each other."""

    name: str
    share: float
    per_day: float
    is_news: bool = False


MIX: Sequence[Kind] = (
    Kind("news", 0.005, 4.0, is_news=True),
    Kind("noise", 0.08, 50.0),
    Kind("daily", 0.115, 1.0),
    Kind("weekly", 0.15, 1 / 7),
    Kind("monthly", 0.25, 1 / 30),
    Kind("slow", 0.25, 1 / 120),
    Kind("still", 0.15, 1 / 1000),
)


class Mix(Struct, frozen=True):
    """What a changing web consists of."""

    pages: int = 1_000_000
    pages_per_host: int = 200
    days: int = 30
    kinds: Sequence[Kind] = MIX
    spread: float = 0.5  # standard deviation of the logarithm of the rates of a kind
    own_kind: float = 0.5  # the share of a host's pages that are of the kind which prevails there
    popular_hosts: float = 0.1
    appearing: float = 0.03  # of the pages: not there at first
    vanishing_per_day: float = 0.001
    news_links: float = 0.9  # changes of news pages that bring links to new pages
    other_links: float = 0.05


class ChangingWeb:
    """The truth about all pages: how often they change, when they appear and vanish, and their class."""

    def __init__(self, mix: Mix, seed: int) -> None:
        self.mix = mix
        draw = Random(seed)
        limits = list(accumulate(kind.share for kind in mix.kinds))
        prevailing = [self._kind(draw, limits) for _ in range(mix.pages // mix.pages_per_host + 1)]
        self.popular = [draw.random() < mix.popular_hosts for _ in prevailing]
        self.per_day = array("d")
        self.is_news = bytearray(mix.pages)
        self.classes = bytearray(mix.pages)
        self.appears = array("d")
        self.vanishes = array("d")
        for page in range(mix.pages):
            host = self.host(page)
            number = prevailing[host] if draw.random() < mix.own_kind else self._kind(draw, limits)
            kind = mix.kinds[number]
            self.per_day.append(kind.per_day * exp(draw.gauss(0.0, mix.spread)))
            self.is_news[page] = kind.is_news
            self.classes[page] = self._class(page)
            appears = draw.uniform(0, mix.days) if draw.random() < mix.appearing else 0.0
            self.appears.append(appears)
            self.vanishes.append(appears + draw.expovariate(mix.vanishing_per_day) if mix.vanishing_per_day else inf)

    def host(self, page: int) -> int:
        """Return the number of a page's host."""
        return page // self.mix.pages_per_host

    def _kind(self, draw: Random, limits: list[float]) -> int:
        return min(bisect(limits, draw.random() * limits[-1]), len(limits) - 1)

    def _class(self, page: int) -> PageClass:
        if self.is_news[page]:
            return PageClass.NEWS
        if self.popular[self.host(page)]:
            return PageClass.POPULAR
        return PageClass.RARE if self.per_day[page] < RARE_PER_DAY else PageClass.STATIC


class Policy(Protocol):
    """Decides when pages are visited. Times are days since the beginning. The first visit has been made already."""

    def first_wait(self, page: int, now: float) -> float:
        """Return the days until the second visit."""
        ...

    def visited(self, page: int, now: float, found: VisitFound, brought_links: bool) -> float | None:
        """Return the days until the next visit, or None if there is none."""
        ...

    def adjust(self, now: float, late: int) -> None:
        """Called once per hour with the number of pages that are due and were not fetched."""
        ...


class Course:
    """What became of the pages, and what it cost."""

    def __init__(self, days: int) -> None:
        marks = days * MARKS_PER_DAY + 2
        self._known = [[0] * marks for _ in PageClass]  # differences from mark to mark
        self._fresh = [[0] * marks for _ in PageClass]
        self._last = days * MARKS_PER_DAY
        self.days = days
        self.visits = 0
        self.delays = [0] * (MAX_DELAY_DAYS * DELAY_BINS_PER_DAY + 1)  # of changes of news pages since `delays_from`
        self.delays_from = days / 3
        self.changes = 0
        self.overwritten = 0  # of these, followed by another change before the visit

    def add_known(self, page_class: int, since: float, until: float) -> None:
        """Count a page as known from a time to another."""
        self._add(self._known[page_class], since, until)

    def add_fresh(self, page_class: int, since: float, until: float) -> None:
        """Count a page as fresh from a time to another."""
        self._add(self._fresh[page_class], since, until)

    def _add(self, marks: list[int], since: float, until: float) -> None:
        marks[ceil(since * MARKS_PER_DAY)] += 1
        marks[min(ceil(until * MARKS_PER_DAY), self._last + 1)] -= 1

    def add_delay(self, days: float, is_last: bool) -> None:
        """Count a change of a news page that a visit found so much later."""
        self.changes += 1
        self.overwritten += not is_last
        self.delays[min(int(days * DELAY_BINS_PER_DAY), len(self.delays) - 1)] += 1

    def freshness(self, weights: dict[PageClass, float], first_day: float, last_day: float) -> float:
        """Return the weighted share of fresh pages of these classes, the mean of the marks from a day to another."""
        marks = slice(round(first_day * MARKS_PER_DAY), round(last_day * MARKS_PER_DAY) + 1)
        fresh = sum(weight * sum(list(accumulate(self._fresh[each]))[marks]) for each, weight in weights.items())
        known = sum(weight * sum(list(accumulate(self._known[each]))[marks]) for each, weight in weights.items())
        return fresh / known if known else 0.0

    def seen_within(self, days: float) -> float:
        """Return the share of changes of news pages after which the page was visited within that time."""
        return sum(self.delays[: round(days * DELAY_BINS_PER_DAY)]) / max(self.changes, 1)

    def median_delay(self) -> float:
        """Return the days within which half of the changes of news pages were seen."""
        counts = accumulate(self.delays)
        return next(number for number, count in enumerate(counts, 1) if count * 2 >= self.changes) / DELAY_BINS_PER_DAY


class Simulation:
    """One policy on one web, with a budget."""

    def __init__(self, web: ChangingWeb, policy: Policy, visits_per_day: float, seed: int) -> None:
        self._web = web
        self._policy = policy
        self._per_slot = visits_per_day / SLOTS_PER_DAY
        self._draw = Random(seed)
        self._slots = [array("I") for _ in range(web.mix.days * SLOTS_PER_DAY + 1)]
        self._visited = array("d", web.appears)
        self._is_gone = bytearray(web.mix.pages)
        self.course = Course(web.mix.days)

    def run(self) -> Course:
        """Return what the policy got for its budget."""
        web, slots = self._web, self._slots
        appearing: list[list[int]] = [[] for _ in slots]
        for page, at in enumerate(web.appears):
            appearing[ceil(at * SLOTS_PER_DAY)].append(page)
        late: deque[int] = deque()
        allowed = 0.0
        for slot in range(len(slots) - 1):
            now = slot / SLOTS_PER_DAY
            for page in appearing[slot]:
                self._plan(page, slot, self._policy.first_wait(page, now))
            late.extend(slots[slot])
            slots[slot] = array("I")
            allowed = min(allowed + self._per_slot, _CARRIED_SLOTS * self._per_slot)
            while late and allowed >= 1:
                allowed -= 1
                self._visit(late.popleft(), slot)
            if slot % 4 == 0:
                self._policy.adjust(now, len(late))
        self._finish()
        return self.course

    def _plan(self, page: int, slot: int, wait: float | None) -> None:
        if wait is not None:
            due = slot + max(1, round(wait * SLOTS_PER_DAY))
            if due < len(self._slots):
                self._slots[due].append(page)

    def _visit(self, page: int, slot: int) -> None:
        now, web, course = slot / SLOTS_PER_DAY, self._web, self.course
        course.visits += 1
        brought_links = False
        if web.vanishes[page] <= now:
            found = VisitFound.MISSING
            if not self._is_gone[page]:
                self._pass(page, now)
                self._is_gone[page] = True
                course.add_known(web.classes[page], web.appears[page], now)
        elif self._pass(page, now):
            found = VisitFound.CHANGED
            share = web.mix.news_links if web.is_news[page] else web.mix.other_links
            brought_links = self._draw.random() < share
        else:
            found = VisitFound.SAME
        self._visited[page] = now
        self._plan(page, slot, self._policy.visited(page, now, found, brought_links))

    def _pass(self, page: int, now: float) -> bool:
        """Draw what happened to a page since its last visit; return whether it changed."""
        web, course, since, page_class = self._web, self.course, self._visited[page], self._web.classes[page]
        vanishes, per_day = web.vanishes[page], web.per_day[page]
        change = since + self._draw.expovariate(per_day)
        course.add_fresh(page_class, since, min(change, vanishes, now))
        has_changed = change < now
        if page_class == PageClass.NEWS:
            while change < min(now, vanishes):
                after = change + self._draw.expovariate(per_day)
                if change >= course.delays_from:
                    course.add_delay(now - change, is_last=after >= now)
                change = after
        return has_changed

    def _finish(self) -> None:
        """Count what lasts until the end. Changes that were not seen until then count as seen then."""
        end = float(self._web.mix.days)
        for page, is_gone in enumerate(self._is_gone):
            if not is_gone and self._web.appears[page] < end:
                self._pass(page, end)
                self.course.add_known(self._web.classes[page], self._web.appears[page], end + 1)
