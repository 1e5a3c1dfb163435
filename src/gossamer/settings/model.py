"""Every setting of a crawl: its name, default and meaning, in one place.

The command line, the TOML file and the environment are all derived from this: `--max-pages`,
`max-pages = …`, `GOSSAMER_MAX_PAGES`. A field's metadata states under which heading it is listed,
how it is read and whether it may change after a crawl has started.
"""

# Without the annotations of __future__, as in `records`.
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from gossamer.core.dedup.scheme import NearDup
from gossamer.core.frontier.priority import QueueOrder
from gossamer.core.links.scope import Reach
from gossamer.core.revisit.schedule import RevisitRule
from gossamer.core.spam.hosts import SpamUse
from gossamer.core.traps.quarantine import BUDGET
from gossamer.settings.requests import RequestSetting


class SitemapUse(StrEnum):
    """How the sitemaps listed in robots.txt are used."""

    MIXED = "mixed"
    FIRST = "first"
    OFF = "off"


class PageTypes(StrEnum):
    """Which answers are pages, and are read and stored whole."""

    ALL = "all"
    HTML = "html"


class PdfUse(StrEnum):
    """How PDF files are read."""

    LINKS = "links"
    DEEP = "deep"


class RobotsUnreachable(StrEnum):
    """What an unreachable robots.txt means."""

    DENY = "deny"
    ALLOW = "allow"


class S3Layout(StrEnum):
    """What the objects of an S3 store are."""

    SEGMENTS = "segments"
    PAGE = "page"


class AfterTarget(StrEnum):
    """What follows the first pass."""

    STOP = "stop"
    CONTINUE = "continue"


class Group(StrEnum):
    """The headings of the options, in this order."""

    WHAT = "what to crawl"
    LIMITS = "limits"
    PACE = "pace and politeness"
    FETCHING = "fetching"
    STORING = "storing"
    REVISIT = "fetching again"
    CLUSTER = "many machines"
    OUTPUT = "output"


class PaceSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Delay and connections for hosts of a pattern: a `[[pace]]` table in the file."""

    host: str
    delay: float | None = None
    connections: int | None = None


def _field(
    group: Group,
    help_text: str,
    *,
    is_fixed: bool = False,
    is_raised_only: bool = False,
    flags: tuple[str, ...] = (),
    metavar: str = "N",
) -> Meta:
    extra = {"group": group, "help": help_text, "is_fixed": is_fixed, "flags": flags, "metavar": metavar}
    return Meta(extra={**extra, "is_raised_only": is_raised_only})


MIN_SPOOL_BYTES = 16 << 20
_Count = Annotated[int, Meta(ge=1)]
_Natural = Annotated[int, Meta(ge=0)]
_Percent = Annotated[int, Meta(ge=1, le=100)]
_Seconds = Annotated[float, Meta(ge=0)]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one crawl. Fields marked fixed must not change once a crawl has started."""

    max_pages: Annotated[
        _Count | None,
        _field(Group.LIMITS, "stop after N pages fetched successfully, or none (10000)", flags=("-n", "--number")),
    ] = None
    max_depth: Annotated[_Natural, _field(Group.LIMITS, "links followed from a seed")] = 10
    max_time: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        _field(Group.LIMITS, "stop cleanly after SECONDS", metavar="SECONDS"),
    ] = None
    max_pages_per_host: Annotated[_Count | None, _field(Group.LIMITS, "at most N pages of a host")] = None
    max_pages_per_domain: Annotated[_Count | None, _field(Group.LIMITS, "at most N pages of a registrable domain")] = (
        None
    )
    domain_budget_by_rank: Annotated[
        bool, _field(Group.LIMITS, "a quarter to four times --max-pages-per-domain, by the rank of the domain")
    ] = False
    max_hosts_per_domain: Annotated[
        _Count, _field(Group.LIMITS, "at most N hosts of a registrable domain that answer, against wildcard DNS")
    ] = 1000
    max_hosts_per_address: Annotated[
        _Natural,
        _field(Group.LIMITS, "N hosts at one IP address at will, then one more per second, 0 = no limit"),
    ] = 1000
    target_unique_domains: Annotated[
        _Count | None, _field(Group.WHAT, "first pass for breadth: stop at N registrable domains", is_raised_only=True)
    ] = None
    after_target: Annotated[
        AfterTarget, _field(Group.WHAT, "after the first pass: stop, or continue with the normal policy")
    ] = AfterTarget.STOP
    scope: Annotated[Reach | None, _field(Group.WHAT, "how far from the seeds (domain)", is_fixed=True)] = None
    order: Annotated[QueueOrder, _field(Group.WHAT, "frontier order", is_fixed=True)] = QueueOrder.BREADTH
    rank_every: Annotated[
        _Natural | None, _field(Group.WHAT, "rank domains by links every N pages, 0 = never (0; for tiers 100000)")
    ] = None
    random_seed: Annotated[_Natural, _field(Group.WHAT, "seed of --order random", is_fixed=True)] = 0
    include_pattern: Annotated[
        tuple[str, ...], _field(Group.WHAT, "include URLs that match, even if excluded", is_fixed=True, metavar="RE")
    ] = ()
    exclude_pattern: Annotated[
        tuple[str, ...],
        _field(Group.WHAT, "exclude URLs that match, in addition to the built-in ones", is_fixed=True, metavar="RE"),
    ] = ()
    default_excludes: Annotated[
        bool, _field(Group.WHAT, "exclude pages for logging in, administration and shopping", is_fixed=True)
    ] = True
    block_host: Annotated[tuple[str, ...], _field(Group.WHAT, "never contact this host or domain", metavar="HOST")] = ()
    max_links_per_page: Annotated[_Count, _field(Group.LIMITS, "new URLs queued from one page")] = 1000
    max_queued: Annotated[
        _Count | None, _field(Group.LIMITS, "at most N URLs queued; the lowest priority becomes dead letters")
    ] = None
    politeness_ms: Annotated[
        _Natural, _field(Group.PACE, "minimum time between two requests to a host", metavar="MS")
    ] = 1000
    host_connections: Annotated[_Count, _field(Group.PACE, "requests in flight to one host name")] = 1
    domain_connections: Annotated[
        _Natural,
        _field(
            Group.PACE, "requests in flight to one registrable domain, 0 = no limit", flags=("--domain-concurrency",)
        ),
    ] = 0
    domain_politeness_ms: Annotated[
        _Natural,
        _field(Group.PACE, "minimum time between two requests to a registrable domain, 0 = by host only", metavar="MS"),
    ] = 0
    address_politeness_ms: Annotated[
        _Natural,
        _field(Group.PACE, "minimum time between two requests to an IP address, 0 = by host only", metavar="MS"),
    ] = 0
    address_connections: Annotated[
        _Natural, _field(Group.PACE, "requests in flight to one IP address, 0 = no limit")
    ] = 20
    domain_share: Annotated[
        _Percent,
        _field(
            Group.PACE,
            "of all connections, and of a shared IP address's, to one registrable domain, 100 = no limit",
            metavar="PERCENT",
        ),
    ] = 75
    connections: Annotated[
        _Count, _field(Group.FETCHING, "requests in flight per worker process", flags=("-c", "--max-concurrency"))
    ] = 256
    workers: Annotated[
        _Natural, _field(Group.FETCHING, "processes, not threads; auto, or 0 = one per core", metavar="N|auto")
    ] = 1
    timeout: Annotated[
        Annotated[float, Meta(gt=0)],
        _field(
            Group.FETCHING,
            "for connect, TLS, first byte and silence each; 3 times that for a whole answer",
            metavar="S",
        ),
    ] = 10.0
    max_bytes: Annotated[_Count, _field(Group.LIMITS, "maximum size of a body, decoded and on the wire")] = 5_000_000
    max_oversize: Annotated[
        _Count | None,
        _field(
            Group.LIMITS, "after N answers over --max-bytes, follow no deep links to their host (3, if half its pages)"
        ),
    ] = None
    memory: Annotated[
        _Count | None,
        _field(Group.LIMITS, "memory ceiling of all processes, as 2G or 512M (3/4 of the machine's)", metavar="SIZE"),
    ] = None
    max_redirects: Annotated[
        Annotated[int, Meta(ge=0, le=20)],  # `MAX_CHAIN` of `reading.why.fates`
        _field(Group.LIMITS, "redirects followed in a row; browsers follow 20"),
    ] = 5
    max_wait: Annotated[
        _Seconds, _field(Group.LIMITS, "the crawl is over when everything left is parked for longer", metavar="S")
    ] = 300.0
    retries: Annotated[
        _Natural, _field(Group.FETCHING, "further attempts at a URL that failed (a time-out: one at most), 0 = none")
    ] = 3
    retry_wait: Annotated[_Seconds, _field(Group.FETCHING, "first wait before a retry, then times 4", metavar="S")] = (
        2.0
    )
    sitemaps: Annotated[SitemapUse, _field(Group.WHAT, "sitemaps that robots.txt lists")] = SitemapUse.MIXED
    user_agent: Annotated[
        str, _field(Group.PACE, "the User-Agent header (Gossamer/VERSION (+contact))", metavar="TEXT")
    ] = ""
    robots_token: Annotated[
        str,
        _field(Group.PACE, "the name by which robots.txt addresses this crawler (from the User-Agent)", metavar="NAME"),
    ] = ""
    contact: Annotated[str, _field(Group.PACE, "who is crawling: a URL or mail address", metavar="URL-OR-MAIL")] = ""
    robots_unreachable: Annotated[
        RobotsUnreachable, _field(Group.PACE, "if robots.txt cannot be reached: 5xx, time-out, no connection")
    ] = RobotsUnreachable.DENY
    own_host: Annotated[
        tuple[str, ...],
        _field(Group.PACE, "a host of your own: what its robots.txt forbids is fetched all the same", metavar="HOST"),
    ] = ()
    check_only: Annotated[
        bool,
        _field(
            Group.FETCHING, "only ask whether URLs are there: HEAD, then GET if refused; no page is read", is_fixed=True
        ),
    ] = False
    requisites: Annotated[
        bool,
        _field(
            Group.STORING,
            "fetch and store what pages need to be shown (styles, images, scripts, fonts), of any host, for replay",
        ),
    ] = False
    max_requisites_per_page: Annotated[
        _Count,
        _field(Group.LIMITS, "with --requisites: at most N for one page, with those that its stylesheets name"),
    ] = 500
    parse_pdf_links: Annotated[bool, _field(Group.WHAT, "extract links from PDF files")] = True
    pdf: Annotated[PdfUse, _field(Group.WHAT, "deep: text and all links, with gossamer[pdf]")] = PdfUse.LINKS
    follow_duplicates: Annotated[bool, _field(Group.WHAT, "follow the links of pages seen under another URL")] = True
    near_dup: Annotated[
        NearDup, _field(Group.STORING, "how pages with nearly the same text are found", is_fixed=True)
    ] = NearDup.MINHASH
    cooldown_sec: Annotated[
        _Natural, _field(Group.WHAT, "a URL found again after N seconds is fetched again; 0 = never")
    ] = 0
    revisit: Annotated[
        bool, _field(Group.REVISIT, "go on after everything was fetched: fetch pages again when they are due")
    ] = False
    revisit_min: Annotated[
        Annotated[float, Meta(gt=0)], _field(Group.REVISIT, "shortest interval between two visits", metavar="S")
    ] = 3600.0
    revisit_max: Annotated[
        Annotated[float, Meta(gt=0)], _field(Group.REVISIT, "longest interval between two visits", metavar="S")
    ] = 2_592_000.0
    revisit_rule: Annotated[
        RevisitRule,
        _field(Group.REVISIT, "by an estimate of the rate; or steps: 5 changes halve it, 3 visits without double it"),
    ] = RevisitRule.ADAPTIVE
    revisit_per_day: Annotated[
        _Natural, _field(Group.REVISIT, "fetches of known pages per day, 0 = a quarter of their number")
    ] = 0
    revisit_share: Annotated[
        Annotated[float, Meta(ge=0, le=1)],
        _field(Group.REVISIT, "share of the fetches for known pages while there are new ones", metavar="SHARE"),
    ] = 0.5
    revisit_class: Annotated[
        tuple[str, ...],
        _field(Group.REVISIT, "class of URLs that match: news, popular, static or rare", metavar="CLASS=RE"),
    ] = ()
    store: Annotated[
        tuple[str, ...],
        _field(
            Group.STORING,
            "where pages go: warc, files, s3://bucket/prefix or mongodb://host:port/database (warc)",
            is_fixed=True,
            metavar="KIND",
        ),
    ] = ("warc",)
    catalog: Annotated[
        tuple[str, ...],
        _field(
            Group.STORING,
            "tables to query: postgresql://host:port/database[/SCHEMA], cassandra://…/keyspace, mongodb://…/database",
            is_fixed=True,
            metavar="URL",
        ),
    ] = ()
    feed: Annotated[
        tuple[str, ...],
        _field(
            Group.STORING,
            "topic that gets every document: kafka://broker:port,…/topic",
            is_fixed=True,
            metavar="URL",
        ),
    ] = ()
    s3_layout: Annotated[
        S3Layout, _field(Group.STORING, "in S3: WARC files made of segments, or an object per page", is_fixed=True)
    ] = S3Layout.SEGMENTS
    spool: Annotated[
        Annotated[int, Meta(ge=MIN_SPOOL_BYTES)] | None,
        _field(Group.STORING, "pause while this much in the folder waits for S3, as 500M (4G)", metavar="SIZE"),
    ] = None
    types: Annotated[
        PageTypes,
        _field(Group.STORING, "html: answers of all other types are cut off after the header", is_fixed=True),
    ] = PageTypes.ALL
    accept: Annotated[
        tuple[str, ...],
        _field(Group.STORING, "store this type too, as image/png or image/*", is_fixed=True, metavar="TYPE"),
    ] = ()
    save_interval: Annotated[_Count, _field(Group.STORING, "pages per WARC file")] = 1000
    dns: Annotated[str, _field(Group.FETCHING, "use this DNS server and no other", metavar="HOST:PORT")] = ""
    ca_file: Annotated[
        str, _field(Group.FETCHING, "further certificate authorities, as PEM; SSL_CERT_FILE too", metavar="FILE")
    ] = ""
    insecure: Annotated[
        tuple[str, ...],
        _field(Group.FETCHING, "do not check the certificates of this host, or of *.example.org", metavar="HOST"),
    ] = ()
    proxy: Annotated[
        str,
        _field(
            Group.FETCHING,
            "make requests through http://host:port, socks5://… or socks5h://…; none: not even as https_proxy says",
            metavar="URL",
        ),
    ] = ""
    dns_rate: Annotated[_Natural, _field(Group.FETCHING, "at most N DNS queries per second, 0 = no limit")] = 0
    crawl_log: Annotated[
        bool, _field(Group.STORING, "write crawl.log too, one line per fetch in the format of Heritrix")
    ] = False
    spam: Annotated[
        SpamUse,
        _field(Group.WHAT, "demote hosts most of whose pages are spam, hold links to them back too, or neither"),
    ] = SpamUse.DEMOTE
    traps: Annotated[bool, _field(Group.WHAT, "hold back URL patterns that make themselves, probe for soft 404")] = True
    trap_budget: Annotated[
        _Natural,
        _field(Group.WHAT, "pages of a host's suspected patterns fetched in the end; a tenth of its pages if more"),
    ] = BUDGET
    allow_network: Annotated[
        tuple[str, ...], _field(Group.FETCHING, "private or loopback range that links may lead to", metavar="CIDR")
    ] = ()
    mask_queries: Annotated[bool, _field(Group.STORING, "mask the values of query parameters in all that is shown")] = (
        False
    )
    region: Annotated[
        tuple[str, ...],
        _field(
            Group.CLUSTER,
            "nodes with label L fetch the domains of a rule: .de=L, example.org=L, country:DE,FR=L, *=L; the first "
            "match decides",
            is_fixed=True,
            metavar="RULE=L",
        ),
    ] = ()
    geoip: Annotated[
        str,
        _field(
            Group.CLUSTER, "countries of addresses, in MaxMind's format, for country: rules; every node", metavar="FILE"
        ),
    ] = ""
    strict_regions: Annotated[
        bool, _field(Group.CLUSTER, "domains with a label wait until a node with it is alive", is_fixed=True)
    ] = False
    plugin: Annotated[
        tuple[str, ...],
        _field(
            Group.WHAT,
            "use an installed plugin: parser, sink, order or link filter; 'gossamer doctor' lists them",
            is_fixed=True,
            metavar="NAME",
        ),
    ] = ()
    ui: Annotated[bool, _field(Group.OUTPUT, "serve the dashboard on loopback; its address is printed")] = False
    ui_listen: Annotated[
        str, _field(Group.OUTPUT, "where the dashboard is served (127.0.0.1:0, any free port)", metavar="HOST:PORT")
    ] = ""
    ui_url: Annotated[
        str,
        _field(
            Group.OUTPUT,
            "the URL at which a reverse proxy serves the dashboard, as https://ops.example.org/crawl/",
            metavar="URL",
        ),
    ] = ""
    ui_token_file: Annotated[
        str,
        _field(
            Group.OUTPUT,
            "the dashboard's token is the one in this file, which is made if there is none",
            metavar="FILE",
        ),
    ] = ""
    metrics_listen: Annotated[
        str,
        _field(Group.OUTPUT, "serve /metrics, /healthz and /readyz there, without a token", metavar="HOST:PORT"),
    ] = ""
    pace: Annotated[
        tuple[PaceSetting, ...], _field(Group.PACE, "delay and connections by host pattern (file only)")
    ] = ()
    request: Annotated[
        tuple[RequestSetting, ...],
        _field(Group.FETCHING, "logins, headers, cookies, certificates and proxies by host pattern (file only)"),
    ] = ()


