"""The values that cross a process, a queue or a layer. No behaviour.

Times are seconds on the crawl's own time line (`now`): the wall clock read once at
start plus monotonic time since. They are valid as dates and never run backwards.
A `UrlId` is 16 bytes, its host's id first, so that the URLs of a host, and the hosts of a
shard, are adjacent in every sorted store: see `core/url/identity`.
"""

# Without the annotations of __future__: what a decoder is made for would be compiled and evaluated from text, field by
# field, at every start: 30 µs each.
from enum import IntEnum, StrEnum
from typing import TypeAlias

from msgspec import Struct

UrlId: TypeAlias = bytes
HostId: TypeAlias = bytes  # the first 8 bytes of a UrlId
TextHash: TypeAlias = bytes  # 8 bytes, of a page's text
QueuePosition: TypeAlias = tuple[int, int, UrlId]  # priority, seq, id: unique within a host, and its order


class FetchKind(IntEnum):
    PAGE = 0
    ROBOTS = 1
    SITEMAP = 2
    REQUISITE = 3  # what a page needs to be shown: see `core/links/requisite`


class Known(IntEnum):
    """What is known of a URL that waits to be fetched."""

    NEW = 0  # it is queued, and was never answered
    URL = 1  # it is due again; the last answer was no page
    PAGE = 2  # it is due again; the last answer was a page


class Source(IntEnum):
    SEED = 0
    LINK = 1
    REDIRECT = 2
    SITEMAP = 3
    NOTICE = 4
    PROBE = 5  # our own: a page that cannot exist, to see how the host reports "not found"


class Outcome(StrEnum):
    """How a fetch ended. One word each, the same in events, reports and metrics."""

    OK = "ok"  # 200 with a type that is stored: a page
    OTHER_SUCCESS = "other_success"  # another 2xx: stored, and its links followed, but it is no page
    NOT_MODIFIED = "not_modified"  # 304 to a conditional request
    REDIRECT = "redirect"  # 3xx with a usable Location
    LINKS_ONLY = "links_only"  # 2xx, read for its links and not stored: a PDF
    TYPE_REFUSED = "type_refused"  # 2xx of a type that is not kept: aborted after the headers
    CLIENT_ERROR = "client_error"  # 4xx except 429
    RATE_LIMITED = "rate_limited"  # 429
    HEAD_REFUSED = "head_refused"  # 4xx or 501 to HEAD, with `--check-only`: asked again with GET
    SERVER_ERROR = "server_error"  # 5xx
    BAD_STATUS = "bad_status"  # an invalid status: 1xx as final, 304 to an unconditional request, outside 100-599
    DNS_NOT_FOUND = "dns_not_found"
    DNS_FAILED = "dns_failed"  # no answer, or a temporary failure
    BLOCKED_ADDRESS = "blocked_address"
    NO_HTTPS = "no_https"  # a bare domain was tried over https, and there is none: it is fetched over http, no error
    CONNECT_FAILED = "connect_failed"  # refused or unreachable
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_ERROR = "tls_error"
    TIMEOUT = "timeout"  # connected, then no data or too slow
    DISCONNECTED = "disconnected"  # reset or closed before the answer was complete
    PROTOCOL_ERROR = "protocol_error"
    HEADER_TOO_LARGE = "header_too_large"
    BAD_REDIRECT = "bad_redirect"  # Location is missing or not http(s)
    REDIRECT_LOOP = "redirect_loop"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    ROBOTS_DENIED = "robots_denied"
    EVICTED = "evicted"
    OPTED_OUT = "opted_out"  # its host opted out
    WORKER_LOST = "worker_lost"  # the process that had the task died
    INTERNAL_ERROR = "internal_error"  # our own code failed on it: the details are in events/crash.txt
    QUARANTINED = "quarantined"  # of a pattern without new content: see `gossamer traps`


# Everything else is an error, or a decision not to fetch.
ANSWERED = frozenset(
    {
        Outcome.OK,
        Outcome.OTHER_SUCCESS,
        Outcome.NOT_MODIFIED,
        Outcome.REDIRECT,
        Outcome.LINKS_ONLY,
        Outcome.TYPE_REFUSED,
    }
)


class Truncation(StrEnum):
    """Why a body is incomplete; the values of WARC-Truncated."""

    NONE = ""
    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"


