"""What is the speed of a crawl bound by? A pure function over two moments.

The first that applies:

    paused        by the operator, or because a store is away
    nothing_left  what is queued is in flight, or the page limit is reached with what is in flight
    retries       what is queued besides what is in flight waits to be tried again
    cpu           an event loop uses nine tenths of a core, so that everything else waits for it
    disk, ledger  commits take most of the time, because of the archive or of the ledger
    dns           names are being looked up on at least half of the connections, and no more are free
    connections   no more are free, or most hosts have as many requests in flight as they or their address may have
    politeness    most hosts with queued URLs wait for their delay
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.model.figures import BoundBy, NextRetry, ParkedHost, Resource, RunState
from gossamer.telemetry.text import agreeing, count, duration, percent, plural, printable

BUSY_SHARE = 0.9
MOST = 0.5
NEARLY_ALL = 0.95
_OPERATOR = "operator"


class Load(Struct, frozen=True, kw_only=True):
    """What a crawl was doing at one moment."""

    at_s: float  # in the time of the run
    state: RunState = RunState.RUNNING
    paused_by: str = ""
    queued: int = 0  # URLs, those in flight included
    in_flight: int = 0  # requests and look-ups
    lookups: int = 0
    pages_left: int | None = None  # until the page limit, with those in flight counted as fetched
    hosts: dict[str, int] = {}  # by state, see `core.workbench`: the mean of some seconds, as they change it often
    next_parked: ParkedHost | None = None  # the parked host that may be contacted first
    next_parked_in_s: float = 0.0
    retried: int = 0  # URLs that wait to be tried again
    next_retry: NextRetry | None = None  # the first of them
    next_retry_in_s: float = 0.0
    next_due_in_s: float | None = None  # until known pages are due again; None: they are not fetched again
    core_share: dict[str, float] = {}
    commit_s: float = 0.0  # of all commits so far; like the next
    flush_s: float = 0.0  # of those, until the archives and stores had their part
    limits: LoadLimits


class LoadLimits(Struct, frozen=True):
    """The limits that can bind a crawl."""

    connections: int = 256  # that may be used now
    set_connections: int = 256  # by --connections, for all workers
    host_connections: int = 1
    address_connections: int = 20
    domain_connections: int = 0
    has_gate_delay: bool = False  # of addresses or domains
    dns_rate: float = 0.0  # look-ups per second; 0: no limit


def bound_by(before: Load, now: Load) -> BoundBy | None:
    """Return what binds the crawl; None if it has just begun, or if nothing does."""
    for judge in (_paused, _nothing_left, _retries):
        if (found := judge(now)) is not None:
            return found
    if (found := _cpu(now) or _commits(before, now) or _dns(now) or _all_connections(now)) is not None:
        return found
    return _hosts(now)


def _paused(now: Load) -> BoundBy | None:
    if now.state is not RunState.PAUSED:
        return None
    by = "the operator has paused it" if now.paused_by == _OPERATOR else f"it is paused: {now.paused_by or 'for now'}"
    return BoundBy(Resource.PAUSED, by)


def _nothing_left(now: Load) -> BoundBy | None:
    if now.pages_left is not None and now.pages_left <= 0 and now.next_due_in_s is None:
        text = f"--max-pages is reached with {plural(now.in_flight, 'request')} in flight"
        return BoundBy(Resource.NOTHING_LEFT, text)
    if now.queued > now.in_flight:
        return None
    if now.next_due_in_s is not None:
        when = f"in {duration(now.next_due_in_s)}" if now.next_due_in_s > 0 else "now"
        return BoundBy(Resource.NOTHING_LEFT, f"everything new was fetched; the next host is due {when}")
    text = f"no URL is queued besides {count(now.in_flight)} in flight" if now.in_flight else "no URL is queued"
    return BoundBy(Resource.NOTHING_LEFT, text)


def _retries(now: Load) -> BoundBy | None:
    if now.next_retry is None or now.next_retry_in_s < 0 or now.retried < now.queued - now.in_flight:
        return None
    wait = duration(now.next_retry_in_s)
    path, mark, _ = now.next_retry.url.partition("?")
    url = printable(path + mark + ("…" if mark else ""), 200)
    if now.retried == 1:
        return BoundBy(Resource.RETRIES, f"1 URL waits {wait} for its retry: {url}")
    return BoundBy(Resource.RETRIES, f"{plural(now.retried, 'URL')} wait for their retries, the first {wait}: {url}")


def _cpu(now: Load) -> BoundBy | None:
    name, share = max(now.core_share.items(), key=lambda each: each[1], default=("", 0.0))
    if share < BUSY_SHARE:
        return None
    who = "the process that schedules" if name == "hub" else "a worker"
    return BoundBy(Resource.CPU, f"{who} uses {percent(share)} of a core")


def _commits(before: Load, now: Load) -> BoundBy | None:
    elapsed_s = now.at_s - before.at_s
    share = (now.commit_s - before.commit_s) / elapsed_s if elapsed_s > 0 else 0.0
    flushed = (now.flush_s - before.flush_s) / elapsed_s if elapsed_s > 0 else 0.0
    if share < MOST:
        return None
    if flushed > share / 2:
        return BoundBy(Resource.DISK, f"the archive or a store takes {percent(flushed)} of the time to write")
    return BoundBy(Resource.LEDGER, f"commits take {percent(share)} of the time")


def _dns(now: Load) -> BoundBy | None:
    limits = now.limits
    if limits.dns_rate and now.lookups > max(1.0, limits.dns_rate):
        rate = f"--dns-rate allows {limits.dns_rate:g} per second"
        return BoundBy(Resource.DNS, f"{agreeing(now.lookups, 'name', 'waits', 'wait')} to be looked up; {rate}")
    if now.in_flight < NEARLY_ALL * limits.connections or now.lookups < MOST * now.in_flight or not now.lookups:
        return None
    used = _share(now.lookups, limits.connections, "connection")
    return BoundBy(Resource.DNS, f"{used} used for name look-ups, and no more are free")


def _all_connections(now: Load) -> BoundBy | None:
    limits = now.limits
    if now.in_flight < NEARLY_ALL * limits.connections or not limits.connections:
        return None
    used = _share(now.in_flight, limits.connections, "connection") + " in use"
    if limits.connections < limits.set_connections:
        return BoundBy(Resource.CONNECTIONS, f"{used}: --memory has no room for more, --connections would allow more")
    return BoundBy(Resource.CONNECTIONS, f"{used} (--connections)")


def _hosts(now: Load) -> BoundBy | None:
    """Return what most hosts with work are waiting for."""
    limits = now.limits
    states = ("busy", "at_limit", "waiting", "ready", "parked")
    busy, blocked, waiting, ready, parked = (now.hosts.get(state, 0) for state in states)
    whole = busy + blocked + waiting + ready + parked
    most = max(busy, blocked, waiting + parked)
    if not most:
        return None
    if parked == whole:
        return BoundBy(Resource.POLITENESS, _all_parked(now, parked))
    if most == waiting + parked:
        also = f", {count(parked)} {'is' if parked == 1 else 'are'} parked" if parked else ""
        text = _share(waiting, whole, "host", ("waits for its delay", "wait for their delay"))
        return BoundBy(Resource.POLITENESS, text + also)
    if most == busy:
        verbs = ("has as many requests in flight as it may", "have as many requests in flight as they may")
        text = _share(busy, whole, "host", verbs)
        return BoundBy(Resource.CONNECTIONS, f"{text} (--host-connections {limits.host_connections})")
    verbs = ("waits for others at its address or domain", "wait for others at their address or domain")
    text = _share(blocked, whole, "host", verbs)
    if limits.has_gate_delay:
        return BoundBy(Resource.POLITENESS, f"{text} (--address-politeness-ms, --domain-politeness-ms)")
    domain = f", --domain-connections {limits.domain_connections}" if limits.domain_connections else ""
    return BoundBy(Resource.CONNECTIONS, f"{text} (--address-connections {limits.address_connections}{domain})")


def _share(part: int, whole: int, noun: str, verbs: tuple[str, str] = ("is", "are")) -> str:
    """Return how many of all there are do something: "1 of 3 hosts waits", "the only host waits"."""
    if part == whole == 1:
        return f"the only {noun} {verbs[0]}"
    return f"{count(part)} of {plural(whole, noun)} {verbs[part != 1]}"


def _all_parked(now: Load, parked: int) -> str:
    """Return which host a crawl waits for, why, and for how long."""
    what = "the only host" if parked == 1 else f"all {plural(parked, 'host')}"
    text = f"{what} with queued URLs {'is' if parked == 1 else 'are'} parked"
    if now.next_parked is None:
        return text
    first = now.next_parked
    wait = duration(max(0.0, now.next_parked_in_s))
    return f"{text}; {first.name} may be contacted in {wait}: {printable(first.reason) or 'no reason given'}"