class Option(Struct, frozen=True):
    """How one setting is specified."""

    name: str
    group: Group
    help: str
    is_fixed: bool
    is_raised_only: bool  # once a crawl has started
    flags: tuple[str, ...]
    metavar: str
    kind: Any
    default: Any

    @property
    def key(self) -> str:
        """The name in files and on the command line."""
        return self.name.replace("_", "-")

    @property
    def is_repeatable(self) -> bool:
        """Return whether it may be given more than once."""
        return get_origin(_bare(self.kind)) is tuple

    @property
    def is_table(self) -> bool:
        """Return whether only a file can give it, as tables."""
        return self.name in ("pace", "request")

    @property
    def is_switch(self) -> bool:
        """Return whether it is on or off."""
        return _bare(self.kind) is bool

    @property
    def choices(self) -> list[str] | None:
        """The allowed values."""
        kinds = [_bare(kind) for kind in get_args(self.kind) or (self.kind,)]
        enums = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum)]
        return [member.value for member in enums[0]] if enums else None


def _bare(kind: Any) -> Any:  # noqa: ANN401 - a type expression
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind


@cache
def options() -> tuple[Option, ...]:
    """Return all settings as options, in order."""
    made: list[Option] = []
    for field in msgspec.structs.fields(Settings):
        kind, *_, meta = get_args(field.type)
        extra: Mapping[str, Any] = meta.extra or {}
        made.append(
            Option(
                name=field.name,
                group=extra["group"],
                help=extra["help"],
                is_fixed=extra["is_fixed"],
                is_raised_only=extra["is_raised_only"],
                flags=extra["flags"],
                metavar=extra["metavar"],
                kind=kind,
                default=field.default,
            )
        )
    return tuple(made)