class Link(Struct, frozen=True, gc=False):
    """A URL found somewhere, in canonical form and with its identity."""

    url: str  # as requested: WHATWG href without fragment
    id: UrlId
    host: str


class QueuedUrl(Struct, frozen=True, gc=False, array_like=True):
    """A URL that was accepted and waits to be fetched."""

    url: str
    id: UrlId
    host: str
    priority: int  # within its host; lower is sooner
    seq: int  # order of arrival, assigned by the owner of its shard
    depth: int
    kind: FetchKind = FetchKind.PAGE
    source: Source = Source.LINK
    parent: UrlId = b""
    hops: int = 0  # redirects that led to this URL
    attempt: int = 0  # fetches that failed so far
    not_before: float = 0.0
    found_at: float = 0.0
    https_first: bool = False  # a bare domain: fall back to http if https fails
    etag: str = ""
    last_modified: str = ""
    lastmod: str = ""  # when it last changed, according to a sitemap
    seed: int = 0  # number of the seed that it descends from, if that has rules or metadata of its own
    known: Known = Known.NEW  # otherwise it is in no queue: `not_before` is when it was due

    @property
    def position(self) -> QueuePosition:
        """Position in its host's queue. The id is last: it separates URLs with equal priority and seq."""
        return self.priority, self.seq, self.id


class ArchiveSpan(Struct, frozen=True, gc=False, array_like=True):
    """The location of a record's gzip member."""

    file: str  # file name within archive/, without .open
    offset: int
    length: int


class ContentRecord(Struct, frozen=True, array_like=True):
    """The first page with a content: later copies refer to it."""

    url_id: UrlId
    url: str
    date: float  # of its archive record
    payload_digest: bytes
    archived: ArchiveSpan | None = None


class FetchTask(Struct, frozen=True, gc=False, array_like=True):
    """Permission to make one request, now."""

    id: int
    kind: FetchKind
    url: str
    url_id: UrlId
    host: str
    addresses: tuple[str, ...]  # the IP address to connect to: one, whose gate this request has passed
    depth: int
    hops: int
    attempt: int
    issued_at: float
    etag: str = ""
    last_modified: str = ""
    report_sent: bool = False  # report immediately when the request is sent
    needs_links: bool = True  # false if the depth limit makes links useless
    stored: ContentRecord | None = None  # the copy that a conditional request refers to
    seed: int = 0
    send_until: float = 0.0  # on the lease clock: after this it is not sent, but returned; 0: at any time
    is_anonymous: bool = False  # requested without credentials: another domain names it
    limit_s: float = 0.0  # how long all of it may take, from its start; 0: as long as the limits of each step allow


class SpamVerdict(Struct, frozen=True, gc=False, array_like=True):
    score: float  # from 0 to 1
    signals: tuple[str, ...] = ()  # by name, the strongest first


class Anchor(Struct, frozen=True, gc=False, array_like=True):
    """What a page says about a link."""

    text: str
    rel: str = ""  # in lower case


class Requisites(Struct, frozen=True, array_like=True):
    """What a page or a stylesheet needs to be shown, as far as it may be fetched: stylesheets first."""

    links: list[Link]  # with the ids of requisites
    stylesheets: int  # of the first of them
    found: int  # also those beyond the limit


