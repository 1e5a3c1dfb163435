"""The shape of `report.json`: types only.

Names of fields are fixed once released: scripts rely on them. Times are seconds since 1970,
spans are seconds unless the name has another unit.
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.reading.aggregates import NamedCount, Percentiles, SizeClass
from gossamer.telemetry.forecast import HostLeft
from gossamer.telemetry.summary import Summary


class Point(Struct, frozen=True):
    """The crawl up to a point in crawl time (pauses between runs do not count)."""

    t_s: float
    pages: int
    pages_per_second: float  # in the bin that ends here
    errors: int
    domains: int
    queued: int


class FetchFigures(Struct, kw_only=True):
    """How fetches ended, each counted once. `requests` are those sent, repeated ones included."""

    requests: int
    outcomes: list[NamedCount]
    statuses: list[NamedCount]
    errors: list[NamedCount]  # as `figures.is_error` defines them
    retries: int
    redirects: int
    workers_lost: int
    not_committed: int  # fetches of killed processes that count nowhere else: the next run made or finished them again
    first_byte_ms: Percentiles
    total_ms: Percentiles


class RobotsFigures(Struct, kw_only=True):
    """Requests for robots.txt, and the URLs that it disallowed."""

    fetched: int
    unreachable: int
    answers: list[NamedCount]
    disallowed: int
    rules: list[NamedCount]


class CorpusFigures(Struct, kw_only=True):
    """What was collected."""

    content_types: list[NamedCount]
    languages: list[NamedCount]  # as the pages declare them
    languages_detected: list[NamedCount]  # in the texts of a sample, or of all pages
    languages_checked: int  # pages whose text was read for that
    languages_differ: int  # of them, those that declare another language than was detected
    languages_sampled: bool = True  # whether it is a sample
    depths: list[int]  # pages at depth 0, 1, …
    content_bytes: Percentiles
    sizes: list[SizeClass]
    words: int
    words_per_page: float
    duplicates: int
    near_duplicates: int
    spam_pages: int
    spam_hosts: int
    truncated: list[NamedCount]
    sources: list[NamedCount]
    domains: list[NamedCount]
    pages_per_domain: list[SizeClass]


class HostRow(Struct, kw_only=True):
    """A host in a table."""

    name: str
    pages: int
    fetches: int
    errors: int
    queued: int
    latency_ms: float | None  # None: it has not answered
    delay_s: float
    min_s: float  # its requests one after another at its delay; at most the time from its discovery to the last one
    rate_limited: int = 0
    parked_until: float = 0.0
    park_reason: str = ""


class HostFigures(Struct, kw_only=True):
    """The hosts."""

    known: int
    with_pages: int
    dead: int
    parked: list[HostRow]
    parked_count: int
    max_errors: list[HostRow]
    slowest: list[HostRow]
    max_rate_limited: list[HostRow]
    longest: list[HostRow]  # by `min_s`: these bound the time of the crawl
    without_address: list[HostRow]  # never contacted: their names could not be resolved, or to no allowed address
    without_address_count: int


class DeadLetters(Struct, frozen=True):
    """URLs that failed for good, by kind, with a few of them."""

    name: str
    count: int
    examples: list[str]


class Left(Struct, kw_only=True):
    """What was not fetched, and why."""

    queued: int
    queued_by_depth: list[int]
    hosts: list[HostLeft]
    finish_s: float  # until the last of them is done, by politeness alone
    dead: list[DeadLetters]
    excluded: list[NamedCount]  # links refused, by rule
    types_refused: int
    held: list[NamedCount]  # links held back, by rule
    held_dropped: int  # links beyond what a host may have held back
    evicted: int  # URLs that left the queue because of its maximum length


class RequisiteFigures(Struct, kw_only=True):
    """What pages need to be shown: by the catalog, each once. None of it is in the other figures of URLs and pages."""

    stored: int
    queued: int
    denied: int  # by robots.txt
    redirects: int
    content_types: list[NamedCount]  # of what is stored
    rules: list[NamedCount]  # of robots.txt
    failed: list[DeadLetters]
    refused: int  # by a rule of the crawl
    cut: int  # beyond the limit for one page


class BrokenUrl(Struct, frozen=True):
    """A URL that answers with an error, or not at all, and a page that links to it."""

    url: str
    outcome: str
    status: int
    found_on: str  # empty: a seed, or a page that is not known


class RedirectChain(Struct, frozen=True):
    """A redirect, where it leads, and what is there."""

    url: str
    chain: list[str]
    outcome: str  # of its end
    status: int
    is_loop: bool
    found_on: str


class SharedText(Struct, frozen=True):
    """A title or description that several pages of one host have, and some of them."""

    text: str
    pages: int
    examples: list[str]


class DescriptionFigures(Struct, kw_only=True):
    """Descriptions of pages: read in the archive, if somebody asks for it."""

    read: int  # HTML pages
    missing: int
    missing_examples: list[str]
    shared: int  # pages with the description of another one
    shared_examples: list[SharedText]


class FindingFigures(Struct, kw_only=True):
    """What the owner of a site may want to correct: totals, and the first of each kind."""

    broken: int  # URLs
    broken_examples: list[BrokenUrl]
    redirects: int
    redirects_followed: int  # the counts below are of these
    loops: int
    broken_ends: int
    chains: list[RedirectChain]  # loops first, then those that end broken, then the longest
    html_pages: int
    missing_titles: int
    missing_title_examples: list[str]
    titles_compared: int  # different ones; of more, only the first are compared
    shared_titles: int  # pages with the title of another one
    shared_title_examples: list[SharedText]
    descriptions: DescriptionFigures | None = None  # None: not read


class Report(Struct, kw_only=True):
    """A whole report."""

    summary: Summary
    made_at: float
    started_at: float
    last_event_at: float
    runs: int
    recovered_files: int
    bin_s: float
    timeline: list[Point]
    fetches: FetchFigures
    robots: RobotsFigures
    corpus: CorpusFigures
    hosts: HostFigures
    left: Left
    urls: list[NamedCount]  # what became of them; together those known
    warnings: list[str]  # by time, which each begins with
    findings: FindingFigures
    requisites: RequisiteFigures | None = None  # None: there is none
