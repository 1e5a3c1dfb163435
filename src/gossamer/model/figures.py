"""The figures of a crawl: running totals, and a snapshot of all numbers that are shown.

`Totals` are counted as things happen and stored with every commit, so they survive a restart.
`Figures` are the totals and the gauges of one moment. The view on the terminal, heartbeats, the
summary, `status`, the report, the dashboard and the metrics are all derived from a `Figures` value; rates and
shares are its fields and properties, and computed nowhere else. Pure.
"""

# Without the annotations of __future__, as in `records`.
from bisect import bisect_left
from enum import StrEnum
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from gossamer.model.records import ANSWERED, FetchKind, Outcome, Result

RUNNING = "running"  # the value of `Figures.finished` until the crawl has ended
_HTML = ("text/html", "application/xhtml+xml")
# 3xx answers that lead nowhere: their URL failed, but there was an answer.
_USELESS_REDIRECTS = frozenset({Outcome.BAD_REDIRECT, Outcome.REDIRECT_LOOP, Outcome.TOO_MANY_REDIRECTS})
HIGH_ERROR_RATE = 0.05  # of the last fetches: a warning, and red in the view
# Rules that left out links and pages, as keys of `Totals.cuts`; `RULE_pages` has the pages they are on.
MAX_DEPTH = "max_depth"
MAX_LINKS_PER_PAGE = "max_links_per_page"
NOFOLLOW = "nofollow"
TRUNCATED_PAGES = "truncated_pages"  # of which only a part was received, or kept
MAX_TYPES = 200  # that are counted one by one: a server can invent one for each page
_OK = Outcome.OK
_CLIENT_ERROR = Outcome.CLIENT_ERROR
_NO_ERRORS = ANSWERED | _USELESS_REDIRECTS | {Outcome.NO_HTTPS}


def is_error(outcome: str, *, is_robots: bool) -> bool:
    """Return whether a fetch with this outcome is an error. The one definition, for totals, hosts and reports.

    A fetch is a task that ended, or a name look-up that failed; a task that was returned to the queue has not
    ended. It is an error if there was no HTTP answer, or an answer with 4xx or 5xx. Two exceptions: a missing
    robots.txt (4xx except 429) allows everything, so it is an ordinary answer; and that a bare domain has no https is
    what we wanted to know.
    """
    if outcome is _OK:  # most are: an enum's member is hashed by a call
        return False
    return outcome not in _NO_ERRORS and not (is_robots and outcome == _CLIENT_ERROR)