class Result(Struct, array_like=True):
    """What became of a task. Small: bodies stay in the worker that archived them."""

    task_id: int
    outcome: Outcome
    status: int = 0
    error: str = ""
    sent_at: float = 0.0
    requests_sent: int = 0
    first_byte_at: float = 0.0
    finished_at: float = 0.0
    address: str = ""
    wire_bytes: int = 0
    content_bytes: int = 0
    content_type: str = ""
    charset: str = ""
    language: str = ""
    title: str = ""
    truncated: Truncation = Truncation.NONE
    content_hash: bytes = b""  # of the decoded body, 16 bytes; empty if there is none
    payload_digest: bytes = b""  # SHA-1 of the stored body, if archived
    duplicate_of: UrlId = b""
    etag: str = ""
    last_modified: str = ""
    retry_after_s: float = -1.0  # -1: not given
    redirect_to: str = ""  # canonical target
    links: list[Link] = []
    links_found: int = 0
    robots: bytes = b""  # the body of robots.txt, for ROBOTS tasks
    archived: ArchiveSpan | None = None  # the response (or revisit) record
    archive_end: int = 0  # length of the archive file with all records of this task
    worker: int = 0
    words: int = 0
    preview: str = ""  # first words, of as many pages as somebody wants to see
    exact_text: TextHash = b""  # hash of the text to the letter; only if there is no MinHash signature
    text_hash: TextHash = b""  # of the page's text, see parse.fingerprint; empty if it has none
    directives: str = ""  # noindex, nofollow, noarchive, as in the page
    usage: str = ""  # preferences for the use of the content, verbatim
    lastmods: dict[UrlId, str] = {}  # of a sitemap's entries, verbatim
    nofollow_links: int = 0  # anchors with rel=nofollow; all links of a page with nofollow
    signature: bytes = b""  # of the text, for comparison with other pages; empty if there is none
    near_duplicate_of: UrlId = b""
    similarity: float = 0.0  # to that page
    connect_s: float = -1.0  # as in Exchange, like the next
    tls_s: float = -1.0
    sketch: bytes = b""  # of the text, to compare with the page's next version; only if pages are fetched again
    spam: SpamVerdict | None = None  # None: nothing suspicious
    fresh_s: float = 0.0  # how long it stays as it is, by Cache-Control or a feed's ttl; 0: it does not say
    spam_reason: str = ""  # of its signals, with the numbers that decided
    template: bytes = b""  # see `core.spam.page`
    anchors: dict[UrlId, Anchor] = {}  # of its links, only if a hook or plugin decides about links
    requisites: Requisites | None = None  # only if they are to be fetched
    short_text: TextHash = b""  # likewise, of a text that is too short to be compared with those of other kinds
    numbers: TextHash = b""  # of its text's numbers that its URL has not; empty if that has none
    is_prose: bool = True  # its text repeats some words, as sentences do


AVERAGE_RANK = 0.5  # of a host that nobody has ranked


class Completed(Struct, frozen=True):
    """A task that has ended, and its result with what the crawl knows about the page: is it a copy, or spam?"""

    task: FetchTask
    result: Result
    are_links_final: bool = False  # none of its links need to be reported again


class HostRecord(Struct, array_like=True):
    """What the ledger stores for a host: its counts and the promises made to it."""

    name: str
    domain: str
    rank: float = AVERAGE_RANK  # from 0, least important, to 1
    queued: int = 0
    pages: int = 0
    fetches: int = 0
    errors: int = 0
    failures_in_a_row: int = 0
    next_at: float = 0.0  # no request before this
    parked_until: float = 0.0
    park_reason: str = ""
    delay_s: float = 0.0  # current delay
    backoff: int = 0  # times the delay was doubled
    is_dead: bool = False
    is_blocked: bool = False
    bytes: int = 0
    latency_s: float = 0.0
    first_seen_at: float = 0.0
    last_fetch_at: float = 0.0
    addresses: tuple[str, ...] = ()
    addresses_until: float = 0.0
    robots_tries: int = 0
    swapped_out_until: float = 0.0  # 0: not swapped out
    oversize: int = 0  # answers that exceeded the size limit
    soft_404: TextHash = b""  # text of its "not found" page with status 200; empty if it has none
    best_latency_s: float = 0.0  # latency without load
    slow_steps: int = 0  # times the delay was doubled because of rising latency
    slowed_at: float = 0.0  # when the delay was last doubled
    answers: int = 0  # since the pace was last evaluated
    server_errors: list[tuple[int, int]] = []  # answers with 5xx: the hour since 1970, and how many; of the last day
    requisites: int = 0  # of what is queued
    has_answered: bool = False  # a request, with whatever status
    is_unreached: bool = False  # it has failed, and never answered: it does not count for its domain
    is_introduced: bool = False  # a page of another domain was the first to name it
    probe: int = 0  # the number of the candidate that is its id: see `core/url/identity`


class UrlState(IntEnum):
    QUEUED = 0
    DONE = 1
    DEAD = 2


