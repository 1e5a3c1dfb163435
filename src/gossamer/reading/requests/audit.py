"""Did a crawl respect robots.txt and its pace? Decided only from what it recorded.

Every request is checked against what was in force when it was made: the rules of the archived
robots.txt of its origin, the delay that its run promised, the Crawl-delay of that file, the
windows of Retry-After, the opt-outs. What cannot be proved counts against the crawl.
A request counts at the time of its task: what was learned while it was in flight could not be
known. Costs: 5 µs per request and one read per robots.txt; memory: a few hundred bytes per
host, and a number per request in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from pathlib import Path

from msgspec import Struct, field

from gossamer.core.politeness.networks import network_of
from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S
from gossamer.core.robots.answers import (
    LAST_GOOD_S,
    ROBOTS_TTL_S,
    UNREACHABLE_TTL_S,
    is_absent,
    is_followed,
    leads_to_robots,
)
from gossamer.core.robots.rules import ALLOW_ALL, RobotsRules
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, path_of
from gossamer.model.events import Promises
from gossamer.model.records import Outcome
from gossamer.reading.requests.requests_made import (
    Fact,
    OptOut,
    PromisesChanged,
    RunStarted,
    SentRequest,
    facts_of_nodes,
)
from gossamer.reading.requests.robots_captures import RobotsCaptures
from gossamer.reading.view import CrawlView
from gossamer.settings.promises import promises_of
from gossamer.telemetry.event_log import read_events

SLACK_S = 0.001  # times are floating-point numbers, some of them read from a WARC date
OPT_OUT_SPREAD_S = 2.0  # an opt-out that one node records is known to the others within this
NOTICED_S = 1.0  # until a task that was made before another domain had work is sent
MAX_SHOWN = 1000
_REFUSALS = frozenset({Outcome.RATE_LIMITED.value, Outcome.SERVER_ERROR.value})


class Breach(StrEnum):
    """The rules that a crawler can break."""

    ROBOTS_NOT_FETCHED = "robots_not_fetched"
    ROBOTS_DISALLOWED = "robots_disallowed"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    ROBOTS_EXPIRED = "robots_expired"
    ROBOTS_NOT_SHOWN = "robots_not_shown"  # requested, but its text is not stored
    ROBOTS_ELSEWHERE = "robots_elsewhere"  # a redirect was followed to what is no robots.txt of the other host
    TOO_SOON = "too_soon"
    CRAWL_DELAY = "crawl_delay"
    RETRY_AFTER = "retry_after"
    REPEATED = "repeated"
    TOO_MANY_AT_ONCE = "too_many_at_once"
    ADDRESS_CROWD = "address_crowd"  # too many concurrent requests to one IP address
    DOMAIN_CROWD = "domain_crowd"  # to one domain, while others had work
    OPTED_OUT = "opted_out"
    DOMAIN_PACE = "domain_pace"
    ADDRESS_PACE = "address_pace"


class Violation(Struct, frozen=True):
    """A request that should not have been made, or not at that time."""

    breach: Breach
    at: float
    host: str
    url: str
    detail: str


class AuditReport(Struct, kw_only=True):
    """The result of an audit."""

    requests: int = 0
    robots_requests: int = 0
    hosts: int = 0
    runs: int = 0
    min_gap_s: float | None = None  # between two requests to one host
    breaches: dict[str, int] = {}
    violations: list[Violation] = []  # the first 1,000
    notes: list[str] = []
    own_hosts: dict[str, int] = {}  # requests that robots.txt forbids or would have to come first for, at own hosts
    is_whole: bool = True  # all events could be read

    @property
    def is_compliant(self) -> bool:
        """Whether no rule was broken, as far as can be proven."""
        return self.is_whole and not self.breaches


class _Robots(Struct):
    """robots.txt of an origin, as known from `known_at` on."""

    asked_at: float
    known_at: float
    expires_at: float
    rules: RobotsRules | None  # None: unreachable, or not stored
    is_unreachable: bool = False
    good_until: float = 0.0
    hops: int = 0  # redirects so far; 0 once it was answered
    asked_url: str = ""  # which redirects
    run: tuple[int, float] = (0, 0.0)  # that asked for it
    before: _Robots | None = None


class _Host(Struct):
    last_sent_at: float = 0.0
    last_url: str = ""
    open_until: list[float] = field(default_factory=list)
    refused_at: float = 0.0
    parked_until: float = 0.0
    origins: dict[str, _Robots] = field(default_factory=dict)

    @property
    def crawl_delay_s(self) -> float:
        delays = (robots.rules.crawl_delay_s or 0.0 for robots in self.origins.values() if robots.rules)
        return max(delays, default=0.0)


def audit_crawl(crawl: CrawlView, token: str) -> AuditReport:
    captures = RobotsCaptures(crawl, token)
    folders = crawl.folders.events
    events = (event for folder in folders for event in read_events(folder))
    captures.open({event.target for event in events if event.kind == "robots" and event.target})
    spread_s = OPT_OUT_SPREAD_S if len(folders) > 1 else 0.0
    auditor = Auditor(
        promises_of(crawl.settings), captures, masks_queries=crawl.settings.mask_queries, spread_s=spread_s
    )
    report = auditor.check(facts_of_nodes(folders))
    for note in _missing_events(crawl.state.event_ends, folders):
        report.is_whole = False
        report.notes.append(f"INCOMPLETE: {note}")
    if crawl.folders.hint:
        report.is_whole = False
        report.notes.append(f"INCOMPLETE: without the events {crawl.folders.hint}")
    if crawl.is_running:
        report.notes.append("the crawl is running: what happened in the last seconds is not in it")
    return report


def _missing_events(ends: Mapping[str, int], folders: Sequence[Path]) -> Iterator[str]:
    """Yield which event files are not there, or shorter than the ledger says: requests may have been in them."""
    for name, end in ends.items():
        stem = name.removesuffix(".jsonl")
        sizes = [path.stat().st_size for folder in folders for path in folder.glob(f"{stem}*.jsonl")]  # or migrated
        if not sizes:
            yield f"events/{name} is missing"
        elif max(sizes) < end:
            yield f"events/{name} has {max(sizes):,} bytes of at least {end:,}"


class Auditor:
    """Checks the requests of a crawl, one after the other."""

    def __init__(
        self, promises: Promises, captures: RobotsCaptures, *, masks_queries: bool = False, spread_s: float = 0.0
    ) -> None:
        self._captures = captures
        self._spread_s = spread_s  # until all nodes know of an opt-out
        self._masks_queries = masks_queries
        self._promises = promises
        self._pace = _pace_of(promises)
        self._hosts: dict[str, _Host] = {}
        self._last_at: dict[str, float] = {}  # by domain and by address, if these have a pace
        self._address_ends: dict[str, list[float]] = {}  # heaps: when the requests in flight end
        self._domain_ends: dict[str, list[float]] = {}  # likewise
        self._flights: list[tuple[float, float, str]] = []  # a heap: when requests end, when they began, their domain
        self._opted_out: dict[str, dict[int, float]] = {}  # since when, by name and node
        self._breaches: Counter[str] = Counter()
        self._now = 0.0
        self._report = AuditReport()

    def check(self, facts: Iterable[Fact]) -> AuditReport:
        """Check all requests; return the report."""
        for fact in facts:
            match fact:
                case RunStarted():
                    self._start_run(fact)
                case PromisesChanged():
                    self._promises = fact.promises
                    self._pace = _pace_of(fact.promises)
                case OptOut():
                    self._record_opt_out(fact)
                case _:
                    self._check_request(fact)
        self._report.hosts = len(self._hosts)
        self._report.breaches = dict(self._breaches)
        return self._report

    def _start_run(self, run: RunStarted) -> None:
        self._report.runs += 1
        self._end_opt_outs(list(self._opted_out), run.node)  # each run records its own
        if run.promises is not None:
            self._promises = run.promises
            self._pace = _pace_of(run.promises)
        if run.at < self._now:
            self._report.notes.append(f"the clock was set back by {self._now - run.at:.0f} s before run {run.at:.0f}")
            for host in self._hosts.values():
                host.last_sent_at = 0.0
                host.parked_until = 0.0
                host.open_until.clear()
            self._address_ends.clear()
            self._domain_ends.clear()
            self._flights.clear()
        self._now = run.at

    def _record_opt_out(self, fact: OptOut) -> None:
        if fact.is_over:
            self._end_opt_outs([fact.name], fact.node)
        else:
            self._opted_out.setdefault(fact.name, {}).setdefault(fact.node, fact.at)

    def _end_opt_outs(self, names: Iterable[str], node: int) -> None:
        for name in names:
            self._opted_out.get(name, {}).pop(node, None)
            if not self._opted_out.get(name):
                self._opted_out.pop(name, None)

    # -- one request ------------------------------------------------------------------------------

    def _check_request(self, request: SentRequest) -> None:
        host = self._hosts.setdefault(request.host, _Host())
        self._now = max(self._now, request.sent_at)
        self._report.requests += request.requests
        self._check_opt_out(request)
        if not request.is_robots and not self._is_own(host, request):
            self._check_robots(host, request)
        self._check_pace(host, request)
        self._check_crowd(host, request)
        self._check_address_crowd(request)
        self._check_domain_crowd(request)
        self._check_neighbours(request)
        if request.is_robots:
            self._report.robots_requests += 1
            self._check_robots_url(request)
            self._learn_robots(request)
        if request.retry_after_s > 0 and request.outcome in _REFUSALS:
            host.refused_at = request.ended_at
            host.parked_until = request.ended_at + min(request.retry_after_s, MAX_RETRY_AFTER_S)

    def _add_violation(self, breach: Breach, request: SentRequest, detail: str) -> None:
        self._breaches[breach.value] += 1
        if len(self._report.violations) < MAX_SHOWN:
            self._report.violations.append(Violation(breach, request.sent_at, request.host, request.url, detail))

    def _check_opt_out(self, request: SentRequest) -> None:
        if not self._opted_out:
            return
        for name in (request.host, registrable_domain(request.host)):
            since = min(self._opted_out.get(name, {}).values(), default=None)
            if since is not None and request.issued_at > since + self._spread_s:
                self._add_violation(
                    Breach.OPTED_OUT, request, f"{name} had opted out {request.issued_at - since:.1f} s before"
                )
                return

    def _is_own(self, host: _Host, request: SentRequest) -> bool:
        """Return whether robots.txt does not bind a request, as its run announced; list it if that mattered."""
        if request.host not in self._promises.own_hosts:
            return False
        robots = host.origins.get(request.origin)
        if robots is None or robots.rules is None or not robots.rules.decide(path_of(request.url)).is_allowed:
            own = self._report.own_hosts
            own[request.host] = own.get(request.host, 0) + 1
        return True

    # -- robots.txt -------------------------------------------------------------------------------

    def _check_robots(self, host: _Host, request: SentRequest) -> None:
        robots = host.origins.get(request.origin)
        if robots is not None and request.issued_at < robots.asked_at:
            robots = robots.before
        if robots is None or robots.expires_at < request.issued_at:
            robots = self._unrecorded(host, request) or robots
        if robots is None:
            self._add_violation(
                Breach.ROBOTS_NOT_FETCHED, request, f"robots.txt of {request.origin} was not requested before"
            )
        elif request.sent_at < robots.known_at:
            self._add_violation(
                Breach.ROBOTS_NOT_FETCHED, request, f"robots.txt of {request.origin} was not answered yet"
            )
        elif robots.is_unreachable and request.issued_at > robots.good_until:
            self._add_violation(
                Breach.ROBOTS_UNREACHABLE, request, f"robots.txt of {request.origin} could not be reached"
            )
        elif robots.expires_at + SLACK_S < request.issued_at:
            age_s = request.issued_at - robots.known_at
            self._add_violation(Breach.ROBOTS_EXPIRED, request, f"robots.txt was {age_s / 3600:.1f} h old")
        elif robots.rules is None:
            self._add_violation(
                Breach.ROBOTS_NOT_SHOWN, request, f"robots.txt of {request.origin} is not in the archive"
            )
        else:
            self._check_rules(robots.rules, request)

    def _check_rules(self, rules: RobotsRules, request: SentRequest) -> None:
        path = path_of(request.url)
        if self._masks_queries:
            path = path.partition("?")[0]  # the values are not recorded: only the path can be checked
        decision = rules.decide(path)
        if not decision.is_allowed:
            self._add_violation(Breach.ROBOTS_DISALLOWED, request, f"line {decision.line_number}: {decision.line}")

    def _unrecorded(self, host: _Host, request: SentRequest) -> _Robots | None:
        """Return a robots.txt that a killed run had archived, but not recorded in an event."""
        found = self._captures.unrecorded(request.origin, request.sent_at)
        if found is None:
            return None
        date, rules = found
        robots = _Robots(date, date, date + ROBOTS_TTL_S, rules, good_until=date + LAST_GOOD_S)
        host.origins[request.origin] = robots
        host.last_sent_at = max(host.last_sent_at, date)
        return robots

    def _check_robots_url(self, request: SentRequest) -> None:
        owner = self._hosts.get(host_of(request.origin + "/"))
        robots = owner.origins.get(request.origin) if owner is not None else None
        before_url = robots.asked_url if robots is not None and robots.hops else ""
        if not leads_to_robots(before_url or request.origin + "/", request.url):
            detail = f"redirected to by {before_url or request.origin}: at another host only /robots.txt is requested"
            self._add_violation(Breach.ROBOTS_ELSEWHERE, request, detail)

    def _learn_robots(self, request: SentRequest) -> None:
        """Record the rules in an answer for its origin; a redirect has none yet."""
        owner = self._hosts.setdefault(host_of(request.origin + "/"), _Host())
        before = owner.origins.get(request.origin)
        now = request.ended_at
        asked_at = request.sent_at
        hops = 0
        if before is not None and before.hops:
            if before.run == request.run:  # a run that ends among the redirects forgets them
                asked_at = before.asked_at
                hops = before.hops
            before = before.before
        robots = _Robots(asked_at, now, now + ROBOTS_TTL_S, None, run=request.run, before=before)
        is_redirect = request.outcome == Outcome.REDIRECT.value
        if is_redirect and is_followed(request.url, request.redirect_to or request.url, hops):
            robots.known_at = float("inf")
            robots.hops = hops + 1
            robots.asked_url = request.url
        elif request.outcome == Outcome.OK.value:
            robots.rules = self._captures.rules(request)
            robots.good_until = now + LAST_GOOD_S
        elif request.outcome == Outcome.NOT_MODIFIED.value and before is not None:
            robots.rules = before.rules
            robots.good_until = now + LAST_GOOD_S
        elif is_absent(request.outcome):
            robots.rules = ALLOW_ALL
        elif self._promises.allows_unreachable_robots:
            robots.rules = ALLOW_ALL
            robots.expires_at = now + UNREACHABLE_TTL_S
        else:
            robots.is_unreachable = True
            if before is not None:
                robots.rules = before.rules
                robots.good_until = before.good_until
        if before is not None:
            before.before = None
        owner.origins[request.origin] = robots

    # -- pace -------------------------------------------------------------------------------------

    def _check_pace(self, host: _Host, request: SentRequest) -> None:
        floor_s = self._pace.floor_s(request.host, None)
        crawl_delay_s = host.crawl_delay_s
        if host.last_sent_at:
            gap_s = request.sent_at - host.last_sent_at
            shortest_s = self._report.min_gap_s
            self._report.min_gap_s = gap_s if shortest_s is None else min(shortest_s, gap_s)
            self._check_gap(host, request, gap_s)
        if request.requests > 1 and max(floor_s, crawl_delay_s) > 0:
            self._add_violation(Breach.REPEATED, request, f"sent {request.requests} times in a row")
        if request.issued_at >= host.refused_at and request.sent_at < host.parked_until - SLACK_S:
            early_s = host.parked_until - request.sent_at
            self._add_violation(Breach.RETRY_AFTER, request, f"{early_s:.1f} s before the end of Retry-After")
        host.last_sent_at = max(host.last_sent_at, request.sent_at)
        host.last_url = request.url

    def _check_gap(self, host: _Host, request: SentRequest, gap_s: float) -> None:
        floor_s = self._pace.floor_s(request.host, None)
        crawl_delay_s = host.crawl_delay_s
        after = f"{gap_s * 1000:.1f} ms after {host.last_url}"
        if gap_s < floor_s - SLACK_S:
            self._add_violation(Breach.TOO_SOON, request, f"{after}; {floor_s * 1000:.0f} ms promised")
        elif gap_s < crawl_delay_s - SLACK_S:
            self._add_violation(Breach.CRAWL_DELAY, request, f"{after}; Crawl-delay is {crawl_delay_s:g} s")

    def _check_crowd(self, host: _Host, request: SentRequest) -> None:
        host.open_until = [end for end in host.open_until if end > request.issued_at + SLACK_S]
        host.open_until.append(request.ended_at)
        limit = self._pace.connections(request.host)
        if len(host.open_until) > limit:
            self._add_violation(
                Breach.TOO_MANY_AT_ONCE, request, f"{len(host.open_until)} concurrent; {limit} promised"
            )

    def _check_address_crowd(self, request: SentRequest) -> None:
        """Check the number of concurrent requests to one IP address, over all hosts."""
        limit = self._promises.address_connections
        if not limit or not request.address:
            return
        ends = self._address_ends.setdefault(network_of(request.address), [])
        # Any two of the remaining ones overlap, so all of them were in flight at the same time.
        while ends and ends[0] <= request.issued_at + SLACK_S:
            heappop(ends)
        heappush(ends, request.ended_at)
        if len(ends) > limit:
            detail = f"{len(ends)} concurrent at address {network_of(request.address)}; {limit} promised"
            self._add_violation(Breach.ADDRESS_CROWD, request, detail)

    def _check_domain_crowd(self, request: SentRequest) -> None:
        """Check the number of concurrent requests to one domain while others had some in flight as well."""
        limit = self._promises.shared_connections
        if not limit or self._spread_s:  # of one machine: nodes have connections of their own
            return
        domain = registrable_domain(request.host)
        since = request.issued_at + SLACK_S
        while self._flights and self._flights[0][0] <= since:
            heappop(self._flights)
        ends = self._domain_ends.setdefault(domain, [])
        while ends and ends[0] <= since:
            heappop(ends)
        heappush(ends, request.ended_at)
        if len(ends) > limit and self._is_shared(domain, request.issued_at - NOTICED_S):
            detail = f"{len(ends)} concurrent at domain {domain}; {limit} promised while others have work"
            self._add_violation(Breach.DOMAIN_CROWD, request, detail)
        heappush(self._flights, (request.ended_at, request.issued_at, domain))

    def _is_shared(self, domain: str, since: float) -> bool:
        """Return whether another domain has had a request in flight since a time. Only asked of crowds."""
        return any(began <= since and other != domain for _, began, other in self._flights)

    def _check_neighbours(self, request: SentRequest) -> None:
        """Check the pace of the host's domain and address, if the run promised one."""
        promised = self._promises
        for breach, name, delay_s in (
            (Breach.DOMAIN_PACE, f"domain {registrable_domain(request.host)}", promised.domain_delay_s),
            (Breach.ADDRESS_PACE, f"address {network_of(request.address)}", promised.address_delay_s),
        ):
            if not delay_s:
                continue
            gap_s = request.sent_at - self._last_at.get(name, 0.0)
            if gap_s < delay_s - SLACK_S:
                self._add_violation(
                    breach, request, f"{gap_s * 1000:.1f} ms after another at {name}; {delay_s:g} s promised"
                )
            self._last_at[name] = max(request.sent_at, self._last_at.get(name, 0.0))


def _pace_of(promises: Promises) -> Pace:
    rules = [PaceRule(rule.host, rule.delay_s, rule.connections) for rule in promises.pace]
    return Pace(promises.delay_s, promises.host_connections, rules)
