"""What is recorded about a crawl: the names of events and their fields. No I/O.

An event is emitted when it happens, at least once, and has the id of its order, so that
readers count an order once. `telemetry.event_log` writes events to a file and reads them
back. Reports, the audit and `why` are read from events and the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from gossamer.records import Outcome

_QUERY = re.compile(r"\?[^\s'\"<>]+")
MAX_REFUSED_CHARS = 200  # of the URL of a link that was not queued: one page may have thousands of long ones
LOOKUP = "dns"  # the `kind` of events about name look-ups


class EventName(StrEnum):
    """The kinds of events. The values are written to `events/` and fixed: scripts rely on them."""

    STARTED = "started"
    FETCH_OK = "fetch_ok"
    OTHER_SUCCESS = "other_success"  # 2xx, but not 200
    REDIRECT = "redirect"
    NOT_MODIFIED = "not_modified"
    TYPE_REFUSED = "type_refused"
    ERROR = "error"
    RETRY = "retry"
    ROBOTS_FETCHED = "robots_fetched"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    ROBOTS_DISALLOW = "robots_disallow"
    ROBOTS_OVERRIDDEN = "robots_overridden"  # forbidden, and fetched all the same: the host is the operator's own
    EXCLUDED_BY_RULE = "excluded_by_rule"
    COOLDOWN_SKIP = "cooldown_skip"
    LINKS_CAPPED = "links_capped"
    EVICTED = "evicted"  # URLs that left the queue because of its maximum length
    LINKS_READ_AGAIN = "links_read_again"  # of stored pages, after a limit was raised
    PDF_LINKS_EXTRACTED = "pdf_links_extracted"
    SITEMAP_READ = "sitemap_read"
    HOST_PARKED = "host_parked"
    HOST_DEAD = "host_dead"
    HTTP_FALLBACK = "http_fallback"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    HEARTBEAT = "heartbeat"
    WARNING = "warning"
    WORKER_LOST = "worker_lost"
    OPTED_OUT = "opted_out"  # no more requests to a host or domain, at its owner's request
    OPT_OUT_ENDED = "opt_out_ended"
    TRAP_QUARANTINED = "trap_quarantined"  # a pattern of URLs without new content: its URLs wait for a release
    SOFT_404 = "soft_404"  # "not found" with status 200
    SPAM_PAGE = "spam_page"  # `rule` has its signals, the reason what decided
    SPAM_HOST = "spam_host"  # `rule`: demoted, or quarantined
    QUEUED_AGAIN = "queued_again"  # by the nodes of a cluster, at the operator's request
    RANKED = "ranked"  # domains were ranked by links: `unique_domains`, `links`, `fetched` pages, `total_ms` of the job
    OPERATOR = "operator"  # a command was obeyed: `rule` names it, the reason says what was done, and for whom
    RECOVERED = "recovered"
    STOPPED = "stopped"


# How a fetch ended. All have the id of their order, except a failed name look-up (`LOOKUP`).
REQUEST_EVENTS = frozenset(
    {
        EventName.FETCH_OK,
        EventName.OTHER_SUCCESS,
        EventName.REDIRECT,
        EventName.NOT_MODIFIED,
        EventName.TYPE_REFUSED,
        EventName.ERROR,
        EventName.RETRY,
        EventName.ROBOTS_FETCHED,
        EventName.ROBOTS_UNREACHABLE,
        EventName.SITEMAP_READ,
        EventName.PDF_LINKS_EXTRACTED,
    }
)


class PacePromise(Struct, frozen=True, omit_defaults=True):
    """Delay and connections that a run promises to the hosts that match a pattern."""

    host: str
    delay_s: float | None = None
    connections: int | None = None


class Promises(Struct, frozen=True, omit_defaults=True):
    """The politeness that a run promises. Recorded when it starts, so that an audit can check the run against it."""

    delay_s: float = 1.0
    host_connections: int = 1
    domain_delay_s: float = 0.0
    address_delay_s: float = 0.0
    address_connections: int = 0  # 0: no limit, or a run that did not record it
    allows_unreachable_robots: bool = False
    longest_request_s: float = 30.0
    pace: tuple[PacePromise, ...] = ()
    own_hosts: tuple[str, ...] = ()  # whose robots.txt is not obeyed


class Event(Struct, frozen=True, gc=False, omit_defaults=True):
    """One event. The fields without a default are in every line; the others only if they differ from the default."""

    ts: float
    event: EventName
    url: str
    host: str
    depth: int
    status: int
    bytes: int
    content_type: str
    worker: int
    t_ms_from_start: int
    reason: str
    order: int = 0
    kind: str = ""  # robots, sitemap, dns (a name look-up); empty for a page
    sent_at: float = 0.0
    requests: int = 1
    ttfb_ms: int = 0
    total_ms: int = 0
    address: str = ""
    attempt: int = 0
    target: str = ""
    title: str = ""
    links: int = 0
    new_links: int = 0  # of the first 2,000 links: those behind them are queued later (`engine.link_backlog`)
    directives: str = ""  # noindex, nofollow, noarchive, as in the page
    usage: str = ""  # preferences for the use of the content, verbatim
    # The fields above are passed by position for a page: see `engine/event_emitter`.
    wait_s: float = 0.0
    parent: str = ""
    rule: str = ""
    line: int = 0
    origin: str = ""  # whose robots.txt this is, if a redirect led to another host
    retry_after_s: float = 0.0  # of the answer's Retry-After header
    promises: Promises | None = None  # of the run that starts
    similarity: float = 0.0  # of a near duplicate to the page it duplicates
    # heartbeat
    fetched: int = 0
    enqueued: int = 0
    errors: int = 0
    unique_domains: int = 0
    frontier_size: int = 0
    pages_per_second: float = 0.0  # on average, in this run
    # a stored record that recovery could not place
    file: str = ""
    offset: int = 0
    held: dict[str, int] | None = None  # at the end of a run: URLs that are held back, by rule
    evicted: int = 0  # likewise: URLs that left the queue because of its maximum length
    url_id: str = ""  # of a link that was not queued, if its URL is cut
    found: str = ""  # by another visit of a known URL: changed, same, missing, gone, failed


def outcome_of(event: Event) -> str:
    """Return the outcome that an event of a request records."""
    if event.event in (EventName.FETCH_OK, EventName.SITEMAP_READ):
        return Outcome.OK.value
    return event.reason.partition(":")[0]


def masked(url: str) -> str:
    """Return a URL without the values of its query parameters, as everything shows it with `--mask-queries`.

    A part without a name is a value.
    """
    bare, mark, query = url.partition("?")
    return bare + mark + "&".join(_masked_part(part) for part in query.split("&"))


def _masked_part(part: str) -> str:
    name, equals, _ = part.partition("=")
    return f"{name}=*" if equals else "*" * bool(part)


def masked_text(text: str) -> str:
    """Return a text for people in which all URLs are masked."""
    return _QUERY.sub(lambda match: masked(match.group()), text)


def masked_values(value: Any) -> Any:  # noqa: ANN401 - anything that becomes JSON
    """Return texts, lists and objects in which all URLs are masked."""
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, dict):
        return {masked_values(key): masked_values(part) for key, part in value.items()}
    return [masked_values(part) for part in value] if isinstance(value, list) else value


def masked_event(event: Event) -> Event:
    """Return an event in which all URLs are masked."""
    return replace(
        event,
        url=masked(event.url),
        target=masked(event.target),
        reason=masked_text(event.reason),
        rule=event.rule if event.event is EventName.ROBOTS_DISALLOW else masked_text(event.rule),
    )


Emit: TypeAlias = Callable[[Event], None]