class Revisit(Struct, array_like=True, gc=False):
    """What is stored of a URL in order to fetch it again."""

    state: bytes  # see `core.revisit.page`
    due_at: int = 0  # 0: it is not fetched again
    sketch: bytes = b""  # of the text at the last visit
    history: bytes = b""  # of the last visits, see `core.revisit.history`
    claims: int = 0  # a bit for each `HintKind` that says it has changed since
    fresh_s: int = 0  # how long it would stay as it is, by its own word at the last visit


class RequestTimes(Struct, frozen=True, gc=False, array_like=True):
    """How long a request took, in milliseconds; -1: not known, or there was no such part."""

    first_byte: int  # since the request was sent
    total: int  # until the last byte, with connection and handshake
    connect: int = -1  # -1 on a kept connection
    tls: int = -1  # the handshake


class UrlRecord(Struct, array_like=True):
    """A row of the catalog: everything known about a URL."""

    url: str
    state: UrlState
    depth: int
    source: Source
    kind: FetchKind
    parent: UrlId
    priority: int
    seq: int
    hops: int
    attempt: int
    not_before: float
    found_at: float
    https_first: bool = False
    fetched_at: float = 0.0
    outcome: str = ""
    error: str = ""
    status: int = 0
    content_type: str = ""
    charset: str = ""
    language: str = ""
    title: str = ""
    wire_bytes: int = 0
    content_bytes: int = 0
    content_hash: bytes = b""
    duplicate_of: UrlId = b""
    etag: str = ""
    last_modified: str = ""
    redirect_to: str = ""
    archived: ArchiveSpan | None = None
    visits: int = 0
    truncated: str = ""
    directives: str = ""  # noindex, nofollow, noarchive, as in the page
    usage: str = ""  # preferences for the use of the content, of the page and of its robots.txt
    lastmod: str = ""  # when it last changed, according to a sitemap
    near_duplicate_of: UrlId = b""  # a page with nearly the same text that duplicates no other itself
    similarity: float = 0.0  # to that page
    nofollow_links: int = 0  # anchors with rel=nofollow, and all links of a page with nofollow: not followed
    links_found: int = 0
    worker: int = 0  # that fetched it
    seed: int = 0  # number of the seed that it descends from, if that has rules or metadata of its own
    words: int = 0  # in the text
    revisit: Revisit | None = None  # None: it is not to be fetched again
    spam: SpamVerdict | None = None  # None: nothing suspicious
    times: RequestTimes | None = None  # of the last answer; None: not known
    is_soft_404: bool = False  # "not found" with status 200


class RobotsRecord(Struct, array_like=True):
    """robots.txt of an origin as stored in the ledger."""

    origin: str
    status: int
    outcome: str
    body: bytes
    fetched_at: float
    expires_at: float
    etag: str = ""
    last_modified: str = ""
    stored: ContentRecord | None = None  # the answer with this body, in the archive
    is_compressed: bool = False  # the body, in the row of a ledger only: see `core.rows`
    probe: int = 0  # of its host


class Reserve(Struct, frozen=True, gc=False, array_like=True):
    """A URL of a domain that the first pass tries if the queued one yields no page."""

    url: str
    depth: int
    seed: int = 0


class DomainRecord(Struct, array_like=True):
    """What the ledger stores for a registrable domain."""

    name: str
    pages: int = 0
    hosts: int = 0
    reserves: tuple[Reserve, ...] = ()  # of the first pass
    unreached: int = 0  # of the hosts: they have failed, and never answered
    introduced: int = 0  # of the others: that pages of another domain were the first to name
    probe: int = 0  # as of a host


class Similar(Struct, frozen=True, gc=False):
    """A page that another one duplicates, and the similarity from 0 to 1."""

    url_id: UrlId
    similarity: float


class ChangeKind(IntEnum):
    """What a completed visit means for somebody who maintains a copy of the corpus."""

    UPSERT = 0  # a page that is new, or whose content is new
    UNCHANGED = 1  # as at the previous visit
    GONE = 2  # 404, 410, or "not found" with status 200
    DUPLICATE = 3  # the content of another page, which the catalog's row names


class Change(Struct, frozen=True, gc=False, array_like=True):
    """An entry of the change feed. `seq` only grows, and is never reused."""

    seq: int
    url_id: UrlId
    kind: ChangeKind


SITEMAP_INDEX = "application/x-sitemap-index"  # content type of a sitemap that lists sitemaps
