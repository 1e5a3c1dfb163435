"""The settings of a crawl as keyword arguments, with their types, for editors and type checkers.

One key per field of `settings.model.Settings`; a test compares the two. At run time the settings are checked
as those of the command line are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from gossamer.settings.model import PaceSetting
from gossamer.settings.requests import RequestSetting


class CrawlOptions(TypedDict, total=False):
    """Every setting; `gossamer crawl --help` explains them under the same names, with `-` for `_`."""

    max_pages: int | None  # stop after N pages fetched successfully (10000)
    max_depth: int  # links followed from a seed
    max_time: float | None  # stop cleanly after SECONDS
    max_pages_per_host: int | None  # at most N pages of a host
    max_pages_per_domain: int | None  # at most N pages of a registrable domain
    domain_budget_by_rank: bool  # a quarter to four times --max-pages-per-domain, by the rank of the domain
    max_hosts_per_domain: int  # at most N hosts of a registrable domain that answer, against wildcard DNS
    max_hosts_per_address: int  # N hosts at one IP address at will, then one more per second, 0 = no limit
    target_unique_domains: int | None  # first pass for breadth: stop at N registrable domains
    after_target: Literal["stop", "continue"]  # after the first pass: stop, or continue with the normal policy
    scope: Literal["page", "prefix", "host", "domain", "any"] | None  # how far from the seeds (domain)
    order: Literal["breadth", "score", "random", "tiers"]  # frontier order
    rank_every: int | None  # rank domains by links every N pages, 0 = never (0; for tiers 100000)
    random_seed: int  # seed of --order random
    include_pattern: Sequence[str]  # include URLs that match, even if excluded
    exclude_pattern: Sequence[str]  # exclude URLs that match, in addition to the built-in ones
    default_excludes: bool  # exclude pages for logging in, administration and shopping
    block_host: Sequence[str]  # never contact this host or domain
    max_links_per_page: int  # new URLs queued from one page
    max_queued: int | None  # at most N URLs queued; the lowest priority becomes dead letters
    politeness_ms: int  # minimum time between two requests to a host
    host_connections: int  # requests in flight to one host name
    domain_connections: int  # requests in flight to one registrable domain, 0 = no limit
    domain_politeness_ms: int  # minimum time between two requests to a registrable domain, 0 = by host only
    address_politeness_ms: int  # minimum time between two requests to an IP address, 0 = by host only
    address_connections: int  # requests in flight to one IP address, 0 = no limit
    domain_share: int  # of all connections, and of a shared IP address's, to one registrable domain, 100 = no limit
    connections: int  # requests in flight per worker process
    workers: int | Literal["auto"]  # processes, not threads; auto, or 0 = one per core
    timeout: float  # for connect, TLS, first byte and silence each; 3 times that for a whole answer
    max_bytes: int  # maximum size of a body, decoded and on the wire
    max_oversize: (
        int | None
    )  # after N answers over max_bytes, follow no deep links to their host (3, if half its pages)
    memory: int | str | None  # memory ceiling of all processes, as 2G or 512M (3/4 of the machine's)
    max_redirects: int  # redirects followed in a row, at most 20, as in browsers
    max_wait: float  # the crawl is over when everything left is parked for longer
    retries: int  # further attempts at a URL that failed
    retry_wait: float  # first wait before a retry, then times 4
    sitemaps: Literal["mixed", "first", "off"]  # sitemaps that robots.txt lists
    user_agent: str  # the User-Agent header (Gossamer/VERSION (+contact))
    robots_token: str  # the name by which robots.txt addresses this crawler (from the User-Agent)
    contact: str  # who is crawling: a URL or mail address
    robots_unreachable: Literal["deny", "allow"]  # if robots.txt cannot be reached: 5xx, time-out, no connection
    own_host: Sequence[str]  # a host of your own: what its robots.txt forbids is fetched all the same
    check_only: bool  # only ask whether URLs are there: HEAD, then GET if refused; no page is read
    insecure: Sequence[str]  # do not check the certificates of this host, or of *.example.org
    proxy: str  # make requests through http://host:port, socks5://… or socks5h://…; none: not even as https_proxy says
    requisites: bool  # fetch and store what pages need to be shown (styles, images, scripts, fonts), of any host
    max_requisites_per_page: int  # with requisites: at most N for one page, with those that its stylesheets name
    parse_pdf_links: bool  # extract links from PDF files
    pdf: Literal["links", "deep"]  # deep: text and all links, with gossamer[pdf]
    follow_duplicates: bool  # follow the links of pages seen under another URL
    near_dup: Literal["off", "simhash", "minhash"]  # how pages with nearly the same text are found
    cooldown_sec: int  # a URL found again after N seconds is fetched again; 0 = never
    revisit: bool  # go on after everything was fetched: fetch pages again when they are due
    revisit_min: float  # shortest interval between two visits
    revisit_max: float  # longest interval between two visits
    revisit_rule: Literal["adaptive", "steps"]
    revisit_per_day: int  # fetches of known pages per day, 0 = a quarter of their number
    revisit_share: float  # share of the fetches for known pages while there are new ones
    revisit_class: Sequence[str]  # class of URLs that match: news, popular, static or rare
    store: Sequence[str]  # where pages go: warc, files, s3://bucket/prefix or mongodb://host:port/database (warc)
    catalog: Sequence[str]
    feed: Sequence[str]  # topic that gets every document: kafka://broker:port,…/topic
    s3_layout: Literal["segments", "page"]  # in S3: WARC files made of segments, or an object per page
    spool: int | str | None  # pause while this much in the folder waits for S3, as 500M (4G)
    types: Literal["all", "html"]  # html: answers of all other types are cut off after the header
    accept: Sequence[str]  # store this type too, as image/png or image/*
    save_interval: int  # pages per WARC file
    dns: str  # use this DNS server and no other
    ca_file: str  # further certificate authorities, as PEM; SSL_CERT_FILE too
    dns_rate: int  # at most N DNS queries per second, 0 = no limit
    crawl_log: bool  # write crawl.log too, one line per fetch in the format of Heritrix
    spam: Literal["demote", "quarantine", "off"]
    traps: bool  # hold back URL patterns that make themselves, probe for soft 404
    trap_budget: int  # pages of a host's suspected patterns fetched in the end; a tenth of its pages if more
    allow_network: Sequence[str]  # private or loopback range that links may lead to
    mask_queries: bool  # mask the values of query parameters in all that is shown
    region: Sequence[str]
    geoip: str  # countries of addresses, in MaxMind's format, for country: rules; every node
    strict_regions: bool  # domains with a label wait until a node with it is alive
    plugin: Sequence[str]
    ui: bool  # serve the dashboard on loopback; its address is printed
    ui_listen: str  # where the dashboard is served (127.0.0.1:0, any free port)
    ui_url: str  # the URL at which a reverse proxy serves the dashboard, as https://ops.example.org/crawl/
    ui_token_file: str  # the dashboard's token is the one in this file, which is made if there is none
    metrics_listen: str  # serve /metrics, /healthz and /readyz there, without a token
    pace: Sequence[PaceSetting]  # delay and connections by host pattern (file only)
    request: Sequence[RequestSetting | dict[str, object]]  # logins, headers, cookies, certificates, proxies by pattern
