"""The figures that a report draws from catalog, hosts and domains: one pass over each, in fixed memory.

A row counts as a page if its last fetch returned one (`ok`, `not_modified`); every other row
counts by its state, or by its outcome. Costs: 1.4 µs per row beyond reading it.
"""

from __future__ import annotations

from gossamer.model.figures import Totals
from gossamer.model.records import DomainRecord, FetchKind, HostRecord, Outcome, Source, UrlRecord, UrlState
from gossamer.reading.aggregates import Frequent, Leaders, NamedCount, SizeClass, Spread
from gossamer.reading.outlook import Outlook
from gossamer.report.languages import AllLanguages, DetectedLanguages, LanguageSample
from gossamer.report.record import (
    CorpusFigures,
    DeadLetters,
    HostFigures,
    HostRow,
    RequisiteFigures,
)
from gossamer.telemetry.forecast import HostLeft

# The figures that a report draws from the rows of requisites: in fixed memory, within the pass over the catalog.

EXAMPLES = 10


class DeadTally:
    """Dead letters by kind, with a few of each."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, row: UrlRecord) -> None:
        """Add one dead letter."""
        kind = f"{row.outcome} {row.status}" if row.status else row.outcome or "unknown"
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(row.url)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self._counts.values())

    def kinds(self) -> list[DeadLetters]:
        """Return them by kind, the most frequent first."""
        kinds = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [DeadLetters(kind, count, self._examples[kind]) for kind, count in kinds]


class RequisiteTally:
    """The running figures of the rows of requisites."""

    def __init__(self) -> None:
        self._stored = self._queued = self._denied = self._redirects = 0
        self._types = Frequent()
        self._rules = Frequent()
        self._dead = DeadTally()

    def add(self, row: UrlRecord) -> None:
        """Add one row."""
        if row.state is UrlState.QUEUED:
            self._queued += 1
        elif row.state is UrlState.DEAD:
            self._dead.add(row)
        elif row.outcome == Outcome.ROBOTS_DENIED:
            self._denied += 1
            self._rules.add(row.error.partition(": ")[2] or row.error)
        elif row.outcome == Outcome.REDIRECT:
            self._redirects += 1
        else:
            self._stored += 1
            self._types.add(row.content_type or "unknown")

    def figures(self, totals: Totals) -> RequisiteFigures | None:
        """Return what was counted; None if there is nothing."""
        known = (self._stored, self._queued, self._denied, self._redirects, self._dead.count)
        if not any(known) and not totals.requisites_refused:
            return None
        return RequisiteFigures(
            stored=self._stored,
            queued=self._queued,
            denied=self._denied,
            redirects=self._redirects,
            content_types=self._types.top(20),
            rules=self._rules.top(20),
            failed=self._dead.kinds(),
            refused=totals.requisites_refused,
            cut=totals.requisites_cut,
        )


_HOSTS_SHOWN = 15
_DEEPEST = 64  # deeper ones count here
# Constants: up to Python 3.11, reading a member from its class takes 80 ns.
_QUEUED = UrlState.QUEUED
_DEAD = UrlState.DEAD
_PAGE = FetchKind.PAGE
_REQUISITE = FetchKind.REQUISITE
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class CatalogFigures:
    """The running figures of the pass over all URLs."""

    def __init__(self, languages: LanguageSample | AllLanguages | None = None) -> None:
        self.pages = self.queued = self.disallowed = self.types_refused = self.duplicates = 0
        self.types = Frequent()
        self.languages = Frequent(2000)
        self.rules = Frequent()
        self.truncated = Frequent()
        self.sizes = Spread()
        self.sample = languages or LanguageSample()
        self._became: dict[str, int] = {}  # what is no page, by outcome
        self._sources = [0] * len(Source)
        self._depths = [0] * (_DEEPEST + 1)
        self._queued_depths = [0] * (_DEEPEST + 1)
        self._dead = DeadTally()
        self.requisites = RequisiteTally()

    def add(self, row: UrlRecord) -> None:
        """Add one row."""
        kind = row.kind
        state = row.state
        if kind is _REQUISITE:
            self.requisites.add(row)
        elif state is _QUEUED:
            self.queued += 1
            self._queued_depths[min(row.depth, _DEEPEST)] += 1
        elif state is _DEAD:
            self._dead.add(row)
        elif row.outcome in _PAGES:
            if kind is _PAGE:
                self._add_page(row)
            else:
                self._add_other(row.kind.name.lower())
        elif row.outcome == Outcome.ROBOTS_DENIED:
            self.disallowed += 1
            # "line 6: Disallow: /private/": the same rule has other line numbers in other files.
            self.rules.add(row.error.partition(": ")[2] or row.error)
        else:
            self.types_refused += row.outcome == Outcome.TYPE_REFUSED
            self._add_other(row.outcome or "unknown")

    def _add_other(self, name: str) -> None:
        self._became[name] = self._became.get(name, 0) + 1

    def _add_page(self, row: UrlRecord) -> None:
        self.pages += 1
        self.types.add(row.content_type or "unknown")
        self.languages.add(_primary(row.language))
        self._depths[min(row.depth, _DEEPEST)] += 1
        self._sources[row.source] += 1
        self.sizes.add(row.content_bytes)
        self.sample.offer(row)
        if row.duplicate_of:
            self.duplicates += 1
        if row.truncated:
            self.truncated.add(row.truncated)

    def dead(self) -> list[DeadLetters]:
        """Return the dead letters by kind, the most frequent first."""
        return self._dead.kinds()

    def queued_by_depth(self) -> list[int]:
        """Return how many URLs are queued at each depth."""
        return _without_tail(self._queued_depths)

    def urls(self) -> list[NamedCount]:
        """Return what became of the URLs, the most frequent first: each is counted once."""
        became = {"page": self.pages, "queued": self.queued, "forbidden by robots.txt": self.disallowed}
        became |= {"dead letter": self._dead.count, **self._became}
        return [NamedCount(name, number) for name, number in sorted(became.items(), key=_by_count) if number]

    def corpus(self, totals: Totals, domains: DomainFigures, detected: DetectedLanguages) -> CorpusFigures:
        """Return what was collected."""
        return CorpusFigures(
            content_types=self.types.top(20),
            languages=self.languages.top(20),
            languages_detected=list(detected.languages),
            languages_checked=detected.checked,
            languages_differ=detected.differ,
            languages_sampled=detected.is_sample,
            depths=_without_tail(self._depths),
            content_bytes=self.sizes.percentiles(),
            sizes=self.sizes.octaves(),
            words=totals.words,
            words_per_page=round(totals.words / self.pages, 1) if self.pages else 0.0,
            duplicates=self.duplicates,
            near_duplicates=totals.near_duplicates,
            spam_pages=totals.spam_pages,
            spam_hosts=totals.spam_hosts,
            truncated=self.truncated.top(),
            sources=[NamedCount(source.name.lower(), self._sources[source]) for source in Source],
            domains=domains.top(),
            pages_per_domain=domains.classes(),
        )


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _primary(language: str) -> str:
    """Return the primary subtag of en, en-US, EN_us and the like."""
    tag = language.replace("_", "-").partition("-")[0].strip().lower()
    if not tag:
        return "not declared"
    return tag if tag.isascii() and tag.isalpha() and len(tag) <= 8 else "other"


def _without_tail(counts: list[int]) -> list[int]:
    last = max((index for index, count in enumerate(counts) if count), default=-1)
    return counts[: last + 1]


class DomainFigures:
    """The distribution of pages over registrable domains."""

    def __init__(self) -> None:
        self._top: Leaders[DomainRecord] = Leaders(20)
        self._decades: dict[int, int] = {}

    def add(self, domain: DomainRecord) -> None:
        """Add one domain."""
        self._top.offer(domain.pages, domain)
        if domain.pages:
            decade = len(str(domain.pages)) - 1
            self._decades[decade] = self._decades.get(decade, 0) + 1

    def top(self) -> list[NamedCount]:
        """Return the domains with the most pages."""
        return [NamedCount(domain.name, domain.pages) for domain in self._top.rows()]

    def classes(self) -> list[SizeClass]:
        """Return how many domains have 1-9, 10-99, … pages."""
        most = max(self._decades, default=-1)
        return [SizeClass(10**n, 10 ** (n + 1), self._decades.get(n, 0)) for n in range(most + 1)]


class HostTables:
    """The running figures of the pass over all hosts.

    `crawl_s` is the time that the crawl has taken.
    """

    def __init__(self, now: float, outlook: Outlook, crawl_s: float, rate_limited: Frequent) -> None:
        self._now = now
        self._outlook = outlook
        self._crawl_s = crawl_s
        self._rate_limited = rate_limited
        self.known = self.with_pages = self.dead = self.parked_count = self.queued = self.without_address = 0
        self.finish_s = 0.0
        self._parked: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)
        self._errors: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)
        self._slow: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)
        self._limited: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)
        self._longest: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)
        self._left: Leaders[HostLeft] = Leaders(_HOSTS_SHOWN)
        self._without_address: Leaders[HostRow] = Leaders(_HOSTS_SHOWN)

    def add(self, host: HostRecord) -> None:
        """Add one host."""
        self.known += 1
        self.with_pages += host.pages > 0
        self.dead += host.is_dead
        line = self._line(host)
        if host.last_fetch_at:
            self._errors.offer(host.errors, line)
        elif host.errors:  # name look-ups only
            self.without_address += 1
            self._without_address.offer(host.errors, line)
        self._slow.offer(host.latency_s, line)
        self._limited.offer(line.rate_limited, line)
        self._longest.offer(line.min_s, line)
        if host.parked_until > self._now and host.queued:
            self.parked_count += 1
            self._parked.offer(host.parked_until, line)
        if host.queued:
            self._add_left(host)

    def _line(self, host: HostRecord) -> HostRow:
        return HostRow(
            name=host.name,
            pages=host.pages,
            fetches=host.fetches,
            errors=host.errors,
            queued=host.queued,
            latency_ms=round(1000 * host.latency_s, 1) if host.latency_s else None,
            delay_s=round(host.delay_s, 3),
            min_s=round(self._min_s(host), 3),
            rate_limited=self._rate_limited[host.name],
            parked_until=host.parked_until if host.parked_until > self._now else 0.0,
            park_reason=host.park_reason,
        )

    def _min_s(self, host: HostRecord) -> float:
        """Return how long the requests of a host take at its present delay, within the time that they did take."""
        took_s = max(0.0, host.last_fetch_at - host.first_seen_at)
        return min((host.fetches - 1) * host.delay_s, took_s, self._crawl_s)

    def _add_left(self, host: HostRecord) -> None:
        self.queued += host.queued
        if host.is_blocked or host.is_dead:  # nothing of it will be fetched
            return
        left = self._outlook.of(host)
        self.finish_s = max(self.finish_s, left.seconds)
        self._left.offer(left.seconds or 1e-9, left)

    def left(self) -> list[HostLeft]:
        """Return the hosts that will take longest to finish."""
        return self._left.rows()

    def figures(self) -> HostFigures:
        """Return the tables of hosts."""
        return HostFigures(
            known=self.known,
            with_pages=self.with_pages,
            dead=self.dead,
            parked=self._parked.rows(),
            parked_count=self.parked_count,
            max_errors=self._errors.rows(),
            slowest=self._slow.rows(),
            max_rate_limited=self._limited.rows(),
            longest=self._longest.rows(),
            without_address=self._without_address.rows(),
            without_address_count=self.without_address,
        )
