"""Whether a crawler was polite and complete, according to what the servers saw.

Reads the request log and the plan, nothing from the crawler. Rules: robots.txt was answered
before anything else was requested from a host; nothing forbidden was requested; arrivals at a
host are at least max(politeness, its Crawl-delay) apart, including robots.txt and sitemaps;
never more concurrent requests than allowed; no page was answered 200 twice; every page of the
truth was fetched. Cost: about 3 µs per request, and the truth's 60 µs per page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

import msgspec
from msgspec import Struct

from gossamer.sim.web.log import LoggedRequest
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.paths import PathKind
from gossamer.sim.web.truth import Scope, Truth, find_truth
from gossamer.sim.web.web import Health, Site

SAMPLES = 20


class JudgeRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits and the scope that the crawler was given."""

    politeness_s: float = 1.0
    host_connections: int = 1
    domain_connections: int = 0  # 0: no limit
    address_connections: int = 0  # 0: no limit
    slack_s: float = 0.0  # arrivals may be this much closer: the jitter between a client's write and the server's read
    scope: Scope = "domain"
    first_seeds: int | None = None  # the seeds are the plan's first hosts, this many; None: all
    sitemaps: bool = True
    max_depth: int | None = None
    robots_unreachable: str = "deny"  # "allow": pages of a host whose robots.txt fails may be requested


class OffendingRequest(Struct, frozen=True):
    """A request that the crawler should not have made."""

    host: str
    target: str
    at: float
    what: str


class Offences(Struct, frozen=True):
    """How often a rule was broken, and the first cases."""

    count: int = 0
    samples: tuple[OffendingRequest, ...] = ()


class ServerVerdict(Struct, frozen=True, kw_only=True):
    requests: int
    hosts: int
    pages_fetched: int  # distinct pages of the web answered 200 or 304
    seconds: float
    statuses: dict[int, int]
    robots_late: Offences
    disallowed: Offences
    too_soon: Offences
    too_many_at_once: Offences
    fetched_twice: Offences
    min_gap_s: float | None  # between arrivals at one host; None if no host had two requests
    truth_pages: int
    missing: int
    missing_samples: tuple[str, ...]
    strays: int  # pages fetched that are not in the truth: out of scope
    stray_samples: tuple[str, ...]
    max_at_once: int  # requests open at one host
    requests_by_host: dict[str, int]

    @property
    def is_polite(self) -> bool:
        """Whether robots.txt, pace and limits were respected."""
        return not any(f.count for f in (self.robots_late, self.disallowed, self.too_soon, self.too_many_at_once))

    @property
    def is_clean(self) -> bool:
        """Polite, and nothing was fetched twice."""
        return self.is_polite and not self.fetched_twice.count

    @property
    def is_complete(self) -> bool:
        """Every page of the truth was fetched."""
        return not self.missing

    @property
    def coverage(self) -> float:
        """The share of the truth that was fetched."""
        return 1 - self.missing / self.truth_pages if self.truth_pages else 1.0

    def as_json(self) -> bytes:
        """All fields and the three verdicts, as one JSON object."""
        verdicts = {"is_polite": self.is_polite, "is_clean": self.is_clean, "is_complete": self.is_complete}
        return msgspec.json.encode(verdicts | msgspec.structs.asdict(self))

    def render(self) -> str:
        gap = "-" if self.min_gap_s is None else f"{self.min_gap_s * 1000:.1f} ms"
        lines = [
            f"{self.requests} requests to {self.hosts} hosts in {self.seconds:.1f} s, minimum gap at a host {gap}",
            "answers: " + ", ".join(f"{status or 'none'} x {n}" for status, n in sorted(self.statuses.items())),
            f"pages: {self.pages_fetched} fetched, {self.truth_pages} could be ({self.coverage:.1%}), "
            f"{self.missing} missing, {self.strays} out of scope",
        ]
        rules = ("robots_late", "disallowed", "too_soon", "too_many_at_once", "fetched_twice")
        for name in rules:
            offences: Offences = getattr(self, name)
            lines.append(f"{name.replace('_', ' ')}: {offences.count}")
            lines += [f"  {v.host}{v.target}: {v.what}" for v in offences.samples]
        lines += [f"  missing {url}" for url in self.missing_samples]
        lines += [f"  out of scope {url}" for url in self.stray_samples]
        lines.append("clean" if self.is_clean else "polite, but not clean" if self.is_polite else "NOT POLITE")
        return "\n".join(lines)