class Totals(Struct):
    """Counts since the crawl began, over all its runs."""

    pages: int = 0
    html_pages: int = 0
    fetches: int = 0
    errors: int = 0
    bytes: int = 0
    content_bytes: int = 0
    words: int = 0
    urls_seen: int = 0
    unique_hosts: int = 0
    unique_domains: int = 0
    robots_disallowed: int = 0
    robots_fetches: int = 0
    failed_lookups: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    retries: int = 0
    dead: int = 0
    excluded: int = 0
    links: int = 0
    seconds: float = 0.0  # of all runs, up to the last commit, like the next
    cpu_seconds: float = 0.0  # of the processes that schedule
    runs: int = 0
    outcomes: dict[str, int] = {}
    statuses: dict[str, int] = {}
    types: dict[str, int] = {}
    held: dict[str, int] = {}  # URLs that are held back, by rule
    evicted: int = 0  # URLs that left the queue because of its maximum length
    held_dropped: int = 0  # links that were to be held back, beyond the cap of their host
    crowded_hosts: int = 0  # hosts that had to wait because their address has very many
    visits: int = 0  # of known URLs that were fetched again; the next five are what they found
    visits_changed: int = 0
    visits_same: int = 0
    visits_gone: int = 0
    visits_failed: int = 0
    not_modified: int = 0  # of those that found the same: 304
    visits_gained: int = 0  # pages that visits found, less those that they found to be none any more
    robots_cut: int = 0  # answers to robots.txt requests with more rules or sitemaps than are read
    spam_pages: int = 0
    spam_hosts: int = 0  # that were demoted, or whose links are held back
    robots_overridden: int = 0  # requests that robots.txt forbids, at the operator's own hosts
    unchecked_hosts: int = 0  # whose first page came with a certificate that was not checked
    requisites: int = 0  # stored; they are no pages, but fetches
    requisite_bytes: int = 0  # decoded
    requisites_failed: int = 0  # dead letters that are not in `dead`
    requisites_denied: int = 0  # by robots.txt, and not in `robots_disallowed`
    requisites_refused: int = 0  # by a rule of the crawl, and not in `excluded`
    requisites_cut: int = 0  # beyond the limit for one page
    cuts: dict[str, int] = {}  # links and pages that a limit left out, by rule: see `count_cut`

    @property
    def new_pages(self) -> int:
        """Pages by their first visits: what a budget of pages allows. Later visits may find more, or fewer."""
        return self.pages - self.visits_gained

    def copy(self) -> Self:
        """Return a copy that later counting does not change."""
        counts = {name: dict(getattr(self, name)) for name in ("outcomes", "statuses", "types", "held", "cuts")}
        return replace(self, **counts)

    def add(self, other: Self) -> None:
        """Add the counts of another node of the same crawl; nodes run at the same time."""
        for name in self.__struct_fields__:
            own = getattr(self, name)
            its = getattr(other, name)
            if isinstance(own, dict):
                setattr(self, name, {key: own.get(key, 0) + its.get(key, 0) for key in {**own, **its}})
            else:
                setattr(self, name, max(own, its) if name in ("seconds", "runs") else own + its)

    def count_fetch(self, kind: FetchKind, result: Result) -> None:
        self.fetches += 1
        self.bytes += result.wire_bytes
        self.links += result.links_found
        is_robots = kind is FetchKind.ROBOTS
        self.robots_fetches += is_robots
        self.errors += is_error(result.outcome, is_robots=is_robots)
        outcomes = self.outcomes
        outcome = str(result.outcome)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if result.status:
            statuses = self.statuses
            status = str(result.status)
            statuses[status] = statuses.get(status, 0) + 1

    def count_missing_https(self, outcome: Outcome) -> None:
        """Count a fetch as no error: it found that a bare domain has no https."""
        self.errors -= 1
        add_count(self.outcomes, str(outcome), -1)
        _add(self.outcomes, str(Outcome.NO_HTTPS))

    def count_failed_lookup(self, outcome: Outcome) -> None:
        """Count a name look-up that returned no usable address: a fetch without an answer."""
        self.fetches += 1
        self.errors += 1
        self.failed_lookups += 1
        _add(self.outcomes, str(outcome))

    def count_page(self, result: Result) -> None:
        self.pages += 1
        self.content_bytes += result.content_bytes
        self.words += result.words
        self.html_pages += result.content_type in _HTML
        known = result.content_type in self.types or len(self.types) < MAX_TYPES
        _add(self.types, (result.content_type or "unknown") if known else "other")

    def count_requisite(self, content_bytes: int) -> None:
        """Count a requisite that is stored; one that is stored as a page has no bytes of its own."""
        self.requisites += 1
        self.requisite_bytes += content_bytes

    def uncount_requisite(self, content_bytes: int, *, was_stored: bool) -> None:
        """Count a requisite less that is to be fetched again: one that is stored, or a dead letter."""
        if was_stored:
            self.requisites -= 1
            self.requisite_bytes -= content_bytes
        else:
            self.requisites_failed -= 1

    def count_visit(self, found: str, *, is_not_modified: bool) -> None:
        self.visits += 1
        self.visits_changed += found == "changed"
        self.visits_same += found == "same"
        self.visits_gone += found in ("missing", "gone")
        self.visits_failed += found == "failed"
        self.not_modified += is_not_modified

    def uncount_page(self, content_type: str, content_bytes: int, words: int) -> None:
        """Count a page less, since it is to be fetched again as if it had never been."""
        self.pages -= 1
        self.content_bytes -= content_bytes
        self.words -= words
        self.html_pages -= content_type in _HTML
        add_count(self.types, content_type or "unknown", -1)

    def count_held(self, rule: str, urls: int) -> None:
        """Count URLs that a rule holds back, or no longer holds back (a negative number)."""
        add_count(self.held, rule, urls)

    def count_cut(self, rule: str, links: int) -> None:
        """Count links of a page that a limit left out (a negative number: not any more), and the page."""
        add_count(self.cuts, rule, links)
        add_count(self.cuts, f"{rule}_pages", 1 if links > 0 else -1)


class RunState(StrEnum):
    """What the process of a crawl is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    FINISHED = "finished"


# Upper bounds of the classes of a histogram, in seconds; one more class has what is above the last.
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def _no_counts() -> list[int]:
    return [0] * (len(BOUNDS_S) + 1)


class Histogram(Struct):
    """How often something took how long."""

    counts: list[int] = field(default_factory=_no_counts)  # one per bound of `BOUNDS_S`, and one more
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def copy(self) -> Self:
        """Return a copy that later counting does not change."""
        return type(self)(self.counts.copy(), self.sum_s)

    @property
    def count(self) -> int:
        """How many were counted."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Return how long this share of them took at most, within the limits of the classes; 0 if there are none."""
        rank = share * self.count
        below = 0
        for place, number in enumerate(self.counts):
            if number and below + number >= rank:
                if place == len(BOUNDS_S):
                    break
                low = BOUNDS_S[place - 1] if place else 0.0
                return low + (BOUNDS_S[place] - low) * (rank - below) / number
            below += number
        return BOUNDS_S[-1] if below or self.counts[-1] else 0.0


