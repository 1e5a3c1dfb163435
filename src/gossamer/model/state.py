"""The state of a crawl, a shard and a host that survives a restart, beside their rows in the catalog.

Typed records instead of named values: they list what a decision can depend on, and a typo is an error.
"""

# Without the annotations of __future__, as in `records`.
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from gossamer.model.figures import ActiveWarning, Figures, Totals
from gossamer.model.records import AVERAGE_RANK, FetchKind, Link, Source, TextHash, UrlId


class Reread(Struct):
    """Pages whose links are followed after all, since a limit was raised: which, and how far that has got."""

    from_depth: int
    before: float  # pages that were fetched before
    after: UrlId = b""  # the last one that was read
    pages: int = 0
    new_links: int = 0
    seeds: dict[int, int] = {}  # from which depth, for pages of seeds whose own depth was raised
    requisites: bool = False  # all pages, for what they need to be shown


class CrawlState(Struct):
    """The state of the whole crawl: one record, written with every commit."""

    totals: Totals = field(default_factory=Totals)
    saved_at: float = 0.0  # on the time line of the run that wrote it: shows whether the clock was set back since
    is_running: bool = False  # still true when the ledger is opened: the previous run was killed
    scope: list[str] = []  # URLs that define the scope: seeds, and the targets of their redirects
    opened_addresses: list[str] = []  # private addresses that a seed named, which links may lead to
    figures: Figures | None = None  # of the last run that ended
    max_depth: int = -1  # of the last run; -1: not known
    has_dropped_links: bool = False  # a first pass dropped links, since it was to stop at its target
    reread: Reread | None = None
    is_paused: bool = False  # by the operator
    added_seeds: list[str] = []  # lines, for the next run to queue
    reported_urls: list[str] = []  # said to have changed while no crawl ran: the next run applies them
    event_ends: dict[str, int] = {}  # by event file: its length at the commit. What follows is not in the totals
    released: int = 0  # URLs whose quarantine was ended since the last run: the next one queues them
    fetches_requisites: bool = False  # the pages of the last run, and of those before, were read for them
    ranked_at: str = ""  # when the ranks that all hosts have were computed; empty: they have none


class SeedRecord(Struct, array_like=True):
    """A seed with rules or metadata of its own, which apply to every page that descends from it."""

    url: str
    number: int = 0  # by which queued URLs and rows of the catalog refer to it; from 1
    scope: str = ""  # page, prefix, host, domain or any; empty: the crawl's
    depth: int = -1  # links followed from it; -1: the crawl's
    metadata: dict[str, str] = {}
    joined: list[str] = []  # targets of its redirects, which extend its own scope

    @property
    def stated(self) -> str:
        """Rules and metadata as in a file of seeds, separated by blanks."""
        own = {"scope": self.scope} if self.scope else {}
        depth = {"depth": str(self.depth)} if self.depth >= 0 else {}
        fields = {**own, **depth, **self.metadata}
        return " ".join(f"{key}={_quoted(value)}" for key, value in fields.items())


def _quoted(value: str) -> str:
    return repr(value) if " " in value or not value else value


class LinkMeta(Struct, array_like=True):
    """What a program attached to a link when it was queued, for the page that it leads to."""

    id: UrlId
    meta: bytes  # JSON, an object


class ShardState(Struct, array_like=True):
    """The state of one shard, for its next owner.

    Both numbers are Lamport clocks: an owner continues from the greatest number of any of its shards, so
    numbers grow within a shard regardless of the owner, and on one machine they are the order of arrival.
    """

    next_seq: int = 1  # of the next URL that is admitted
    last_change: int = 0  # number of the shard's last entry in the change feed


class HostEvidence(Struct, array_like=True):
    """What was learned about a host's URLs: the basis of decisions about traps."""

    host: str
    dated_urls: int = 0  # admitted with a date in the path or query: the calendar budget
    is_probed: bool = False  # a page that cannot exist was requested
    repeated_texts: dict[TextHash, int] = {}  # pages per text, from the second page on
    dated_new: int = 0  # of the dated URLs, those that proved to bring new content
    dated_unjudged: int = 0  # dated pages since the last judgement
    is_calendar: bool = False  # the last judgement of its dated pages: nothing new


class HoldRule(StrEnum):
    """Why a link is held back instead of queued or refused."""

    FIRST_PASS = "first_pass"  # noqa: S105 - a rule; until enough domains are reached
    CALENDAR = "calendar"  # until earlier dated pages of its host proved to bring new content
    QUARANTINE = "quarantine"  # until the operator releases its pattern
    SPAM = "spam"  # until the operator releases its host, most of whose pages are spam
    HOSTS_PER_DOMAIN = "hosts_per_domain"  # until its domain has room for its host


