"""What happened to a URL, from the link that led to it to the record that stores it?

The ledger has its state, the events have its history; if the URL is in neither, the current rules
are applied: scope, traps, depth, robots.txt. Nothing is written. One pass over the events, in
which only lines that name the host are decoded; a position in the queue costs a read of the
URLs ahead of it, up to `MAX_PLACE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from gossamer.core.ledger.tables import BACKLOG, HELD, INTRODUCED, LINK_META, SEEDS, held_key
from gossamer.core.links.requisite import requisite_id
from gossamer.core.links.scope import Scope
from gossamer.core.robots.answers import is_ban
from gossamer.core.robots.rules import parse_robots
from gossamer.core.traps.shapes import is_dated, shape_trap
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, key_of, origin_of, path_of
from gossamer.engine.admission.introduced_links import links_of
from gossamer.engine.admission.seed_rules import surroundings_of
from gossamer.model.events import REQUEST_EVENTS, Event, EventName, masked, outcome_of
from gossamer.model.records import (
    ArchiveSpan,
    FetchKind,
    HostRecord,
    Outcome,
    QueuePosition,
    RobotsRecord,
    Source,
    UrlId,
    UrlRecord,
    UrlState,
)
from gossamer.model.state import HoldRule, IntroducedBatch, LinkBatch
from gossamer.ports import Catalog
from gossamer.reading.pace_view import PaceView
from gossamer.reading.requests.runs import read_all_runs
from gossamer.telemetry.text import agreeing

# What became of a URL as something that pages need to be shown, and which page named it?

_MAX_NAMED = 20


class NamedBy(Struct, frozen=True):
    """What names a requisite: a page, a stylesheet, or a redirect."""

    url: str
    what: str


class RequisiteView(Struct, frozen=True, kw_only=True):
    """A URL as a requisite."""

    state: str
    outcome: str
    status: int
    error: str
    content_type: str
    content_bytes: int
    found_at: float
    fetched_at: float
    redirect_to: str
    archived: ArchiveSpan | None
    named_by: list[NamedBy]  # the nearest first, the page last


def requisite_view(page: UrlId, ledger: Catalog) -> RequisiteView | None:
    """Return what became of a URL as a requisite; None if no page needs it."""
    row = ledger.look_up(requisite_id(page))
    if row is None:
        return None
    return RequisiteView(
        state=row.state.name.lower(),
        outcome=row.outcome,
        status=row.status,
        error=row.error,
        content_type=row.content_type,
        content_bytes=row.content_bytes,
        found_at=row.found_at,
        fetched_at=row.fetched_at,
        redirect_to=row.redirect_to,
        archived=row.archived,
        named_by=named_by(row, ledger),
    )


def named_by(row: UrlRecord, ledger: Catalog) -> list[NamedBy]:
    """Return what led to a requisite, back to the page that was fetched."""
    found: list[NamedBy] = []
    while row.kind is FetchKind.REQUISITE and row.parent and len(found) < _MAX_NAMED:
        parent = ledger.look_up(row.parent)
        if parent is None:
            break
        is_page = parent.kind is not FetchKind.REQUISITE
        what = "redirect" if row.source is Source.REDIRECT else "page" if is_page else "stylesheet"
        found.append(NamedBy(parent.url, what))
        row = parent
    return found


MAX_PLACE = 100_000
MAX_ANCESTORS = 100
_BATCH = 1000


class Ancestor(Struct, frozen=True):
    """A URL on the path from a seed."""

    url: str
    source: str  # how it was found itself
    depth: int
    found_at: float


class RobotsVerdict(Struct, frozen=True, kw_only=True):
    """What robots.txt of the URL's origin decides about it."""

    origin: str
    is_known: bool
    is_allowed: bool = True
    line_number: int = 0
    line: str = ""
    status: int = 0
    fetched_at: float = 0.0
    expires_at: float = 0.0
    crawl_delay_s: float | None = None
    is_own: bool = False  # the host is the operator's own: what robots.txt forbids is fetched


