"""What is recorded about a crawl: the names of events and their fields. No I/O.

An event is emitted when it happens, at least once, and has the id of its task, so that
readers count a task once. `telemetry.event_log` writes events to a file and reads them
back. Reports, the audit and `why` are read from events and the ledger.
"""

# Without the annotations of __future__, as in `records`.
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gossamer.foundation.expressions import expression
from gossamer.model.records import Outcome

_QUERY = expression(r"\?[^\s'\"<>]+")
MAX_REFUSED_CHARS = 200  # of the URL of a link that was not queued: one page may have thousands of long ones
LOOKUP = "dns"  # the `kind` of events about name look-ups
REQUISITE = "requisite"  # the `kind` of events about what a page needs to be shown


class EventName(StrEnum):
    """The kinds of events. The values are written to `events/` and fixed: scripts rely on them.

    The comments become the reference of events in the documentation.
    """

    STARTED = "started"  # a run begins: the number of new seeds, and the politeness that it promises
    FETCH_OK = "fetch_ok"  # a page was fetched with status 200 and stored
    OTHER_SUCCESS = "other_success"  # 2xx, but not 200
    REDIRECT = "redirect"  # `target` is where it leads; that URL is queued with the rules of its own host
    NOT_MODIFIED = "not_modified"  # 304: the stored copy is current
    TYPE_REFUSED = "type_refused"  # the answer was cut off after its header: its content type is not stored
    ERROR = "error"  # a URL became a dead letter; the reason says what happened
    RETRY = "retry"  # an attempt failed; the next one comes after `wait_s`
    ROBOTS_FETCHED = "robots_fetched"  # robots.txt of an origin was read
    ROBOTS_UNREACHABLE = "robots_unreachable"  # robots.txt cannot be had: nothing of the origin is fetched for now
    ROBOTS_DISALLOW = "robots_disallow"  # robots.txt forbids a URL: `rule` and `line` say which rule
    ROBOTS_OVERRIDDEN = "robots_overridden"  # forbidden, and fetched all the same: the host is the operator's own
    EXCLUDED_BY_RULE = "excluded_by_rule"  # a link was not queued: `rule` says why
    COOLDOWN_SKIP = "cooldown_skip"  # a link was found again before its time
    LINKS_CAPPED = "links_capped"  # a page had more new links than may be queued of one page
    EVICTED = "evicted"  # URLs that left the queue because of its maximum length
    LINKS_READ_AGAIN = "links_read_again"  # of stored pages, after a limit was raised
    PDF_LINKS_EXTRACTED = "pdf_links_extracted"  # links were read from a PDF file, which is not stored
    SITEMAP_READ = "sitemap_read"  # a sitemap was read
    REQUISITE_FETCHED = "requisite_fetched"  # what a page needs to be shown was fetched and stored
    REQUISITE_REFUSED = "requisite_refused"  # what the page `parent` needs was not queued: the reason names the rule
    REQUISITES_CUT = "requisites_cut"  # the page or stylesheet `parent` needs more than may be fetched for one page
    HOST_PARKED = "host_parked"  # no request to a host for `wait_s`: it refused, or failed repeatedly
    HOST_DEAD = "host_dead"  # a host was given up
    HTTPS_MISSING = "https_missing"  # robots.txt of a bare domain was requested over https, and there is none: no error
    HTTP_FALLBACK = "http_fallback"  # https of a bare domain cannot be reached: http is used
    DUPLICATE = "duplicate"  # the content is that of `target`
    NEAR_DUPLICATE = "near_duplicate"  # the text is nearly that of `target`
    HEARTBEAT = "heartbeat"  # figures of the crawl so far, every 50 pages
    WARNING = "warning"  # what an operator should know: `rule` names the warning
    WORKER_LOST = "worker_lost"  # a worker process died; its tasks return to the queue
    OPTED_OUT = "opted_out"  # no more requests to a host or domain, at its owner's request
    OPT_OUT_ENDED = "opt_out_ended"  # an opt-out was withdrawn
    TRAP_SUSPECTED = "trap_suspected"  # a pattern of URLs seems to make itself: it goes behind everything else
    TRAP_QUARANTINED = "trap_quarantined"  # a pattern of URLs makes itself without end: its URLs are held back
    TRAP_CLEARED = "trap_cleared"  # a pattern was suspected or held, and is not any more: what it held is queued
    SOFT_404 = "soft_404"  # "not found" with status 200
    SPAM_PAGE = "spam_page"  # `rule` has its signals, the reason what decided
    SPAM_HOST = "spam_host"  # `rule`: demoted, or quarantined
    QUEUED_AGAIN = "queued_again"  # by the nodes of a cluster, at the operator's request
    RANKED = "ranked"  # domains were ranked by links: `unique_domains`, `links`, `fetched` pages, `total_ms` of the job
    OPERATOR = "operator"  # a command was obeyed: `rule` names it, the reason says what was done, and for whom
    RECOVERED = "recovered"  # what a run found after a crash, and finished or cut off
    STOPPED = "stopped"  # a run ended: the reason, and what is held back


