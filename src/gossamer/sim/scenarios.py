"""Imagined webs for crawls in virtual time, and the crawls over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field
from xxhash import xxh3_128_digest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.links.first_pass import FirstPass
from gossamer.core.links.intake import Intake, IntakeRules
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.core.url.forms import link_to, links_from
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import Event
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.model.state import SeedRecord
from gossamer.ports import Ledger
from gossamer.sim.driver import ImaginedAnswer, VirtualDriver

TOKEN = "gossamer"  # noqa: S105 - the robots token
START = 1_700_000_000.0


def _as_usual(_task: FetchTask, _now: float) -> Result | None:
    return None


class ImaginedHost(Struct):
    """How one host behaves. `says` is called first: it returns the answer, or None for the usual one."""

    pages: int = 10
    robots: bytes = b""
    robots_status: int = 200
    latency_s: float = 0.05
    status: Callable[[str, float], int] = lambda _url, _now: 200
    retry_after_s: float = -1.0
    redirects_to: str = ""  # if the status is 302
    cross_links: Sequence[str] = ()
    fanout: int = 5
    address: str = "127.0.0.1"
    sent_after_s: float | None = None  # until a request is on the wire; None: half the latency
    says: Callable[[FetchTask, float], Result | None] = _as_usual


class ImaginedSites(Struct):
    """A web of hosts whose page n links to pages n*fanout+1 … and to other hosts."""

    hosts: dict[str, ImaginedHost] = field(default_factory=dict)

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        known = self.hosts.get(host)
        return ((known.address,), Outcome.OK) if known else ((), Outcome.DNS_NOT_FOUND)

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        host = self.hosts[task.host]
        result = host.says(task, now)
        if result is None and task.kind is FetchKind.ROBOTS:
            result = Result(task.id, _outcome(host.robots_status), status=host.robots_status, robots=host.robots)
        elif result is None:
            result = self._page(task, host, now)
        sent_after_s = host.latency_s / 2 if host.sent_after_s is None else host.sent_after_s
        return ImaginedAnswer(sent_after_s, host.latency_s, result)

    def _page(self, task: FetchTask, host: ImaginedHost, now: float) -> Result:
        status = host.status(task.url, now)
        result = Result(task.id, _outcome(status), status=status, content_type="text/html", content_bytes=1000)
        result.wire_bytes = 1000
        result.content_hash = xxh3_128_digest(task.url.encode())  # every page has new content
        if status != 200:
            result.retry_after_s = host.retry_after_s
            result.redirect_to = host.redirects_to if status == 302 else ""
            return result
        number = int(task.url.rpartition("/")[2] or 0)
        first = number * host.fanout + 1
        hrefs = [f"/{n}" for n in range(first, min(first + host.fanout, host.pages))]
        result.links = links_from(task.url, [*hrefs, *(host.cross_links if number == 0 else ())])
        return result


def _outcome(status: int) -> Outcome:
    if status == 429:
        return Outcome.RATE_LIMITED
    return {2: Outcome.OK, 3: Outcome.REDIRECT, 4: Outcome.CLIENT_ERROR, 5: Outcome.SERVER_ERROR}[status // 100]


class Scenario(Struct):
    """A crawl over an imagined web, ready to run."""

    web: ImaginedSites
    seeds: Sequence[str]
    limits: FrontierLimits = field(default_factory=FrontierLimits)
    delay_s: float = 1.0
    host_connections: int = 1
    pace_rules: Sequence[PaceRule] = ()
    order: QueueOrder = QueueOrder.BREADTH
    reach: Reach = Reach.ANY
    target_domains: int | None = None
    rules: CrawlRules = field(default_factory=CrawlRules)
    is_https_first: bool = False
    seed_rules: Sequence[SeedRecord] = ()  # of seeds that have their own
    was_clean: bool = True
    ledger: Ledger = field(default_factory=MemoryLedger)
    events: list[Event] = field(default_factory=list)
    started_at: float = START

    def engine(self) -> Crawl:
        """Return the crawl, before anything of an earlier run is restored."""
        how = ordering(self.order)
        pace = Pace(self.delay_s, self.host_connections, self.pace_rules)
        intake = Intake(
            Scope(self.reach, excludes=()),
            how,
            self.limits,
            IntakeRules(remembers=not self.rules.cooldown_s),
            first_pass=FirstPass(self.target_domains) if self.target_domains else None,
        )
        emitter = EventEmitter(self.events.append, self.started_at)
        return Crawl(self.rules, Frontier(self.limits, pace, how, TOKEN), intake, self.ledger, emitter)

    def prepare(self) -> tuple[Crawl, VirtualDriver]:
        crawl = self.engine()
        crawl.restore(self.started_at, was_clean=self.was_clean)
        links = [link_to(seed) for seed in self.seeds]
        guesses = frozenset(link.id for link in links) if self.is_https_first else frozenset()
        rules = {link_to(seed.url).id: seed for seed in self.seed_rules}
        crawl.add_seeds(links, self.started_at, https_first=guesses, rules=rules)
        return crawl, VirtualDriver(crawl, self.web, self.started_at)

    def run(self, *, max_wait_s: float = 300.0) -> tuple[str, Crawl, VirtualDriver]:
        crawl, driver = self.prepare()
        return driver.run(max_wait_s=max_wait_s), crawl, driver


def many_hosts(count: int, pages: int, **traits: object) -> ImaginedSites:
    """Return a web of equal hosts, each with its own address, each linking to the next."""
    sites = ImaginedSites()
    for number in range(count):
        following = f"http://h{(number + 1) % count}.test/"
        host = ImaginedHost(
            pages=pages, cross_links=(following,), address=f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        )
        for name, value in traits.items():
            setattr(host, name, value)
        sites.hosts[f"h{number}.test"] = host
    return sites