class Refusal(Struct, frozen=True):
    """A rule that refused the URL; `at` is 0 if the rule was applied only now."""

    rule: str
    at: float = 0.0
    detail: str = ""


class Attempt(Struct, frozen=True, kw_only=True):
    """One request for the URL."""

    at: float
    event: str
    outcome: str
    status: int
    total_ms: int
    attempt: int
    wait_s: float = 0.0
    reason: str = ""
    target: str = ""


class QueuePlace(Struct, frozen=True):
    """The position of a URL in the queue of its host. `ahead` is None if it is too far back to count."""

    priority: int
    seq: int
    ahead: int | None
    queued: int


class SeedView(Struct, frozen=True):
    """A seed with rules or metadata of its own."""

    url: str
    stated: str  # as in a file of seeds
    scope: str
    depth: int | None
    metadata: dict[str, str]


class NodePlace(Struct, frozen=True, kw_only=True):
    """The nodes of a cluster that a URL belongs to."""

    shard: int
    owner: str  # empty: nobody owns the shard
    epoch: int = 0
    is_live: bool = False
    stored_on: str = ""  # the node whose archive has its bytes
    label: str = ""  # of its region
    country: str = ""  # of its domain's first address, if a rule for regions names countries
    lacks_label: bool = False  # regions are strict, and no live node has the label


class Life(Struct, kw_only=True):
    """Everything that is known about a URL."""

    asked: str
    url: str  # as it is requested
    key: str
    id: str
    host: str
    domain: str
    is_known: bool
    row: UrlRecord | None
    state: str
    found_as: str
    ancestors: list[Ancestor]
    refusals: list[Refusal]
    robots: RobotsVerdict
    attempts: list[Attempt]
    notes: list[str]
    queue: QueuePlace | None
    waits_for: list[str]
    duplicate_of: str
    near_duplicate_of: str = ""
    held_back: str = ""  # by which rule, and until when
    seed: SeedView | None = None  # that it descends from, if that has rules or metadata of its own
    place: NodePlace | None = None  # in a cluster
    pace: PaceView | None = None  # of its host
    meta: str = ""  # that a program attached to its link, as JSON
    requisite: RequisiteView | None = None  # what became of it as something that pages need to be shown
    twins: list[str] = []  # if it is not known: URLs that differ in scheme, www. or a slash at the end, and are

    @property
    def has_trace(self) -> bool:
        """Return whether the URL is in the ledger or in the events."""
        is_recorded = self.is_known or bool(self.held_back) or self.requisite is not None
        return is_recorded or bool(self.attempts) or any(refusal.at for refusal in self.refusals)


class LifeSource(Struct, frozen=True):
    """What the history of a URL is read from."""

    ledger: Catalog
    events: Sequence[Path]  # folders: several if nodes fetched
    scope: Scope  # with the seeds of the crawl joined
    token: str
    is_masked: bool
    is_running: bool
    now: float
    own_hosts: tuple[str, ...] = ()  # whose robots.txt is not obeyed


def life_of(asked: str, url: str, source: LifeSource) -> Life:
    """Return the life of a canonical URL."""
    ledger = source.ledger
    identity = ledger.url_id(url)
    row = ledger.look_up(identity)
    host = ledger.host(host_of(url))
    requested = row.url if row is not None else url
    batch = _batch_with(identity, host_of(url), ledger) if row is None else None
    life = Life(
        asked=asked,
        url=requested,
        key=key_of(url),
        id=identity.hex(),
        host=host_of(url),
        domain=registrable_domain(host_of(url)),
        is_known=row is not None,
        row=row,
        state=row.state.name.lower() if row is not None else "unknown",
        found_as=row.source.name.lower() if row is not None else "",
        ancestors=list(_ancestors(row, ledger)) if row is not None else [],
        refusals=[],
        robots=_robots(requested, source),
        attempts=[],
        notes=[],
        queue=_queue_place(identity, row, host, ledger),
        waits_for=_waits_for(row, host, source),
        duplicate_of=_url_of(row.duplicate_of, ledger) if row is not None and row.duplicate_of else "",
        near_duplicate_of=_url_of(row.near_duplicate_of, ledger) if row is not None and row.near_duplicate_of else "",
        held_back=_held_back(identity, row, batch, ledger),
        seed=_seed(identity, row, batch, ledger),
        meta=_meta(identity, ledger),
        requisite=requisite_view(identity, ledger),
    )
    _read_events(life, url, source)
    if row is None and life.requisite is None and not life.refusals and not life.held_back:
        life.refusals = _refusals_now(url, life.robots, source)
    return life