class HeldUrl(Struct, array_like=True):
    """A link that is held back: all that is needed to offer it again."""

    url: str
    id: UrlId
    rule: HoldRule
    depth: int
    source: Source
    kind: FetchKind
    parent: UrlId
    hops: int = 0
    since: float = 0.0
    lastmod: str = ""
    seed: int = 0


class SpamTally(Struct, array_like=True):
    """How much spam the pages of a host, or of all hosts of a domain, are: see `core/spam/hosts.py`."""

    name: str
    is_domain: bool = False
    pages: int = 0  # fetched, when it was last counted
    spam: int = 0  # of them
    seen: int = 0  # pages since the first spam
    near: int = 0  # of these, those that repeat others
    signals: dict[str, int] = {}
    templates: dict[bytes, int] = {}  # pages per text without the words of title and address
    samples: list[str] = []  # URLs of spam
    hosts: int = 0  # of a domain: those with spam
    made: int = 0  # of these, those with machine-made names
    level: int = 0  # of a domain: what was decided about those, because it is a farm of hosts


class LinkBatch(Struct, array_like=True):
    """Some of the links of a long page or sitemap, which wait to be offered."""

    parent: UrlId  # the page
    number: int  # of the batch
    links: list[Link]
    depth: int
    source: Source
    kind: FetchKind
    found_on: str
    seed: int = 0
    added: int = 0  # links that the page had added before
    lastmods: dict[UrlId, str] = {}
    capped: int = 0  # links that were over the limit for one page before


class IntroducedBatch(Struct, array_like=True):
    """Some of the links of a page to new hosts, which wait because pages at its address led to very many."""

    parent: UrlId  # the page
    number: int  # of the batch: an arrival
    urls: bytes  # one per line, compressed
    count: int
    depth: int
    source: Source
    kind: FetchKind
    found_on: str
    seed: int = 0
    lastmods: dict[UrlId, str] = {}
    submitter: str = ""  # of sitemaps: the domain whose robots.txt lists them


class HostHeld(Struct, array_like=True):
    host: str
    urls: dict[str, int] = {}  # by rule
    bytes: int = 0  # of their rows, about
    dropped: int = 0  # links beyond the cap, which are not stored


class DomainHome(Struct, array_like=True):
    """Where a domain belongs, by the country of its address; in its first shard, and in that where it belongs."""

    id: bytes  # of the domain, in the shard that has this record
    name: str
    label: str
    country: str = ""  # in the first shard; empty if it is not known


class DomainRank(Struct, array_like=True):
    """How important a domain is, from 0 to 1."""

    domain: str
    computed: float = -1.0  # from links: which share of all rank belongs to lower domains; negative: not ranked
    given: float = -1.0  # by the operator, and counts instead; negative: none

    @property
    def rank(self) -> float:
        """The rank that counts."""
        if self.given >= 0:
            return self.given
        return self.computed if self.computed >= 0 else AVERAGE_RANK


class Submitters(Struct, array_like=True):
    """The domains elsewhere whose robots.txt lists a sitemap: it may contain their URLs."""

    sitemap: UrlId
    domains: tuple[str, ...] = ()


class Terms(Struct, frozen=True):
    """What all nodes of a crawl must agree on: a node that differs would put a host into another shard."""

    protocol: int
    ledger_format: str
    key_rules: str  # digest of the Public Suffix List and of the rules for URL keys


ALL_PATTERNS = "*"  # no pattern has this name: a name begins with a host


class OperatorRequest(Struct, frozen=True):
    """What the owners of shards are to queue again. A request is fulfilled whenever one of its shards is taken.

    It concerns what had happened before it was made: whatever fails or is stored later is left as it is, so
    fulfilling it again does nothing.
    """

    at: float  # when it was made, on the engine's clock
    shards: list[int]  # that have something to be queued again
    outcomes: list[str] = []  # dead letters with one of these outcomes; empty: with any
    hosts: list[str] = []  # of one of these hosts; empty: of any
    stored_on: str = ""  # instead of dead letters: what the archive of this node has
    pattern: str = ""  # instead of dead letters: the URLs of this pattern in quarantine, or of all patterns
    files: frozenset[str] = frozenset()  # archive files of `stored_on` whose names do not say so


ORIGIN_NODE = "origin"  # stands for the folder that a crawl was migrated from, in the ledger


