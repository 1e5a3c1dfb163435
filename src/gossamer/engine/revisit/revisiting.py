"""When is a URL fetched again? The rules of `core/revisit`, with what the ledger has about the URL and its host.

After every visit the row of a URL has its state (what is believed of its rate, its class), its next time and its last
visits; the due index has that time, too. What pages of a host, of a shard and of the crawl do is counted in pools, and
how many pages there are of which rate in a census: from that follows the price of a fetch, about once per minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.ledger.tables import HOST_VISITS, SHARD_VISITS
from gossamer.core.revisit.classes import PageClass
from gossamer.core.revisit.domain_shares import IDLE_CHANCE
from gossamer.core.revisit.hints import HintKind, HintRecord, chance_of_change, hinted_wait
from gossamer.core.revisit.history import with_visit
from gossamer.core.revisit.page import DAY_S, PageState, Visit, VisitFound, after_visit, first_state, unpacked
from gossamer.core.revisit.price import MIN_PRICE, START_PRICE, Cell, Census, Pricer, cell_of, price_for
from gossamer.core.revisit.priors import Pool, prior_of
from gossamer.core.revisit.schedule import FAILED_DAYS, RevisitRule, RevisitRules, chance_of
from gossamer.core.revisit.stored import HostVisits, ShardVisits
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of, shard_prefix
from gossamer.engine.revisit.due_urls import DueUrls
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.figures import RevisitFigures
from gossamer.model.records import (
    FetchKind,
    HostRecord,
    Link,
    Outcome,
    QueuedUrl,
    Result,
    Revisit,
    Source,
    UrlId,
    UrlRecord,
    UrlState,
)

if TYPE_CHECKING:
    from gossamer.ports import Ledger

PER_PAGE_DAY = 0.25  # fetches of known pages, if no budget is set
ADJUST_S = 60.0
FRESHNESS_S = 5.0  # at least, between two estimates of it: up to 3 ms each
IDLE_STEP = 1.1  # per `ADJUST_S`
MIN_SHARED = 2.0  # visits per page within the longest interval: with fewer in the budget that is of no effect
ENROLLED_PER_TURN = 100
MAX_SEEDS = 100  # of a host, that are tried again if it cannot be reached
MAX_FRESH_S = 30 * 86_400
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
_ANSWERS = frozenset({Outcome.OK, Outcome.OTHER_SUCCESS, Outcome.NOT_MODIFIED, Outcome.REDIRECT, Outcome.CLIENT_ERROR})
_ANSWER_NAMES = frozenset(outcome.value for outcome in _ANSWERS)


class Revisits(ShardMemory):
    """Decides when the URLs of the shards that are owned are fetched again."""

    def __init__(self, rules: RevisitRules | None, due: DueUrls, ledger: Ledger) -> None:
        self._rules = rules or RevisitRules()
        self.is_on = rules is not None
        self.due = due
        self._ledger = ledger
        self.census = Census()
        self.apart = Census()  # of the pages of domains that are held: their wishes raise no price
        self._pool = Pool()  # of all pages
        # By shard: changes of its censuses since the last commit, by cell and whether it is in `apart`.
        self._moved: dict[int, dict[tuple[Cell, bool], int]] = {}
        self._pools: dict[int, Pool] = {}  # and of its pool
        self._pricer = Pricer(self._rules.schedule.classes)
        self._adjusted_at = 0.0
        self._freshness = 0.0  # as it was expected then
        self._freshness_at = 0.0
        self._fetched = 0  # known URLs, since then, but for those of domains that are held
        self._held_per_day = 0.0  # how many of these may be
        self._apart_price = START_PRICE  # for them
        self._idle_price = MIN_PRICE  # at which the others are idle, if they are
        self._owned = 0
        self._to_enroll: list[int] = []
        self._enrolled: set[int] = set()  # since the last commit
        self._enroll_after: UrlId = b""

    # -- shards -----------------------------------------------------------------------------------

    def load(self, shard: int | None) -> None:
        """Restore what was learned about the pages of a shard."""
        if not self.is_on:
            self._reopen(shard)
            return
        stored = {each.shard: each for each in self._ledger.records(SHARD_VISITS, shard)}
        for each in stored.values():
            self._add(each, 1)
        shards = range(SHARD_COUNT) if shard is None else (shard,)
        self._owned += len(shards)
        self._to_enroll += [each for each in shards if each not in stored or not stored[each].is_enrolled]
        self.due.load(shard)

    def _reopen(self, shard: int | None) -> None:
        """Record that a run fetches pages without scheduling them: the next one that fetches again looks for them."""
        for stored in list(self._ledger.records(SHARD_VISITS, shard)):
            if stored.is_enrolled:
                stored.is_enrolled = False
                self._ledger.put_record(SHARD_VISITS, stored)

    def _add(self, stored: ShardVisits, sign: int) -> None:
        for page_class, shape, days, pages in stored.cells:
            self.census.add((PageClass(page_class), shape, days), sign * pages)
        for page_class, shape, days, pages in stored.apart:
            self.apart.add((PageClass(page_class), shape, days), sign * pages)
        self._pool.merge(stored.pool if sign > 0 else stored.pool.negative())

    def save(self) -> None:
        """Add what has changed in the census to the ledger's pending changes."""
        for shard in self._moved.keys() | self._pools.keys() | self._enrolled:
            stored = self._ledger.record(SHARD_VISITS, shard_prefix(shard)) or ShardVisits(shard)
            moved = self._moved.get(shard, {})
            stored.cells = _with_moved(stored.cells, moved, is_apart=False)
            stored.apart = _with_moved(stored.apart, moved, is_apart=True)
            if shard in self._pools:
                stored.pool.merge(self._pools[shard])
            stored.is_enrolled = stored.is_enrolled or shard in self._enrolled
            self._ledger.put_record(SHARD_VISITS, stored)
        self._moved = {}
        self._pools = {}
        self._enrolled = set()

    def forget(self, shards: Collection[int]) -> None:
        """Forget shards; what was learned about them was saved."""
        if not self.is_on:
            return
        for shard in shards:
            stored = self._ledger.record(SHARD_VISITS, shard_prefix(shard))
            if stored is not None:
                self._add(stored, -1)
        self._owned -= len(shards)
        self._to_enroll = [shard for shard in self._to_enroll if shard not in shards]
        self.due.forget(shards)

    # -- turns ------------------------------------------------------------------------------------

    def take_turn(self, now: float) -> None:
        """Bring what is due into memory; schedule some of what was fetched before; adapt the price."""
        self.adjust(now)
        self.due.fill(now)
        if self._to_enroll:
            self.enroll(now)

    @property
    def next_turn_at(self) -> float | None:
        """When there is something to do; None if nothing is fetched again."""
        if not self.is_on:
            return None
        if self._to_enroll:
            return 0.0
        return self.due.next_at

    def queued_seeds(self, host: str) -> list[UrlId]:
        """Return seeds that are queued at a host: they are tried again even if they cannot be reached now."""
        if not self.is_on:
            return []
        return [url.id for url in self._ledger.read_queue(host_id(host), None, MAX_SEEDS) if url.source is Source.SEED]

    def host_failed(self, host: HostRecord, seeds: Iterable[UrlId], now: float) -> None:
        """Put off what is due at a host without address, and its seeds, which were not scheduled yet."""
        if not self.is_on:
            return
        for url_id in seeds:
            row = self._ledger.look_up(url_id)
            if row is not None and row.revisit is None:
                self._schedule_first(url_id, row, VisitFound.FAILED, now)
                self._ledger.amend(url_id, row)
        if self.due.visits_of(host.name).due_at:
            self.due.put_off(host.name, now + FAILED_DAYS * DAY_S)

    # -- the price --------------------------------------------------------------------------------

    @property
    def budget_per_day(self) -> float:
        """How many known pages the shards that are owned may fetch per day."""
        if self._rules.fetches_per_day:
            return self._rules.fetches_per_day * self._owned / SHARD_COUNT
        return PER_PAGE_DAY * max(self.pages, 1)

    @property
    def pages(self) -> int:
        """How many URLs are fetched again."""
        return self.census.pages + self.apart.pages

    def adjust(self, now: float) -> None:
        """Adapt the price of a fetch to the pages there are, now and then."""
        if not self.is_on or now - self._adjusted_at < ADJUST_S:
            return
        elapsed = (now - self._adjusted_at) / DAY_S if self._adjusted_at else 0.0
        budget = self.budget_per_day
        shares = self.due.shares
        self._held_per_day = shares.adjust(budget if self._is_shared(budget) else 0.0, self.pages, now)
        others = budget - self._held_per_day
        fetched = self._fetched - shares.take_had_before()
        self._pricer.adjust(self.census, others, elapsed, fetched, self.due.waiting)
        if shares.held:
            self._lend(others)
        else:
            self._apart_price = self._pricer.price
            self._idle_price = MIN_PRICE
        self._adjusted_at = now
        self._fetched = 0

    def _is_shared(self, budget: float) -> bool:
        """Return whether the budget bounds visits: not if the longest interval alone leads to as many."""
        schedule = self._rules.schedule
        longest = max(rule.longest_days for rule in schedule.classes.values())
        return schedule.rule is RevisitRule.ADAPTIVE and budget * longest > MIN_SHARED * max(self.pages, 1)

    def _lend(self, others: float) -> None:
        """Give domains that are held what the others have no use for, of so many visits per day."""
        rules = self._rules.schedule.classes
        price = self._pricer.price = max(self._pricer.price, self._idle_price)
        is_idle = self.census.chance_of_change(price, rules) < IDLE_CHANCE
        self._idle_price = price * IDLE_STEP if is_idle else max(self._idle_price / IDLE_STEP, MIN_PRICE)
        spare = max(others - self.census.fetches_per_day(price, rules), 0.0)
        self.due.shares.lend(spare)
        self._held_per_day += spare
        self._apart_price = max(price_for(self.apart, self._held_per_day, self._apart_price, rules), price)

    def _expected_freshness(self) -> float:
        """Return the share of the copies that is to be expected to be what the servers have."""
        rules = self._rules.schedule.classes
        fresh = 0.0
        for census, at in ((self.census, self._pricer.price), (self.apart, self._apart_price)):
            shares = census.freshness(at, rules)
            fresh += sum(shares[each] * count for each, count in census.by_class().items())
        return fresh / self.pages if self.pages else 0.0

    def figures(self, visits: int, now: float) -> RevisitFigures | None:
        """Return what is known of the pages that are fetched again; now and then in one pass over the census.

        Before the first of all visits nothing speaks for a share of fresh copies but what is believed of any page.
        """
        if not self.is_on:
            return None
        if now - self._freshness_at >= FRESHNESS_S:
            self._freshness = self._expected_freshness()
            self._freshness_at = now
        classes = self.census.by_class()
        for each, count in self.apart.by_class().items():
            classes[each] = classes.get(each, 0) + count
        return RevisitFigures(
            known=self.pages,
            per_day=self.budget_per_day,
            waiting=self.due.waiting,
            next_at=self.due.next_at or 0.0,
            freshness=self._freshness if visits else None,
            classes={each.name.lower(): count for each, count in sorted(classes.items())},
            held_domains=self.due.shares.held,
        )

    # -- visits -----------------------------------------------------------------------------------

    def begin(self, url: QueuedUrl, row: UrlRecord, result: Result, host: HostRecord, now: float) -> None:
        """Decide when a URL is fetched again whose first visit has ended; its row is about to be written."""
        before = self._ledger.look_up(url.id)
        planned = 0
        if before is not None and before.revisit is not None and before.revisit.due_at:  # a dead letter, retried
            planned = before.revisit.due_at
            self._move(shard_of(url.id), unpacked(before.revisit.state), None)
        is_wanted = url.source is Source.SEED or result.outcome in _ANSWERS
        if not is_wanted or url.source is Source.PROBE:
            self.due.plan(url.id, url.host, planned, 0)
            return
        visits = self.due.visits_of(url.host)
        modified_at = _written_time(result.last_modified, now)
        trust = visits.hints[HintKind.LAST_MODIFIED].trust
        state = self._first_state(
            url.id, row, Visit(now, VisitFound.CHANGED, False, modified_at, trust, host.rank), visits
        )
        history = with_visit(b"", now, None, result.status)
        row.revisit = Revisit(b"", planned, result.sketch, history, 0, _fresh_s(result))
        found = found_at_first(result)
        self._set_next(url.id, row, state, found, now, is_first=found is VisitFound.CHANGED)

    def _first_state(self, url_id: UrlId, row: UrlRecord, visit: Visit, visits: HostVisits) -> PageState:
        set_class = self._rules.patterns.class_of(row.url)
        prior = prior_of(set_class, visits.pool, self._pool)
        state = first_state(visit, prior, set_class=set_class, is_seed=row.source is Source.SEED)
        state = replace(state, is_apart=self._is_held(visits.host))
        if row.state is UrlState.DEAD:
            state = replace(state, misses=1)
        state = unpacked(state.packed())  # as it will be read back, so that it is found in the same cell
        self._move(shard_of(url_id), None, state)
        return state

    def _move(self, shard: int, old: PageState | None, new: PageState | None) -> None:
        """Count a page in another cell of the census."""
        moved = self._moved.setdefault(shard, {})
        for state, count in ((old, -1), (new, 1)):
            if state is not None:
                cell = cell_of(state.page_class, state.rate)
                moved[cell, state.is_apart] = moved.get((cell, state.is_apart), 0) + count
                (self.apart if state.is_apart else self.census).add(cell, count)

    def _is_held(self, host: str) -> bool:
        shares = self.due.shares
        return shares.held > 0 and shares.is_held(registrable_domain(host))

    def record(self, url: QueuedUrl, row: UrlRecord, visit: Visit, result: Result, now: float) -> None:
        """Decide when a URL is fetched again after another visit; its row is about to be written."""
        revisit = row.revisit
        assert revisit is not None
        old = unpacked(revisit.state)
        visits = self.due.visits_of(url.host)
        trust = visits.hints[HintKind.LAST_MODIFIED].trust
        visit = replace(visit, modified_at=_written_time(result.last_modified, now), modified_trust=trust)
        prior = prior_of(old.page_class if old.is_class_set else None, visits.pool, self._pool)
        state = replace(after_visit(old, visit, prior), is_apart=self._is_held(url.host))
        state = unpacked(state.packed())  # as it will be read back
        if visit.found in (VisitFound.CHANGED, VisitFound.SAME):
            self._learn(row, state, visit, visits, elapsed_s=visit.at - old.visited_at)
        self._move(shard_of(url.id), old, state)
        self._fetched += not (old.is_apart or state.is_apart)
        history = with_visit(revisit.history, now, visit.found, result.status)
        sketch = result.sketch or revisit.sketch
        row.revisit = Revisit(b"", revisit.due_at, sketch, history, 0, _fresh_s(result))
        self._set_next(url.id, row, state, visit.found, now, is_first=False)
        self.due.end(url, now)

    def _learn(self, row: UrlRecord, state: PageState, visit: Visit, visits: HostVisits, *, elapsed_s: float) -> None:
        """Record what a visit shows about the other pages of its host, and about what was claimed."""
        elapsed_days = max(elapsed_s, 0.0) / DAY_S
        pool = self._pools.setdefault(shard_of(host_id(visits.host)), Pool())
        for each in (visits.pool, self._pool, pool):
            each.add(state.rate, elapsed_days)
        has_changed = visit.found is VisitFound.CHANGED
        revisit = row.revisit
        assert revisit is not None
        for kind in HintKind:
            if revisit.claims >> kind & 1:
                visits.hints[kind].record(True, has_changed)
            elif kind is HintKind.SITEMAP and row.lastmod:
                visits.hints[kind].record(False, has_changed)
        if visit.modified_at:
            visits.hints[HintKind.LAST_MODIFIED].record(visit.modified_at > visit.at - elapsed_s, has_changed)
        if 0 < elapsed_s < revisit.fresh_s:
            visits.hints[HintKind.CACHE_CONTROL].record(False, has_changed)
        self._ledger.put_record(HOST_VISITS, visits)

    def _set_next(
        self, url_id: UrlId, row: UrlRecord, state: PageState, found: VisitFound, now: float, *, is_first: bool
    ) -> None:
        """Set the next time of a URL, in its row and in the index."""
        schedule = self._rules.schedule
        revisit = row.revisit
        assert revisit is not None
        is_feed = is_source(row)
        price = None
        if self.pages:
            price = self._apart_price if state.is_apart else self._pricer.price
        days = schedule.interval(state, price, is_feed=is_feed)
        state = replace(state, interval_days=days)
        chance = chance_of(url_id, now)
        wait = (
            schedule.first_wait(state, chance, is_feed=is_feed)
            if is_first
            else schedule.wait(state, found, chance, is_feed=is_feed)
        )
        before = revisit.due_at
        at = 0
        if wait is None:
            self._move(shard_of(url_id), state, None)
        else:
            wait = self._stretched(row, wait, schedule.rule_for(state, is_feed=is_feed).longest_days)
            at = ceil(now + wait * DAY_S)
        row.revisit = replace(revisit, state=state.packed(), due_at=at)
        self.due.plan(url_id, host_of(row.url), before, at)

    def _stretched(self, row: UrlRecord, wait: float, longest_days: float) -> float:
        """Return a wait, adjusted to how long a page says that it stays as it is, as far as that was right."""
        fresh_s = row.revisit.fresh_s if row.revisit is not None else 0
        if fresh_s <= wait * DAY_S:
            return wait
        record = self.due.visits_of(host_of(row.url)).hints[HintKind.CACHE_CONTROL]
        seen = record.same_right + record.same_wrong
        trust = record.same_right / (seen + 3 * record.same_wrong + 2.0)
        return min(wait + trust * (fresh_s / DAY_S - wait), longest_days)

    # -- claims -----------------------------------------------------------------------------------

    def hint(self, links: Iterable[Link], lastmods: Mapping[UrlId, str], kind: HintKind, now: float) -> None:
        """Use the dates that a sitemap or a feed gives for known URLs."""
        for link in links:
            lastmod = lastmods.get(link.id, "")
            row = self._ledger.look_up(link.id) if lastmod else None
            if row is None or row.revisit is None or row.state is UrlState.QUEUED:
                continue
            is_new = lastmod != row.lastmod and _written_time(lastmod, now) > unpacked(row.revisit.state).visited_at
            if is_new:
                row.lastmod = lastmod
                self._claim(link.id, row, kind, now)

    def notice(self, url_id: UrlId, now: float) -> bool:
        """Record a notice that a known URL has changed; return whether it is due sooner because of it."""
        row = self._ledger.look_up(url_id)
        if row is None or row.revisit is None or row.state is UrlState.QUEUED:
            return False
        return self._claim(url_id, row, HintKind.NOTICE, now)

    def _claim(self, url_id: UrlId, row: UrlRecord, kind: HintKind, now: float) -> bool:
        """Record that a URL is said to have changed, and move its visit if that is believed."""
        revisit = row.revisit
        assert revisit is not None
        state = unpacked(revisit.state)
        is_feed = is_source(row)
        rule = self._rules.schedule.rule_for(state, is_feed=is_feed)
        hints = self.due.visits_of(host_of(row.url)).hints[kind]
        elapsed = max(now - state.visited_at, 0.0) / DAY_S
        if kind is HintKind.NOTICE and is_credible(hints):
            days = max(rule.shortest_days - elapsed, 0.0)
        else:
            chance = chance_of_change(state.rate, elapsed, hints, True)
            days = hinted_wait(
                state.rate,
                state.interval_days,
                elapsed,
                chance,
                shortest_days=rule.shortest_days,
                longest_days=rule.longest_days,
            )
        at = ceil(now + days * DAY_S)
        is_sooner = not revisit.due_at or at < revisit.due_at
        row.revisit = replace(revisit, claims=revisit.claims | 1 << kind, due_at=at if is_sooner else revisit.due_at)
        self._ledger.amend(url_id, row)
        if is_sooner:
            self.due.plan(url_id, host_of(row.url), revisit.due_at, at)
        return is_sooner

    # -- what was fetched before ------------------------------------------------------------------

    def enroll(self, now: float) -> None:
        """Schedule some URLs that were fetched before pages were fetched again."""
        left = ENROLLED_PER_TURN
        while self._to_enroll and left > 0:
            shard = self._to_enroll[-1]
            for url_id, row in self._ledger.urls(after=self._enroll_after or shard_prefix(shard)):
                if shard_of(url_id) != shard:
                    break
                self._enroll_after = url_id
                left -= self._enroll_one(url_id, row, now)
                if left <= 0:
                    return
            self._to_enroll.pop()
            self._enrolled.add(shard)
            self._enroll_after = b""

    def _enroll_one(self, url_id: UrlId, row: UrlRecord, now: float) -> int:
        current = self._ledger.look_up(url_id)
        is_wanted = row.outcome in _ANSWER_NAMES or (row.source is Source.SEED and row.state is UrlState.DEAD)
        if current is None or not is_wanted or row.source is Source.PROBE or row.kind is FetchKind.REQUISITE:
            return 1
        if current.revisit is not None or current.state is UrlState.QUEUED:
            return 1
        self._schedule_first(url_id, current, VisitFound.CHANGED, now)
        self._ledger.amend(url_id, current)
        return 5  # a read alone takes a fifth of the time

    def _schedule_first(self, url_id: UrlId, row: UrlRecord, found: VisitFound, now: float) -> None:
        """Schedule a URL whose visit has ended without that."""
        visited = Visit(row.fetched_at, found)
        state = self._first_state(url_id, row, visited, self.due.visits_of(host_of(row.url)))
        row.revisit = Revisit(b"", 0, b"", with_visit(b"", row.fetched_at, None, row.status))
        self._set_next(url_id, row, state, found, now, is_first=found is VisitFound.CHANGED)