def _meta(identity: UrlId, ledger: Catalog) -> str:
    found = ledger.record(LINK_META, identity)
    return found.meta.decode() if found is not None else ""


_Batch: TypeAlias = LinkBatch | IntroducedBatch


def _batch_with(identity: UrlId, host: str, ledger: Catalog) -> _Batch | None:
    """Return the batch of links in which a URL waits to be offered."""
    for batch in ledger.records(BACKLOG):
        if any(link.id == identity for link in batch.links):
            return batch
    for introduced in ledger.records(INTRODUCED):
        if any(link.id == identity for link in links_of(introduced, host)):
            return introduced
    return None


def _seed(identity: UrlId, row: UrlRecord | None, batch: _Batch | None, ledger: Catalog) -> SeedView | None:
    """Return the seed that a URL descends from, also if it is held back."""
    held = [batch, *(ledger.record(HELD, held_key(identity, rule)) for rule in HoldRule)] if row is None else []
    number = row.seed if row is not None else next((one.seed for one in held if one is not None), 0)
    seed = next((seed for seed in ledger.records(SEEDS) if seed.number == number), None) if number else None
    if seed is None:
        return None
    depth = seed.depth if seed.depth >= 0 else None
    return SeedView(seed.url, seed.stated, seed.scope, depth, seed.metadata)


_HELD_UNTIL = {
    HoldRule.FIRST_PASS: "the first pass is over, which queues one URL per domain",
    HoldRule.CALENDAR: "earlier pages of its host with a date in the URL prove to bring new content",
    HoldRule.SPAM: "its host, most of whose pages are spam, is released by 'gossamer traps --release'",
    HoldRule.HOSTS_PER_DOMAIN: "its domain has room for its host: one of --max-hosts-per-domain gives up its place",
    HoldRule.QUARANTINE: "its pattern, whose pages brought nothing new, is released by 'gossamer traps --release'",
}


def _held_back(identity: UrlId, row: UrlRecord | None, batch: _Batch | None, ledger: Catalog) -> str:
    """Return the rule that holds a URL back, and until when; empty if none does."""
    if batch is not None:
        page = batch.found_on or _url_of(batch.parent, ledger)
        if isinstance(batch, IntroducedBatch):
            return (
                f"by the max hosts per address rule: pages of one domain at the address of {page} led to very many "
                "new hosts; until more of these have answered, or nothing else is to be done"
            )
        return f"by the link backlog rule: until those found before it on {page} are queued, some per turn"
    if row is not None:
        rules = [HoldRule.QUARANTINE] if row.outcome == Outcome.QUARANTINED and row.state is UrlState.DEAD else []
    else:
        rules = [rule for rule in HoldRule if ledger.record(HELD, held_key(identity, rule)) is not None]
    return f"by the {rules[0].value.replace('_', ' ')} rule: until {_HELD_UNTIL[rules[0]]}" if rules else ""


def _url_of(identity: UrlId, ledger: Catalog) -> str:
    row = ledger.look_up(identity)
    return row.url if row is not None else f"id {identity.hex()}"