class Throughput(Struct, frozen=True):
    """What was done per second, over some time."""

    pages: float = 0.0
    fetches: float = 0.0
    errors: float = 0.0
    bytes: float = 0.0


class Resource(StrEnum):
    """What the speed of a crawl can be bound by."""

    POLITENESS = "politeness"
    DNS = "dns"
    CONNECTIONS = "connections"
    CPU = "cpu"
    DISK = "disk"
    LEDGER = "ledger"
    RETRIES = "retries"
    NOTHING_LEFT = "nothing_left"
    PAUSED = "paused"


class BoundBy(Struct, frozen=True):
    """What the speed of a crawl is bound by now."""

    resource: Resource
    evidence: str  # one line for people


class SlowHost(Struct, frozen=True):
    """A host whose queue takes much longer than those of the others."""

    name: str
    queued: int
    delay_s: float
    seconds: float


class Forecast(Struct, frozen=True):
    """How long the crawl needs for what is queued now; what it will find is not known."""

    seconds: float | None = None  # until everything queued is done or a limit is reached; None: not known
    rest_seconds: float | None = None  # until everything except the slow hosts is done
    slow_hosts: list[SlowHost] = []
    text: str = ""  # one line for people
    is_at_least: bool = False  # more URLs are found than fetched: it will take longer


class ParkedHost(Struct, frozen=True):
    """A host that must not be contacted before a time."""

    name: str
    until: float
    reason: str


class NextRetry(Struct, frozen=True):
    """The first of the URLs that wait to be tried again."""

    url: str
    at: float


class ActiveWarning(Struct, frozen=True):
    """A condition that lasts, or one of the last things that happened once."""

    rule: str
    text: str
    since: float
    is_lasting: bool = False


class VisitCounts(Struct, frozen=True, kw_only=True):
    all: int
    changed: int
    same: int
    not_modified: int  # of those that found the same: 304
    gone: int
    failed: int


def visit_counts(totals: Totals) -> VisitCounts:
    return VisitCounts(
        all=totals.visits,
        changed=totals.visits_changed,
        same=totals.visits_same,
        not_modified=totals.not_modified,
        gone=totals.visits_gone,
        failed=totals.visits_failed,
    )


class RequisiteCounts(Struct, frozen=True, kw_only=True):
    """What became of what pages need to be shown. It is in none of the counts of pages, URLs and links."""

    stored: int
    bytes: int  # of these, decoded
    queued: int
    failed: int
    denied: int  # by robots.txt
    refused: int  # by a rule of the crawl: a blocked host, an excluded pattern, too many new hosts
    cut: int  # beyond the limit for one page


def requisite_counts(totals: Totals, queued: int) -> RequisiteCounts | None:
    """Return what became of requisites; None if there were none."""
    counts = RequisiteCounts(
        stored=totals.requisites,
        bytes=totals.requisite_bytes,
        queued=queued,
        failed=totals.requisites_failed,
        denied=totals.requisites_denied,
        refused=totals.requisites_refused,
        cut=totals.requisites_cut,
    )
    known = (counts.stored, queued, counts.failed, counts.denied, counts.refused, counts.cut)
    return counts if any(known) else None


class RevisitFigures(Struct, frozen=True, kw_only=True):
    """What is known of the pages that are fetched again."""

    known: int  # URLs that are fetched again
    per_day: float  # visits that are allowed per day
    waiting: int  # that are due, and wait in memory for their host's turn
    next_at: float  # when the next host is due; 0: none
    # The share of the copies that is to be expected to be what the servers have; None: no page was visited again yet.
    freshness: float | None
    classes: dict[str, int] = {}
    held_domains: int = 0  # that have had their share of visits, see `core/revisit/domain_shares`