def _with_moved(
    stored: Iterable[tuple[int, int, int, int]], moved: Mapping[tuple[Cell, bool], int], *, is_apart: bool
) -> list[tuple[int, int, int, int]]:
    """Return the cells of a census as they are stored, after changes."""
    cells = {(PageClass(one[0]), one[1], one[2]): one[3] for one in stored}
    for (cell, is_of_apart), count in moved.items():
        if is_of_apart is is_apart:
            cells[cell] = cells.get(cell, 0) + count
    return [(int(cell[0]), cell[1], cell[2], count) for cell, count in cells.items() if count > 0]


def is_source(row: UrlRecord) -> bool:
    """Return whether a URL is a sitemap or a feed: a source of URLs, with an interval of its own."""
    return row.kind is FetchKind.SITEMAP or row.content_type in _FEED_TYPES


def found_at_first(result: Result) -> VisitFound:
    """Return what the first visit of a URL found: a page or a redirect counts as changed."""
    if result.outcome is Outcome.CLIENT_ERROR:
        return VisitFound.GONE if result.status == 410 else VisitFound.MISSING
    return VisitFound.CHANGED if result.outcome in _ANSWERS else VisitFound.FAILED


def is_credible(hints: HintRecord) -> bool:
    """Return whether notices of a host are believed: until they were wrong more often than right."""
    return hints.changed_wrong <= 3 + hints.changed_right


def _fresh_s(result: Result) -> int:
    return min(max(int(result.fresh_s), 0), MAX_FRESH_S)


def _written_time(text: str, now: float) -> float:
    from gossamer.core.content.written_dates import written_time  # 1 ms, for crawls that fetch pages again

    return written_time(text, now)