def _ancestors(row: UrlRecord, ledger: Catalog) -> Iterator[Ancestor]:
    """Yield what led to a URL, nearest first, back to the seed."""
    seen: set[UrlId] = set()
    parent = row.parent
    while parent and parent not in seen and len(seen) < MAX_ANCESTORS:
        seen.add(parent)
        found = ledger.look_up(parent)
        if found is None:
            return
        yield Ancestor(found.url, found.source.name.lower(), found.depth, found.found_at)
        parent = found.parent


# -- robots.txt -----------------------------------------------------------------------------------


def _robots(url: str, source: LifeSource) -> RobotsVerdict:
    origin = origin_of(url)
    is_own = host_of(url) in source.own_hosts
    record = next((r for r in source.ledger.robots(source.ledger.host_id(host_of(url))) if r.origin == origin), None)
    if record is None or is_ban(record):
        return RobotsVerdict(origin=origin, is_known=False, is_own=is_own)
    return _decided(record, url, source.token, is_own=is_own)


def _decided(record: RobotsRecord, url: str, token: str, *, is_own: bool) -> RobotsVerdict:
    rules = parse_robots(record.body, token)
    decision = rules.decide(path_of(url))
    return RobotsVerdict(
        origin=record.origin,
        is_known=True,
        is_allowed=decision.is_allowed,
        line_number=decision.line_number,
        line=decision.line,
        status=record.status,
        fetched_at=record.fetched_at,
        expires_at=record.expires_at,
        crawl_delay_s=rules.crawl_delay_s,
        is_own=is_own,
    )


# -- queue and host -------------------------------------------------------------------------------


def _queue_place(identity: UrlId, row: UrlRecord | None, host: HostRecord | None, ledger: Catalog) -> QueuePlace | None:
    if row is None or row.state is not UrlState.QUEUED:
        return None
    ahead = 0
    after: QueuePosition | None = None
    while ahead < MAX_PLACE and (batch := ledger.read_queue(identity[:8], after, _BATCH)):
        for url in batch:
            if url.id == identity:
                return QueuePlace(row.priority, row.seq, ahead, host.queued if host else 0)
            ahead += 1
        after = batch[-1].position
    return QueuePlace(row.priority, row.seq, None, host.queued if host else 0)


def _waits_for(row: UrlRecord | None, host: HostRecord | None, source: LifeSource) -> list[str]:
    """Return what a queued URL waits for."""
    if row is None or row.state is not UrlState.QUEUED:
        return []
    now = source.now
    reasons = []
    if not source.is_running:
        reasons.append("the crawl is not running")
    if row.not_before > now:
        reasons.append(f"its retry, in {row.not_before - now:.1f} s")
    if host is None:
        return [*reasons, "its host, about which nothing is known yet"]
    if host.parked_until > now:
        reasons.append(f"its host, parked for {host.parked_until - now:.1f} s: {host.park_reason or 'no reason given'}")
    elif host.next_at > now:
        reasons.append(f"its host's delay of {host.delay_s:g} s, over in {host.next_at - now:.1f} s")
    if host.swapped_out_until > now:
        reasons.append(f"its host, swapped out for {host.swapped_out_until - now:.1f} s")
    return reasons or ["its turn among the other URLs of its host, and its host's among the others"]


# -- events ---------------------------------------------------------------------------------------


def _read_events(life: Life, url: str, source: LifeSource) -> None:
    spellings = {life.url, url}
    if source.is_masked:
        spellings |= {masked(spelling) for spelling in spellings}
    for _, event in read_all_runs(source.events, life.host.encode()):
        if _is_about(event, life, spellings):
            _add_event(life, event)
        elif event.event is EventName.HOST_DEAD and event.host == life.host:
            life.notes.append(f"the host was given up: {event.reason}")
        elif event.event is EventName.SPAM_HOST and event.host == life.host:
            life.notes.append(f"the host was {event.rule}: {event.reason}")