class Figures(Struct, frozen=True, kw_only=True):
    """A crawl at one moment. A gauge that is unknown because the crawl is read from outside is 0 or empty.

    A share or rate of nothing is None: there is no number without evidence (`telemetry/figure_list` says why).
    """

    totals: Totals
    out: str  # the crawl folder
    state: RunState = RunState.RUNNING
    finished: str = RUNNING  # why the crawl ended
    max_pages: int | None = None
    started_at: float = 0.0  # when this run began; 0: not known
    run_seconds: float = 0.0  # since then, without the time in which the operator had paused it
    paused_seconds: float = 0.0  # for which it is paused now
    pages_before: int = 0  # of earlier runs
    fetches_before: int = 0  # likewise
    urls_queued: int = 0
    urls_parked: int = 0  # queued at hosts that are parked for longer than the crawl waits
    urls_over_budget: int = 0  # queued beyond the budget of pages of their host or domain: they are not fetched
    urls_retried: int = 0  # queued, and waiting to be tried again
    requisites_queued: int = 0  # which are not among the URLs
    in_flight: int = 0
    hosts: dict[str, int] = {}  # by state
    worker_cpu_seconds: float = 0.0
    crawl_cpu_seconds: float = 0.0  # of the process that schedules, while requests were made
    private_bytes: int = 0
    peak_private_bytes: int = 0
    peak_rss_bytes: int = 0
    memory_ceiling_bytes: int = 0
    loop_stall_p99_ms: float = 0.0
    loop_stall_max_ms: float = 0.0
    core_wait_p99_ms: float = 0.0
    commits: int = 0
    commit_p50_ms: float = 0.0
    commit_p99_ms: float = 0.0
    worker_deaths: int = 0
    node_pages: int | None = None  # of this node, if the totals are those of all nodes
    rates: dict[str, Throughput] = {}  # of the last `10s` and `1m`, and of this `run`
    latency: dict[str, Histogram] = {}  # of requests, by phase: dns, connect, tls, first_byte, body, total
    commit_time: Histogram = field(default_factory=Histogram)
    flush_time: Histogram = field(default_factory=Histogram)  # until what a commit refers to is in archive and stores
    failed_writes: int = 0  # to a store, each of which was repeated
    batch_fill: float = 0.0  # pages per batch of a store; without one, per commit
    compression_ratio: float = 0.0  # bytes of the archive's records per byte of its files
    workers: int = 0  # processes that fetch; the one that schedules counts if it fetches itself
    open_files: int = 0  # of the process that has most
    free_bytes: int = 0  # on the disk of the crawl folder
    clock_jumps: int = 0  # of the machine's clock, by more than 5 s
    core_share: dict[str, float] = {}  # CPU of the `hub` and of the busiest `worker` over the last 10 s; 1: a core
    bound_by: BoundBy | None = None
    forecast: Forecast | None = None
    warnings: list[ActiveWarning] = []  # those that last, and the last that happened once
    revisits: RevisitFigures | None = None  # None: nothing is fetched again
    domain_budgets: tuple[int, int] | None = None  # pages of the least and most important domain, if ranks scale it

    @property
    def error_rate(self) -> float | None:
        """The share of fetches that were errors."""
        return self.totals.errors / self.totals.fetches if self.totals.fetches else None

    @property
    def html_share(self) -> float | None:
        return self.totals.html_pages / self.totals.pages if self.totals.pages else None

    @property
    def pages_per_second(self) -> float | None:
        """The mean over all runs."""
        return self.totals.pages / self.totals.seconds if self.totals.seconds else None

    @property
    def freshness(self) -> float | None:
        """The share of the copies that is to be expected to be what the servers have."""
        return self.revisits.freshness if self.revisits is not None else None

    @property
    def run_pages_per_second(self) -> float:
        """The mean over this run."""
        return (self.totals.pages - self.pages_before) / self.run_seconds if self.run_seconds > 0 else 0.0

    @property
    def cpu_seconds(self) -> float:
        return self.totals.cpu_seconds + self.worker_cpu_seconds

    @property
    def cpu_ms_per_page(self) -> float | None:
        return 1000 * self.cpu_seconds / self.totals.pages if self.totals.pages else None

    @property
    def fetch_cpu_ms_per_page(self) -> float:
        """CPU time per page of this run while requests were made; 0 until they are over.

        Also 0 with worker processes, whose time is only known together with that of their start.
        """
        pages = self.totals.pages - self.pages_before
        is_known = pages > 0 and not self.worker_cpu_seconds
        return 1000 * self.crawl_cpu_seconds / pages if is_known else 0.0

    def pages_per_second_since(self, earlier: Self) -> float:
        """Return the rate between an earlier snapshot of the same run and this one."""
        seconds = self.run_seconds - earlier.run_seconds
        return (self.totals.pages - earlier.totals.pages) / seconds if seconds > 0 else 0.0


def _add(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1


def add_count(counts: dict[str, int], key: str, number: int) -> None:
    """Add to a count, which is removed when it is zero.

    It is less than zero if a node of a cluster takes back what another one had counted.
    """
    total = counts.get(key, 0) + number
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)