def judge(
    web: SyntheticWeb, log: Sequence[LoggedRequest], rules: JudgeRules, truth: Truth | None = None
) -> ServerVerdict:
    """Judge a crawl. The truth is computed from the rules' seeds and scope if it is not given."""
    if truth is None:
        seeds = web.plan.seeds(web.port, rules.first_seeds)
        truth = find_truth(web, seeds, rules.scope, sitemaps=rules.sitemaps, max_depth=rules.max_depth)
    by_host: defaultdict[str, list[LoggedRequest]] = defaultdict(list)
    for request in sorted(log, key=lambda request: request.arrived_at):
        by_host[request.host].append(request)
    known = [(site, asked) for host, asked in by_host.items() if (site := web.site(host)) is not None]
    fetched = {url for site, asked in known for url in _pages(web, site, asked)}
    missing = truth.pages - fetched
    strays = fetched - truth.pages
    return ServerVerdict(
        requests=len(log),
        hosts=len(by_host),
        pages_fetched=len(fetched),
        seconds=_seconds(log),
        statuses=dict(Counter(request.status for request in log)),
        robots_late=_collect(known, _find_late_robots),
        disallowed=_collect(known, lambda site, asked: _find_disallowed(site, asked, rules)),
        too_soon=_collect(known, lambda site, asked: _find_too_soon(site, asked, rules)),
        too_many_at_once=_offences([*_find_crowds(known, rules)]),
        fetched_twice=_collect(known, lambda site, asked: _find_twice(web, site, asked)),
        min_gap_s=min((gap for _, asked in known for _, gap in _gaps(asked)), default=None),
        truth_pages=len(truth.pages),
        missing=len(missing),
        missing_samples=tuple(sorted(missing)[:SAMPLES]),
        strays=len(strays),
        stray_samples=tuple(sorted(strays)[:SAMPLES]),
        max_at_once=max((request.in_flight for request in log), default=0),
        requests_by_host={host: len(asked) for host, asked in by_host.items()},
    )


_Asked = list[LoggedRequest]


def _collect(known: list[tuple[Site, _Asked]], find: Callable[[Site, _Asked], Iterator[OffendingRequest]]) -> Offences:
    return _offences([request for site, asked in known for request in find(site, asked)])


def _offences(found: list[OffendingRequest]) -> Offences:
    found.sort(key=lambda request: request.at)
    return Offences(len(found), tuple(found[:SAMPLES]))


def _offending(request: LoggedRequest, what: str) -> OffendingRequest:
    return OffendingRequest(request.host, request.target, request.arrived_at, what)


def _seconds(log: Sequence[LoggedRequest]) -> float:
    if not log:
        return 0.0
    first = min(request.arrived_at for request in log)
    return max(max(request.finished_at, request.arrived_at) for request in log) - first


def _ended_at(request: LoggedRequest) -> float:
    return request.finished_at or inf


def _gaps(asked: _Asked) -> Iterator[tuple[LoggedRequest, float]]:
    """Each request except the first, and how long after the previous one it came, at most."""
    for earlier, later in pairwise(asked):
        yield later, later.arrived_at - earlier.arrived_at + earlier.max_late_s


def _pages(web: SyntheticWeb, site: Site, asked: _Asked) -> Iterator[str]:
    for request in asked:
        if request.status in (200, 304):
            resource = web.route(site, request.target)
            if resource.kind is PathKind.PAGE:
                yield web.url(site, resource.number)


def _find_late_robots(_: Site, asked: _Asked) -> Iterator[OffendingRequest]:
    known_from = min((_ended_at(r) for r in asked if r.target == "/robots.txt"), default=inf)
    for request in asked:
        if request.target != "/robots.txt" and request.arrived_at < known_from:
            yield _offending(request, "requested before robots.txt was answered")


def _find_disallowed(site: Site, asked: _Asked, rules: JudgeRules) -> Iterator[OffendingRequest]:
    if site.health is not Health.WELL and rules.robots_unreachable == "allow":
        return
    why = "forbidden by robots.txt" if site.health is Health.WELL else f"robots.txt cannot be reached ({site.health})"
    for request in asked:
        if site.is_disallowed(request.target):
            yield _offending(request, why)


def _find_too_soon(site: Site, asked: _Asked, rules: JudgeRules) -> Iterator[OffendingRequest]:
    least = max(rules.politeness_s, site.crawl_delay_s)
    for request, gap in _gaps(asked):
        if gap < least - rules.slack_s:
            yield _offending(request, f"{gap * 1000:.1f} ms after the request before, {least * 1000:.0f} ms wanted")


def _find_twice(web: SyntheticWeb, site: Site, asked: _Asked) -> Iterator[OffendingRequest]:
    seen = set()
    for request in asked:
        if request.status != 200 or request.target == "/robots.txt":
            continue
        resource = web.route(site, request.target)
        # For the router all of /search is one PRIVATE resource; it is counted as disallowed, once per request.
        if resource.kind is PathKind.PRIVATE:
            continue
        if resource in seen:
            yield _offending(request, "had been answered 200 before")
        seen.add(resource)


def _find_crowds(known: list[tuple[Site, _Asked]], rules: JudgeRules) -> Iterator[OffendingRequest]:
    """Requests that came while the allowed number was open at the host, the domain or the address."""
    limits: tuple[tuple[str, int, Callable[[Site], str]], ...] = (
        ("host", rules.host_connections, lambda site: site.name),
        ("domain", rules.domain_connections, lambda site: site.domain),
        ("address", rules.address_connections, lambda site: site.address),
    )
    for unit, limit, key in limits:
        if limit:
            groups: defaultdict[str, _Asked] = defaultdict(list)
            for site, asked in known:
                groups[key(site)] += asked
            for name, asked in groups.items():
                yield from _find_crowd(f"{unit} {name}", asked, limit)


def _find_crowd(where: str, asked: _Asked, limit: int) -> Iterator[OffendingRequest]:
    ends: list[float] = []
    for request in sorted(asked, key=lambda request: request.arrived_at):
        while ends and ends[0] <= request.arrived_at:
            heappop(ends)
        heappush(ends, _ended_at(request))
        if len(ends) > limit:
            yield _offending(request, f"{len(ends)} concurrent at {where}, {limit} allowed")