def _is_about(event: Event, life: Life, spellings: set[str]) -> bool:
    """Return whether an event is about a URL. It may have been found in another spelling: the key decides."""
    if event.url_id:
        return event.url_id == life.id
    return event.url in spellings or (bool(event.url) and event.host == life.host and key_of(event.url) == life.key)


def _add_event(life: Life, event: Event) -> None:
    if event.event is EventName.PDF_LINKS_EXTRACTED:
        life.notes.append(f"{agreeing(event.links, 'link', 'was', 'were')} found in the PDF file")
    if event.event in REQUEST_EVENTS or event.event is EventName.WORKER_LOST:
        life.attempts.append(_attempt(event))
    elif event.event is EventName.EXCLUDED_BY_RULE:
        detail = f"{event.rule}, found at depth {event.depth}" if event.rule else f"found at depth {event.depth}"
        life.refusals.append(Refusal(event.reason, event.ts, detail))
    elif event.event is EventName.REQUISITE_REFUSED:
        detail = f"{event.rule}, needed by a page" if event.rule else "needed by a page"
        life.refusals.append(Refusal(event.reason, event.ts, detail))
    elif event.event is EventName.REQUISITES_CUT:
        life.notes.append(f"it needs {event.links} more to be shown than --max-requisites-per-page allows")
    elif event.event is EventName.ROBOTS_DISALLOW:
        life.refusals.append(Refusal("robots.txt", event.ts, f"line {event.line}: {event.rule}"))
    elif event.event is EventName.ROBOTS_OVERRIDDEN:
        life.notes.append(f"fetched although robots.txt forbids it (line {event.line}: {event.rule}): --own-host")
    elif event.event is EventName.COOLDOWN_SKIP:
        life.notes.append(f"found again too early; may be fetched again in {event.wait_s:g} s")
    elif event.event is EventName.SPAM_PAGE:
        life.notes.append(f"spam: {event.reason}")
    elif event.event is EventName.HTTP_FALLBACK:
        life.notes.append(f"there was no https: tried as {event.target}")


def _attempt(event: Event) -> Attempt:
    return Attempt(
        at=event.sent_at or event.ts,
        event=event.event.value,
        outcome=outcome_of(event),
        status=event.status,
        total_ms=event.total_ms,
        attempt=event.attempt,
        wait_s=event.wait_s,
        reason=event.reason,
        target=event.target,
    )


# -- decided now ----------------------------------------------------------------------------------


def _refusals_now(url: str, robots: RobotsVerdict, source: LifeSource) -> list[Refusal]:
    """Return the rules that would refuse a URL that was never recorded."""
    found = []
    rule = source.scope.refusal(url, host_of(url))
    scoped = [seed for seed in source.ledger.records(SEEDS) if seed.scope]
    if rule == "out_of_scope" and any(surroundings_of(seed).contain(url, host_of(url)) for seed in scoped):
        rule = None
    if rule is not None:
        detail = "by the crawl's scope" + ("; no seed has a scope of its own that contains it" if scoped else "")
        found.append(Refusal(rule, detail=source.scope.explain(rule, url) or detail))
    trap = shape_trap(url)
    if trap is not None:
        found.append(Refusal(trap, detail="the shape of a trap"))
    elif is_dated(url):
        found.append(Refusal("calendar", detail="a date: these have a budget at each host, which may be used up"))
    if robots.is_known and not robots.is_allowed and not robots.is_own:
        found.append(Refusal("robots.txt", detail=f"line {robots.line_number}: {robots.line}"))
    return found


FOUND_AS = {
    Source.SEED.name.lower(): "given as a seed",
    Source.LINK.name.lower(): "a link on",
    Source.REDIRECT.name.lower(): "a redirect from",
    Source.SITEMAP.name.lower(): "a sitemap",
    Source.NOTICE.name.lower(): "a notice",
    Source.PROBE.name.lower(): 'a probe for the host\'s "not found" page, after',
}