# How a fetch ended. All have the id of their task, except a failed name look-up (`LOOKUP`).
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
        EventName.HTTPS_MISSING,
        EventName.SITEMAP_READ,
        EventName.REQUISITE_FETCHED,
        EventName.PDF_LINKS_EXTRACTED,
    }
)


_FETCH_OK = EventName.FETCH_OK
_OK = Outcome.OK.value
_OK_EVENTS = frozenset({EventName.FETCH_OK, EventName.SITEMAP_READ, EventName.REQUISITE_FETCHED})


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
    shared_connections: int = 0  # to one domain, while others have requests in flight; 0: no limit, or not recorded


class Event(Struct, frozen=True, gc=False, omit_defaults=True):
    """One event. The fields without a default are in every line; the others only if they differ from the default."""

    ts: float  # when, in seconds since 1970
    event: EventName  # its name
    url: str  # the URL, as it was requested
    host: str  # its host name
    depth: int  # links from a seed
    status: int  # of HTTP; 0 if there was no answer
    bytes: int  # of the body, decoded
    content_type: str  # as sent, without parameters
    worker: int  # the number of the process
    t_ms_from_start: int  # milliseconds since the start of the run
    reason: str  # why, in words
    order: int = 0  # the id of the task: a task is counted once, however often its event was written
    kind: str = ""  # robots, sitemap, requisite, dns (a name look-up); empty for a page
    sent_at: float = 0.0  # when the request was written
    requests: int = 1  # how many requests were made
    ttfb_ms: int = 0  # until the first byte
    total_ms: int = 0  # until the last byte
    address: str = ""  # the IP address
    attempt: int = 0  # 0 for the first
    target: str = ""  # where it leads, or what it repeats
    title: str = ""  # of the page
    links: int = 0  # distinct links in the page
    new_links: int = 0  # of the first 2,000 links: those behind them are queued later (`engine.link_backlog`)
    directives: str = ""  # noindex, nofollow, noarchive, as in the page
    usage: str = ""  # preferences for the use of the content, verbatim
    # The fields above are passed by position for a page: see `engine/event_emitter`.
    wait_s: float = 0.0  # until the next attempt
    parent: str = ""  # the page on which it was found
    rule: str = ""  # the rule that decided
    line: int = 0  # of robots.txt
    origin: str = ""  # whose robots.txt this is, if a redirect led to another host
    retry_after_s: float = 0.0  # of the answer's Retry-After header
    promises: Promises | None = None  # of the run that starts
    similarity: float = 0.0  # of a near duplicate to the page it duplicates
    # heartbeat
    fetched: int | UnsetType = UNSET  # pages so far; in every heartbeat, like the next four
    enqueued: int | UnsetType = UNSET  # URLs ever queued
    errors: int | UnsetType = UNSET  # failed fetches
    unique_domains: int | UnsetType = UNSET  # registrable domains with a page
    frontier_size: int | UnsetType = UNSET  # URLs queued now
    pages_per_second: float = 0.0  # on average, in this run
    # a stored record that recovery could not place
    file: str = ""  # of the archive
    offset: int = 0  # in that file
    held: dict[str, int] | None = None  # at the end of a run: URLs that are held back, by rule
    evicted: int = 0  # likewise: URLs that left the queue because of its maximum length
    url_id: str = ""  # of a link that was not queued, if its URL is cut
    found: str = ""  # by another visit of a known URL: changed, same, gone, failed
    version: str = ""  # of the program, when a run starts
    truncated: str = ""  # why a page is incomplete: length (--max-bytes), time, disconnect


def outcome_of(event: Event) -> str:
    """Return the outcome that an event of a request records."""
    if event.event is _FETCH_OK or event.event in _OK_EVENTS:  # an enum's member is hashed by a call
        return _OK
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
