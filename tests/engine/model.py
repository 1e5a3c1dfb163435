"""The crawl under random facts in random order, and what must hold after each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.links.intake import Intake, IntakeRules
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.politeness.pace import Pace
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, link_to, origin_of, path_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import REQUEST_EVENTS, Event, outcome_of
from gossamer.model.figures import is_error
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result, UrlId, UrlRecord, UrlState
from gossamer.ports import Ledger

START = 1_700_000_000.0
IDLE_HOSTS = 1
ADDRESSES = {
    "a.test": "10.0.0.1",
    "www.a.test": "10.0.0.2",
    "x.a.test": "10.0.0.3",
    "b.test": "10.0.0.1",
    "c.test": "10.0.0.3",
    "d.test": "10.0.0.2",
}
ORIGINS = [f"http://{host}" for host in ADDRESSES] + ["https://a.test", "http://a.test:8080", "http://b.test:81"]
ROBOTS = [b"", b"User-agent: *\nDisallow: /1", b"User-agent: *\nCrawl-delay: 5", b"User-agent: *\nDisallow: /"]

origins = st.sampled_from(ORIGINS)
urls = st.builds(lambda origin, path: f"{origin}/{path}", origins, st.integers(0, 30))
url_lists = st.lists(urls, max_size=8)
page_outcomes = st.sampled_from(
    [Outcome.OK] * 8
    + [
        Outcome.REDIRECT,
        Outcome.REDIRECT,
        Outcome.NOT_MODIFIED,
        Outcome.TYPE_REFUSED,
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.TIMEOUT,
        Outcome.DISCONNECTED,
        Outcome.TLS_ERROR,
        Outcome.WORKER_LOST,
        Outcome.WORKER_LOST,
    ]
)
robots_outcomes = st.sampled_from(
    [Outcome.OK] * 6
    + [
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.TIMEOUT,
        Outcome.CONNECT_FAILED,
        Outcome.REDIRECT,
        Outcome.REDIRECT,
        Outcome.REDIRECT,
        Outcome.WORKER_LOST,
    ]
)
limits = st.builds(
    FrontierLimits,
    connections=st.sampled_from([1, 2, 3, 8]),
    max_pages=st.sampled_from([None, None, None, 5]),
    max_pages_per_host=st.sampled_from([None, None, 2, 5]),
    max_pages_per_domain=st.sampled_from([None, None, 1, 4]),
    address_connections=st.sampled_from([0, 1, 2]),
    domain_connections=st.sampled_from([0, 1, 2]),
    max_hosts_in_memory=st.sampled_from([1, 2, 3, 50]),
    max_idle_hosts=st.just(IDLE_HOSTS),
    max_urls_in_memory=st.sampled_from([1, 1000]),
)


@dataclass
class Asked:
    """The last request to a host, and the pace that followed from it."""

    at: float
    delay_s: float


class CrawlModel(RuleBasedStateMachine):
    """What a driver could do to a crawl, and what the world would see of it."""

    @initialize(
        limits=limits,
        delay_s=st.sampled_from([0.0, 1.0]),
        connections=st.sampled_from([1, 1, 2]),
        order=st.sampled_from(QueueOrder),
        max_queued=st.sampled_from([None, None, None, 10]),
        seeds=st.lists(urls, min_size=1, max_size=12),
    )
    def begin(
        self,
        *,
        limits: FrontierLimits,
        delay_s: float,
        connections: int,
        order: QueueOrder,
        max_queued: int | None,
        seeds: list[str],
    ) -> None:
        self.crawl_rules = CrawlRules(max_queued=max_queued)
        self.limits, self.delay_s, self.host_connections, self.order = limits, delay_s, connections, order
        self.now = START
        self.ledger = self.new_ledger()
        self.out: dict[int, FetchTask] = {}
        self.unsent: set[int] = set()
        self.resolving: list[str] = []
        self.asked: dict[str, Asked] = {}
        self.held: dict[str, float] = {}
        self.robots: dict[str, tuple[bytes, float]] = {}  # of an origin: the rules, and until when they hold
        self.led_to: set[str] = set()  # hosts that robots.txt of another led to
        self.pages: Counter[str] = Counter()
        self.domain_pages: Counter[str] = Counter()
        self.recorded = [0, 0]  # fetches and errors, by the events
        self.start_crawl(was_clean=True)
        self.crawl.add_seeds([link_to(seed) for seed in seeds], self.now)

    def new_ledger(self) -> Ledger:
        return MemoryLedger()

    def start_crawl(self, *, was_clean: bool) -> None:
        how = ordering(self.order)
        frontier = Frontier(self.limits, Pace(self.delay_s, self.host_connections), how, "gossamer")
        intake = Intake(Scope(Reach.ANY, excludes=()), how, self.limits, IntakeRules())
        emitter = EventEmitter(self.count_event, self.now)
        self.crawl = Crawl(self.crawl_rules, frontier, intake, self.ledger, emitter)
        self.crawl.restore(self.now, was_clean=was_clean)

    def count_event(self, event: Event) -> None:
        if event.event in REQUEST_EVENTS:
            self.recorded[0] += 1
            self.recorded[1] += is_error(outcome_of(event), is_robots=event.kind == "robots")

    # -- what the driver does ---------------------------------------------------------------------

    @rule(most=st.sampled_from([1, 2, 1 << 30]))
    def take_tasks(self, most: int) -> None:
        for task in self.crawl.tasks(self.now, most):
            self.check_order(task)
            self.out[task.id] = task
            if task.report_sent:
                self.unsent.add(task.id)
            self.asked[task.host] = Asked(self.now, self.pace_of(task.host))
        self.resolving += self.crawl.take_resolves()
        assert len(self.out) + len(self.resolving) <= self.limits.connections

    @precondition(lambda self: self.unsent)
    @rule(data=st.data())
    def notice_sent(self, data: st.DataObject) -> None:
        task = self.out[data.draw(st.sampled_from(sorted(self.unsent)))]
        self.unsent.discard(task.id)
        self.crawl.mark_sent(task.id, self.now, self.now)
        self.note_asked(task, self.now)

    @precondition(lambda self: any(task.kind is not FetchKind.ROBOTS for task in self.out.values()))
    @rule(data=st.data(), outcome=page_outcomes, links=url_lists, wait_s=st.sampled_from([-1.0, 30.0, 1000.0]))
    def end_page(self, data: st.DataObject, outcome: Outcome, links: list[str], wait_s: float) -> None:
        pages = sorted(task.id for task in self.out.values() if task.kind is not FetchKind.ROBOTS)
        task = self.out[data.draw(st.sampled_from(pages))]
        sent_at = data.draw(st.floats(task.issued_at, self.now))
        result = Result(task.id, outcome, status=200, retry_after_s=wait_s)
        if outcome is Outcome.REDIRECT:
            result.redirect_to = data.draw(urls)
        elif outcome is Outcome.OK:
            result.links = [link_to(link) for link in dict.fromkeys(links)]
        if outcome is Outcome.OK:
            self.pages[task.host] += 1
            self.domain_pages[registrable_domain(task.host)] += 1
        self.end(task, result, sent_at)

    @precondition(lambda self: any(task.kind is FetchKind.ROBOTS for task in self.out.values()))
    @rule(data=st.data(), outcome=robots_outcomes, body=st.sampled_from(ROBOTS), leads_to=origins)
    def end_robots(self, data: st.DataObject, outcome: Outcome, body: bytes, leads_to: str) -> None:
        robots = sorted(task.id for task in self.out.values() if task.kind is FetchKind.ROBOTS)
        self.answer_robots(self.out[data.draw(st.sampled_from(robots))], outcome, body, leads_to)

    def answer_robots(self, task: FetchTask, outcome: Outcome, body: bytes, target: str) -> None:
        result = Result(task.id, outcome, status=200, robots=body if outcome is Outcome.OK else b"")
        if outcome is Outcome.REDIRECT:
            result.redirect_to = target + "/robots.txt"
            self.led_to.add(host_of(result.redirect_to))
        owner = self.owner_of(task)
        if outcome in (Outcome.OK, Outcome.CLIENT_ERROR) or (outcome is Outcome.REDIRECT and task.hops >= 5):
            # A file that was had may stand in for another day, where it cannot be renewed.
            days = 2 if outcome is Outcome.OK else 1
            self.robots[owner] = (result.robots, self.now + days * 24 * 3600)
        self.end(task, result, self.now)

    def owner_of(self, task: FetchTask) -> str:
        """Return the origin whose robots.txt a task asks for, redirects or not."""
        out = self.crawl.frontier._outstanding.get(task.id)
        assert out is not None
        assert out.robots is not None
        return out.robots.origin

    def end(self, task: FetchTask, result: Result, sent_at: float) -> None:
        del self.out[task.id]
        self.unsent.discard(task.id)
        result.sent_at, result.finished_at = sent_at, self.now
        if result.outcome is Outcome.RATE_LIMITED or (
            result.outcome is Outcome.SERVER_ERROR and result.retry_after_s > 0
        ):
            wait_s = result.retry_after_s if result.retry_after_s > 0 else 2.0
            self.held[task.host] = max(self.held.get(task.host, 0.0), self.now + wait_s)
        self.note_asked(task, self.now if result.outcome is Outcome.WORKER_LOST else sent_at)
        self.crawl.complete(result, self.now)

    def note_asked(self, task: FetchTask, at: float) -> None:
        last = self.asked[task.host]
        pace_s = self.pace_of(task.host)
        if at + pace_s > last.at + last.delay_s:
            self.asked[task.host] = Asked(at, pace_s)

    def pace_of(self, host: str) -> float:
        """Return the least delay of a host by what is known of it now."""
        known = [
            body for origin, (body, until) in self.robots.items() if host_of(origin + "/") == host and self.now < until
        ]
        return max(self.delay_s, 5.0 if any(b"Crawl-delay" in body for body in known) else 0.0)

    @precondition(lambda self: self.resolving)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(
            [Outcome.OK] * 6 + [Outcome.DNS_FAILED, Outcome.DNS_NOT_FOUND, Outcome.BLOCKED_ADDRESS]
        ),
        ttl_s=st.sampled_from([0.0, 2.0, 3600.0]),
    )
    def resolve(self, data: st.DataObject, outcome: Outcome, ttl_s: float) -> None:
        host = self.resolving.pop(data.draw(st.integers(0, len(self.resolving) - 1)))
        if outcome is Outcome.OK:
            self.crawl.learn_address(host, (ADDRESSES[host],), self.now + ttl_s + 1.0, self.now)
        else:
            self.crawl.fail_address(host, outcome, "no", self.now)

    @rule(data=st.data(), steps=st.integers(1, 12), links=st.lists(url_lists, min_size=1, max_size=4))
    def crawl_on(self, data: st.DataObject, steps: int, links: list[list[str]]) -> None:
        """Let most things go well for a while, so that the odd ones meet a crawl in full swing."""
        for step in range(steps):
            self.take_tasks(1 << 30)
            for host in self.resolving:
                self.crawl.learn_address(host, (ADDRESSES[host],), self.now + 50.0, self.now)
            self.resolving.clear()
            for task_id in sorted(self.unsent):
                if not data.draw(st.booleans()):
                    continue
                self.unsent.discard(task_id)
                self.crawl.mark_sent(task_id, self.now, self.now)
                self.note_asked(self.out[task_id], self.now)
            flying = list(self.out.values())
            first = data.draw(st.integers(0, 1))
            for task in flying[first : first + data.draw(st.integers(0, 4))]:
                if task.kind is FetchKind.ROBOTS:
                    self.answer_robots(task, Outcome.OK, ROBOTS[step % 3], "")
                else:
                    self.finish_page(task, links[step % len(links)], self.now)
            self.wait_for_wakeup()

    def finish_page(self, task: FetchTask, links: list[str], sent_at: float) -> None:
        result = Result(task.id, Outcome.OK, status=200, links=[link_to(link) for link in dict.fromkeys(links)])
        self.pages[task.host] += 1
        self.domain_pages[registrable_domain(task.host)] += 1
        self.end(task, result, sent_at)

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 3.0, 60.0, 4000.0, 90_000.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_for_wakeup(self) -> None:
        wakeup = self.crawl.next_wakeup()
        if wakeup is not None:
            self.now = max(self.now, wakeup)

    @rule(links=url_lists)
    def add_seeds(self, links: list[str]) -> None:
        self.crawl.add_seeds([link_to(link) for link in links], self.now)

    @rule(host=st.sampled_from(sorted(ADDRESSES)))
    def hand_over_a_shard(self, host: str) -> None:
        shard = shard_of(host_id(host))
        for task in [task for task in self.out.values() if shard_of(host_id(task.host)) == shard]:
            self.note_asked(task, self.now)
            del self.out[task.id]
            self.unsent.discard(task.id)
        self.crawl.release([shard], self.now)
        self.crawl.take(shard, self.now)

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        if was_clean:
            self.crawl.give_back(self.crawl.tasks_out(), self.now)
        for task in self.out.values():
            self.note_asked(task, self.now)
        self.out.clear()
        self.unsent.clear()
        self.resolving.clear()
        self.crawl.save_state(0.0, 0.0, self.now)
        self.reopen_ledger()
        self.start_crawl(was_clean=was_clean)

    def reopen_ledger(self) -> None:
        self.ledger.commit()

    # -- what must hold ---------------------------------------------------------------------------

    def check_order(self, task: FetchTask) -> None:
        busy = [other for other in self.out.values() if other.host == task.host]
        domain = registrable_domain(task.host)
        assert len(busy) < self.host_connections, "too many at a host"
        assert not any(other.id in self.unsent for other in busy), "the one before is not sent yet"
        if self.limits.domain_connections:
            beside = [other for other in self.out.values() if registrable_domain(other.host) == domain]
            assert len(beside) < self.limits.domain_connections, "too many at a domain"
        if self.limits.address_connections:
            beside = [other for other in self.out.values() if other.addresses[0] == task.addresses[0]]
            assert len(beside) < self.limits.address_connections, "too many at an address"
        assert task.addresses == (ADDRESSES[task.host],)
        last = self.asked.get(task.host)
        if last is not None:
            # What robots.txt no longer asks for may be forgotten. A nanosecond of a large number is lost in rounding.
            due_at = last.at + min(last.delay_s, self.pace_of(task.host)) - 1e-6
            assert self.now >= due_at, f"too early: {task.url} at {self.now}, {last}"
        assert self.now >= self.held.get(task.host, 0.0) - 1e-6, "held by a refusal"
        assert host_of(task.url) == task.host
        if task.kind is not FetchKind.ROBOTS:
            self.check_page_task(task)

    def check_page_task(self, task: FetchTask) -> None:
        rules, until = self.robots.get(origin_of(task.url), (b"", 0.0))
        assert self.now < until, "robots.txt is not known"
        assert not (b"Disallow: /1" in rules and path_of(task.url).startswith("/1")), "forbidden"
        assert not rules.endswith(b"Disallow: /"), "forbidden"
        assert all(other.url_id != task.url_id for other in self.out.values()), "twice at once"
        record = self.ledger.look_up(task.url_id)
        assert record is not None
        assert record.state is UrlState.QUEUED
        if task.kind is FetchKind.PAGE:
            self.check_limits(task)

    def check_limits(self, task: FetchTask) -> None:
        pages_out = [other for other in self.out.values() if other.kind is FetchKind.PAGE]
        if self.limits.max_pages is not None:
            assert self.pages.total() + len(pages_out) < self.limits.max_pages
        per_host, per_domain = self.limits.max_pages_per_host, self.limits.max_pages_per_domain
        domain = registrable_domain(task.host)
        if per_host is not None:
            assert self.pages[task.host] + sum(other.host == task.host for other in pages_out) < per_host
        if per_domain is not None:
            beside = sum(registrable_domain(other.host) == domain for other in pages_out)
            assert self.domain_pages[domain] + beside < per_domain

    @invariant()
    def nothing_is_lost(self) -> None:
        waiting: Counter[str] = Counter()
        for _, record in self.rows():
            if record.state is UrlState.QUEUED:
                waiting[host_of(record.url)] += 1
        frontier = self.crawl.frontier
        assert frontier.counts.queued == waiting.total()
        for name in ADDRESSES:
            live = frontier.record_of(name) or self.ledger.host(name)
            assert (live.queued if live else 0) == waiting[name], name
        assert frontier.counts.pages == self.pages.total()

    @invariant()
    def fetches_and_errors_agree(self) -> None:
        totals, frontier = self.crawl.totals, self.crawl.frontier
        assert totals.errors <= totals.fetches
        assert self.recorded == [totals.fetches, totals.errors]
        records = [frontier.record_of(name) or self.ledger.host(name) for name in ADDRESSES]
        assert sum(record.fetches for record in records if record) == totals.fetches
        assert sum(record.errors for record in records if record) == totals.errors

    def rows(self) -> list[tuple[UrlId, UrlRecord]]:
        return list(self.ledger.urls())

    @invariant()
    def memory_is_bounded(self) -> None:
        frontier = self.crawl.frontier
        busy = len(frontier._hosts) - len(frontier._table.idle)
        assert len(frontier._table.idle) <= IDLE_HOSTS
        # Beyond the bound only those that have work again, and those that robots.txt of another host led to.
        assert busy <= self.limits.max_hosts_in_memory + IDLE_HOSTS + len(self.led_to)
        for host in frontier._hosts.values():
            assert len(host.head) <= 2 * frontier._table.head_size() + 8
            ids = [entry[2] for entry in host.head] + [entry[2] for entry in host.deferred]
            assert len(set(ids)) == len(ids), "a URL stands twice in memory"

    @invariant()
    def states_are_counted_right(self) -> None:
        frontier = self.crawl.frontier
        assert Counter(host.state for host in frontier._hosts.values()) == +Counter(
            dict(enumerate(frontier._bench.count))
        )

    @precondition(lambda self: not self.out and not self.resolving)
    @rule()
    def is_never_stuck(self) -> None:
        self.take_tasks(1 << 30)
        if self.out or self.resolving:
            return
        why = self.crawl.why_over(self.now, float("inf"))
        if why is None:
            wakeup = self.crawl.next_wakeup()
            assert wakeup is not None, "stuck"
            assert wakeup > self.now, "a wakeup that is over brings nothing"
        elif why == "exhausted":
            assert self.crawl.frontier.counts.queued == 0

    def teardown(self) -> None:
        if not hasattr(self, "crawl"):
            return
        for _ in range(3000):
            self.take_tasks(1 << 30)
            for task in list(self.out.values()):
                if task.kind is FetchKind.ROBOTS:
                    self.answer_robots(task, Outcome.OK, b"", "")
                else:
                    self.finish_page(task, [], self.now)
            for host in self.resolving:
                self.crawl.learn_address(host, (ADDRESSES[host],), self.now + 3600.0, self.now)
            self.resolving.clear()
            self.nothing_is_lost()
            why = self.crawl.why_over(self.now, float("inf"))
            if why is not None:
                break
            wakeup = self.crawl.next_wakeup()
            self.now = max(self.now, wakeup) if wakeup is not None else self.now
        assert why is not None, "never over"
        if why == "exhausted":
            assert self.crawl.frontier.counts.queued == 0
        elif why == "budgets":
            self.check_budgets_are_used_up()

    def check_budgets_are_used_up(self) -> None:
        per_host, per_domain = self.limits.max_pages_per_host, self.limits.max_pages_per_domain
        for _, record in self.rows():
            if record.state is UrlState.QUEUED:
                host = host_of(record.url)
                is_host_spent = per_host is not None and self.pages[host] >= per_host
                is_domain_spent = per_domain is not None and self.domain_pages[registrable_domain(host)] >= per_domain
                assert is_host_spent or is_domain_spent, record.url