class Origin(Struct, frozen=True):
    """The folder that a crawl was migrated from: what was fetched before is in its archive."""

    id: str  # of its ledger, as it was copied
    state: bytes  # the `CrawlState` in it
    node: str = ""  # that has taken the folder over; empty: none yet


class Migration(Struct, frozen=True):
    """How far the rows of a crawl have been copied. Until it is finished, nobody else may use the copy."""

    source: str  # the id of what is copied
    after: str = ""  # the last lot that was copied, in the words of its source


class IdentityRecord(Struct, frozen=True, array_like=True):
    """What the ids of a crawl depend on: see `core/url/identity`. The key is a secret."""

    key: bytes = bytes(16)
    is_unkeyed: bool = False  # the first candidates are by xxh3: the crawl was begun by an earlier version


class Namesake(Struct, array_like=True):
    """A host or domain that does not have its first candidate as its id, since another one has that."""

    id: bytes  # that it has
    name: str
    probe: int  # the number of the candidate
    is_domain: bool = False


FORMAT_WITHOUT_KEY = "2"  # of a ledger: its ids have no key


class CrawlRecord(Struct):
    """What belongs to a crawl on many nodes as a whole. Every node reads it again when its version has changed."""

    terms: Terms
    settings: bytes  # TOML
    version: int = 1
    started_at: float = 0.0
    scope: list[str] = []  # see `CrawlState`
    budgets: dict[str, int] = {}  # `pages`: how many pages may be fetched
    stop_version: int = 0  # with this version all nodes that had joined before were to stop
    leaving: dict[str, int] = {}  # node -> with this version it was to leave
    ended: str = ""  # why the crawl is over
    requests: list[OperatorRequest] = []
    opened: list[str] = []  # private addresses that a seed named: see `CrawlState`
    blocked: dict[str, list[str]] = {}  # node -> hosts and domains that opted out, by the file in its folder
    is_paused: bool = False  # by the operator
    commands: int = 0  # how many the operator has given
    last_command: str = ""
    seeds: list[SeedRecord] = []  # those with rules or metadata of their own, in order of their numbers, from 1
    origin: Origin | None = None  # if it was migrated from a folder
    migration: Migration | None = None  # that is not finished
    identity: IdentityRecord | None = None  # None: it was begun by an earlier version, and not yet upgraded
    id: str = ""  # of this crawl in this ledger: folders of nodes have it. Empty: it was begun by an earlier version
    earlier: list[str] = []  # its ids in the ledgers that it was migrated from

    @property
    def ids(self) -> IdentityRecord:
        """What the ids of this crawl depend on, also if it is not upgraded."""
        return self.identity or IdentityRecord(is_unkeyed=self.terms.ledger_format == FORMAT_WITHOUT_KEY)


class Waiting(Struct, frozen=True):
    """What waits for a node with a label, since regions are strict and no live node has it."""

    shards: int = 0
    urls: int = 0


class NodeLoad(Struct, frozen=True):
    pages_per_second: float = 0.0  # over the last ten seconds
    bound_by: str = ""  # see `figures.Resource`
    evidence: str = ""
    forecast: str = ""
    private_bytes: int = 0
    warnings: list[ActiveWarning] = []  # the conditions that last
    forecast_s: float | None = None  # for what the node has queued; None: it was not made yet
    forecast_urls: int = 0  # that are in it
    over_budget_urls: int = 0  # queued, and not fetched
    parked_urls: int = 0  # queued at hosts that are parked for longer than the crawl waits
    retried_urls: int = 0  # queued, and waiting to be tried again


class NodeStatus(Struct, frozen=True):
    """What a node reports when it renews its lease."""

    commit: int = 0  # the number of its last commit
    idle: str = ""  # why it has nothing to do; empty if it has. Any commit after `commit` makes this void
    record_version: int = 0  # of the crawl's record that it knows
    domains: int | None = None  # reached by all nodes, as far as it knows; None: it has no first pass any more
    label: str = ""  # its labels, separated by commas
    restoring: int = 0  # shards that it owns and has not read back completely
    in_flight: int = 0
    queued: int = 0
    machine: str = ""  # its host name, and there
    folder: str = ""  # the absolute path of the node's folder: archive, index and events
    waiting: dict[str, Waiting] = {}  # by label: what it owns and must not crawl
    load: NodeLoad = NodeLoad()


class Row(NamedTuple):
    """One change to a table: the row's bytes from now on; None removes it."""

    table: str
    key: bytes
    value: bytes | None
