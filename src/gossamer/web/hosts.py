"""The hosts of a crawl for its dashboard: searched, sorted and cut into pages, and one of them in detail.

All hosts are read once, in one pass, and what they are searched and sorted by is copied: 160 bytes per host, so that a
crawl of millions of hosts can be looked at beside it. Answers are drawn from that copy while it is fresh, and the rows
that are shown are read anew. To decode and copy 100,000 hosts takes 0.2 s besides reading them, an order or a search
10 ms. A part ends with a cursor, the sort key of its last row, so that the next part is right even if the copy was
renewed in between.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from gossamer.core.robots.answers import is_ban
from gossamer.core.robots.rules import parse_robots
from gossamer.core.url.forms import canonical, host_of
from gossamer.model.errors import GossamerError
from gossamer.model.records import HostRecord, RobotsRecord
from gossamer.reading.host_states import STATES, shown_state
from gossamer.reading.host_view import HostView, host_view
from gossamer.reading.outlook import Outlook, outlook_of
from gossamer.reading.pace_view import pace_view
from gossamer.reading.requests.host_requests import HostRequest, host_requests
from gossamer.reading.view import CrawlView
from gossamer.settings.identity import robots_token_of
from gossamer.web.live_crawl import FRESH_PER_PASS
from gossamer.web.routes import MISSING, ApiError, ApiRoute
from gossamer.web.source import CrawlSource

MIN_FRESH_S = 2.0
MAX_TEXT_CHARS = 60_000  # of a robots.txt
MAX_RULES = 500

Sort: TypeAlias = Literal["pages", "queued", "errors", "latency", "delay", "name"]
HostState: TypeAlias = Literal[
    "", "ready", "waiting", "parked", "swapped_out", "over_budget", "blocked", "dead", "idle"
]
Name: TypeAlias = Annotated[str, Meta(max_length=300)]
_SCORES: dict[str, Callable[[HostRecord], float]] = {
    "pages": lambda host: host.pages,
    "queued": lambda host: host.queued,
    "errors": lambda host: host.errors,
    "latency": lambda host: host.latency_s,
    "delay": lambda host: host.delay_s,
}
_SortKey: TypeAlias = tuple[float, str]
_CURSOR = r"^(-?[0-9]{1,15}(\.[0-9]{1,17})? [^ ]{1,300})?$"


class HostsQuery(Struct, frozen=True):
    """Which hosts, in which order."""

    q: Name = ""  # a part of the name
    sort: Sort = "pages"  # highest first; names from a to z
    state: HostState = ""
    cursor: Annotated[str, Meta(pattern=_CURSOR)] = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class HostLine(Struct, frozen=True):
    """A host in a list."""

    name: str
    state: str
    pages: int
    queued: int
    fetches: int
    errors: int
    bytes: int
    latency_ms: float | None  # None: it has not answered yet
    delay_s: float
    next_in_s: float
    is_blocked: bool
    park_reason: str


class HostsAnswer(Struct, frozen=True):
    """A page of a list of hosts."""

    hosts: list[HostLine]
    known: int  # hosts of the crawl
    matching: int
    cursor: str  # to go on; empty at the end
    age_s: float  # since they were read


class RobotsRule(Struct, frozen=True):
    """A rule of robots.txt that applies to this crawler."""

    line: int
    text: str
    allows: bool


class RobotsText(Struct, frozen=True):
    """robots.txt of one origin, as fetched and as parsed."""

    origin: str
    status: int
    outcome: str
    fetched_at: float
    expires_at: float
    text: str
    is_cut: bool  # the text, here
    token: str  # by which it addresses this crawler
    rules: list[RobotsRule]
    rule_count: int
    crawl_delay_s: float | None
    sitemaps: list[str]


class HostName(Struct, frozen=True):
    """One host."""

    name: Name


class HostAnswer(Struct, frozen=True):
    """One host in detail."""

    host: HostView
    robots: list[RobotsText]
    pace: list[str]  # which rules set it, for people


class RequestsQuery(Struct, frozen=True):
    """The requests to one host."""

    name: Name
    limit: Annotated[int, Meta(ge=1, le=2000)] = 200


class RequestsAnswer(Struct, frozen=True):
    """The last requests to a host, newest first."""

    requests: list[HostRequest]
    made: int
    note: str  # what could not be read


class HostIndex:
    """What hosts are searched and sorted by, as it was at one time."""

    def __init__(self, hosts: Iterable[HostRecord], outlook: Outlook, now: float, read_at: float) -> None:
        self.read_at = read_at
        self.names: list[str] = []
        self._states = bytearray()  # indexes in `STATES`
        self._scores = {sort: array("d") for sort in _SCORES}  # the highest first, so they are negative
        self._orders: dict[str, Sequence[int]] = {}
        for host in hosts:
            self.names.append(host.name)
            self._states.append(STATES.index(shown_state(host, outlook, now)))
            for sort, score in _SCORES.items():
                self._scores[sort].append(-round(score(host), 6))

    def ordered(self, sort: Sort) -> Sequence[int]:
        """Return the hosts as indexes of `names`, sorted; ties by name."""
        if sort not in self._orders:
            if sort == "name":
                found = sorted(range(len(self.names)), key=self.names.__getitem__)
            else:
                found = sorted(self.ordered("name"), key=self._scores[sort].__getitem__)
            self._orders[sort] = array("L", found)
        return self._orders[sort]

    def matching(self, query: HostsQuery) -> Sequence[int]:
        """Return the hosts that match, in order."""
        order = self.ordered(query.sort)
        names = self.names
        states = self._states
        part = query.q.lower()
        if query.state:
            state = STATES.index(query.state)
            return [each for each in order if states[each] == state and part in names[each]]
        return [each for each in order if part in names[each]] if part else order

    def state(self, host: int) -> str:
        return STATES[self._states[host]]

    def sort_key(self, host: int, sort: Sort) -> _SortKey:
        return (0.0 if sort == "name" else self._scores[sort][host]), self.names[host]


class Hosts:
    """Answers questions about hosts."""

    def __init__(self, source: CrawlSource) -> None:
        self._source = source
        self._copy: HostIndex | None = None
        self._fresh_until = 0.0
        self._reading = Lock()

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(path="/api/hosts", summary="Hosts", handle=self.find, answer=HostsAnswer, parameters=HostsQuery),
            ApiRoute(
                path="/api/hosts/{name}",
                summary="One host: pace and robots.txt",
                handle=self.one,
                answer=HostAnswer,
                parameters=HostName,
                statuses=MISSING,
            ),
            ApiRoute(
                path="/api/hosts/{name}/requests",
                summary="The last requests to a host",
                handle=self.requests,
                answer=RequestsAnswer,
                parameters=RequestsQuery,
                statuses=MISSING,
            ),
        ]

    async def known(self) -> int:
        """Return how many hosts the crawl knows, as the list of hosts counts them."""
        return len((await self._source.run(self._current)).names)

    async def find(self, query: HostsQuery) -> HostsAnswer:
        return await self._source.run(lambda: self._find(query))

    def _find(self, query: HostsQuery) -> HostsAnswer:
        copy = self._current()
        wanted = copy.matching(query)
        sort_key = partial(copy.sort_key, sort=query.sort)
        first = bisect_right(wanted, _position(query.cursor), key=sort_key) if query.cursor else 0
        page = wanted[first : first + query.limit]
        is_last = first + len(page) >= len(wanted)
        with self._source.viewing() as view:
            found = [(view.ledger.host(copy.names[each]), copy.state(each)) for each in page]
        now = time.time()
        return HostsAnswer(
            hosts=[_line(host, state, now) for host, state in found if host is not None],
            known=len(copy.names),
            matching=len(wanted),
            cursor="" if is_last else _cursor(sort_key(page[-1])),
            age_s=round(time.monotonic() - copy.read_at, 1),
        )

    def _current(self) -> HostIndex:
        with self._reading:
            if self._copy is None or time.monotonic() > self._fresh_until:
                started = time.monotonic()
                with self._source.viewing() as view:
                    now = time.time()
                    outlook = outlook_of(view.settings, view.totals, view.ledger.domains(), now)
                    self._copy = HostIndex(view.ledger.hosts(), outlook, now, started)
                took_s = time.monotonic() - started
                self._fresh_until = started + max(MIN_FRESH_S, FRESH_PER_PASS * took_s)
            return self._copy

    async def one(self, query: HostName) -> HostAnswer:
        name = _named(query.name)
        answer = await self._source.read(lambda view: _answer(view, name))
        if self._source.live.is_running():
            with suppress(GossamerError, msgspec.ValidationError):  # then what is committed has to do
                now = msgspec.convert(await self._source.live.ask("host", name=name), HostView)
                return HostAnswer(now, answer.robots, answer.pace)
        return answer

    async def requests(self, query: RequestsQuery) -> RequestsAnswer:
        """Return the last requests to a host. One pass over the events."""
        return await self._source.read_events(lambda view: _requests(view, _named(query.name), query.limit))


def _cursor(sort_key: _SortKey) -> str:
    return f"{sort_key[0]:.6f} {sort_key[1]}"


def _position(cursor: str) -> _SortKey:
    score, _, name = cursor.partition(" ")
    return float(score), name


def _line(host: HostRecord, state: str, now: float) -> HostLine:
    return HostLine(
        name=host.name,
        state=state,
        pages=host.pages,
        queued=host.queued,
        fetches=host.fetches,
        errors=host.errors,
        bytes=host.bytes,
        latency_ms=round(1000 * host.latency_s, 1) if host.latency_s else None,
        delay_s=round(host.delay_s, 3),
        next_in_s=round(max(0.0, host.next_at - now, host.parked_until - now), 1),
        is_blocked=host.is_blocked,
        park_reason=host.park_reason if host.parked_until > now else "",
    )


# -- one host -------------------------------------------------------------------------------------


def _named(text: str) -> str:
    url = canonical(text if "://" in text else f"http://{text}/")
    if url is None:
        raise ApiError(404, f"{text[:80]!r}: not a host name; expected example.org")
    return host_of(url)


def _answer(crawl: CrawlView, name: str) -> HostAnswer:
    host = crawl.ledger.host(name)
    if host is None:
        raise ApiError(404, f"{name[:80]}: not a host of this crawl")
    token = robots_token_of(crawl.settings)
    records = crawl.ledger.robots(crawl.ledger.host_id(name))
    robots = [_robots(record, token) for record in records if not is_ban(record)]
    return HostAnswer(host_view(crawl, host), robots, pace_view(crawl, name, host).lines())


def _robots(record: RobotsRecord, token: str) -> RobotsText:
    rules = parse_robots(record.body, token)
    text = record.body.decode("utf-8", "replace")
    return RobotsText(
        origin=record.origin,
        status=record.status,
        outcome=record.outcome,
        fetched_at=record.fetched_at,
        expires_at=record.expires_at,
        text=text[:MAX_TEXT_CHARS],
        is_cut=len(text) > MAX_TEXT_CHARS,
        token=token,
        rules=[RobotsRule(rule.line_number, rule.line, rule.is_allowed) for rule in rules.rules()[:MAX_RULES]],
        rule_count=rules.rule_count,
        crawl_delay_s=rules.crawl_delay_s,
        sitemaps=rules.sitemaps,
    )


def _requests(crawl: CrawlView, name: str, limit: int) -> RequestsAnswer:
    made = 0
    last: deque[HostRequest] = deque(maxlen=limit)
    for request in host_requests(crawl.folders.events, name):
        made += 1
        last.append(request)
    return RequestsAnswer(list(reversed(last)), made, crawl.folders.hint)
