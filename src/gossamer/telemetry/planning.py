"""What would a crawl take? Estimated before it begins, from its settings and the answers of its seed hosts. Pure.

What is known: the pace of each host, with its Crawl-delay, and the URLs that its sitemap lists. The rest is guessed:
a host without a sitemap has as many pages as may be fetched, an answer takes 0.2 s, a page takes 20 kB on the disk. The
hosts that links will lead to are not known; they make a crawl faster, not slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gossamer.core.url.domains import registrable_domain
from gossamer.model.figures import Forecast
from gossamer.settings.budget import CONNECTION, HOST, PAGE, PROGRAM, WORKER
from gossamer.telemetry.forecast import Forecaster, ForecastLimits
from gossamer.telemetry.text import agreeing, count, plural, printable, roughly, size

LATENCY_S = 0.2
PAGE_DISK_BYTES = 20_000  # archive 15 kB (5 times compressed), ledger, index and events 5 kB
PAGES_PER_CORE_S = 1000.0
_HARDLY = 1.25


class HostPlan(Struct, kw_only=True):
    """What is known about the host of a seed before a crawl."""

    name: str
    robots: str = "not asked"  # what its robots.txt said, in a few words
    is_asked: bool = True  # false if there are very many: its pace is that of the settings
    is_crawled: bool = True  # false if it forbids the seed, or cannot be reached
    crawl_delay_s: float | None = None
    delay_s: float = 0.0  # in force
    connections: int = 1
    sitemaps: int = 0  # that robots.txt lists
    sitemap_urls: int | None = None  # in the first of them; None: none was read
    sitemap_files: int = 0  # further ones that the first one lists
    problem: str = ""


class PlanLimits(Struct, frozen=True):
    """The settings that an estimate depends on."""

    max_pages: int | None
    max_time_s: float | None
    max_pages_per_host: int | None
    max_pages_per_domain: int | None
    workers: int
    connections: int
    memory_ceiling_bytes: int
    has_near_duplicates: bool
    is_host_scope: bool  # no other hosts than those of the seeds are crawled
    domain_delay_s: float = 0.0  # between two requests to a registrable domain


class PlanTotals(Struct, frozen=True):
    """The seed hosts together."""

    hosts: int
    asked: int
    crawled: int  # those that were not asked, too
    sitemap_urls: int
    sitemap_files: int  # that were not read
    requests_per_second: float | None  # at most, by the pace of the hosts; None: no host can be crawled


class CrawlPlan(Struct, kw_only=True):
    """An estimate of a crawl."""

    hosts: list[HostPlan]
    totals: PlanTotals
    hosts_not_asked: int  # since there are very many
    requests: int  # made for this plan
    max_pages: int | None
    forecast: Forecast
    longest_seconds: float | None  # if one host has all pages that no host lists; None: not known, or no longer
    disk_bytes: int | None  # None: pages are not limited, or no host can be crawled; like the next
    memory_bytes: int | None
    memory_ceiling_bytes: int
    guesses: list[str]

    def render(self) -> str:
        asked = [host for host in self.hosts if host.is_asked]
        width = min(40, max((len(host.name) for host in asked), default=0))
        lines = [f"  {printable(host.name, 40):<{width}}  {_described(host)}" for host in asked]
        if self.hosts_not_asked:
            lines.append(f"  and {plural(self.hosts_not_asked, 'more host')}, not asked; --all-hosts asks them")
        pages = f"for {plural(self.max_pages, 'page')} (--max-pages)" if self.max_pages else "without a limit of pages"
        seconds = self.forecast.seconds
        if seconds is None:
            is_any = any(host.is_crawled for host in self.hosts)
            time = f"not known: {'hosts list no URLs' if is_any else 'no seed host can be crawled'}"
        elif self.longest_seconds is None:
            time = f"about {roughly(seconds)} {pages}"
        else:
            span = f"{roughly(seconds)} to {roughly(self.longest_seconds)}"
            time = f"{span} {pages}, by how many of them are at the slowest host"
        disk = "not known" if self.disk_bytes is None else f"about {size(self.disk_bytes)}"
        memory = "not known" if self.memory_bytes is None else f"about {size(self.memory_bytes)}"
        rows = [
            ("hosts", _described_totals(self.totals)),
            ("time", f"{time}; {printable(self.forecast.text, 500)}" if self.forecast.slow_hosts else time),
            ("disk", disk),
            ("memory", f"{memory}, under a ceiling of {size(self.memory_ceiling_bytes)}"),
            ("requests", f"{count(self.requests)} were made for this plan"),
            *(("guess", guess) for guess in self.guesses),
        ]
        return "\n".join(["Seed hosts", *lines, "Estimate", *(f"  {name:<9} {text}" for name, text in rows)])


def plan_of(hosts: Sequence[HostPlan], limits: PlanLimits, *, requests: int) -> CrawlPlan:
    """Return the estimate of a crawl."""
    forecast = _forecast(hosts, limits)
    pages = limits.max_pages
    totals = _totals(hosts, limits)
    crawled = totals.crawled
    memory = None
    if pages is not None and crawled:
        busy = min(limits.connections, sum(host.connections for host in hosts))
        workers = WORKER * limits.workers if limits.workers > 1 else 0
        parts = PROGRAM + workers + CONNECTION * busy + HOST * crawled + PAGE * pages * limits.has_near_duplicates
        memory = min(parts, limits.memory_ceiling_bytes)
    return CrawlPlan(
        hosts=list(hosts),
        totals=totals,
        hosts_not_asked=totals.hosts - totals.asked,
        requests=requests,
        max_pages=pages,
        forecast=forecast,
        longest_seconds=_longest_s(hosts, limits, forecast.seconds),
        disk_bytes=PAGE_DISK_BYTES * pages if pages is not None and crawled else None,
        memory_bytes=memory,
        memory_ceiling_bytes=limits.memory_ceiling_bytes,
        guesses=_guesses(hosts, limits) if crawled else [],
    )


def _totals(hosts: Sequence[HostPlan], limits: PlanLimits) -> PlanTotals:
    crawled = [host for host in hosts if host.is_crawled]
    most = min(PAGES_PER_CORE_S * max(1, limits.workers), limits.connections / LATENCY_S)
    rate = min(most, sum(1 / _interval_s(host) for host in crawled)) if crawled else None
    return PlanTotals(
        hosts=len(hosts),
        asked=sum(host.is_asked for host in hosts),
        crawled=len(crawled),
        sitemap_urls=sum(host.sitemap_urls or 0 for host in crawled),
        sitemap_files=sum(host.sitemap_files for host in crawled),
        requests_per_second=None if rate is None else round(rate, 2),
    )


def _described_totals(totals: PlanTotals) -> str:
    not_crawled = totals.hosts - totals.crawled
    parts = [
        f"{count(totals.crawled)} of {plural(totals.hosts, 'seed host')}",
        f"{count(not_crawled)} cannot be crawled" if not_crawled else "",
        f"their sitemaps list {plural(totals.sitemap_urls, 'URL')}" if totals.sitemap_urls else "",
        f"{count(totals.sitemap_files)} more files of sitemaps were not read" if totals.sitemap_files else "",
        f"at most {totals.requests_per_second:,.4g} requests per second" if totals.requests_per_second else "",
    ]
    return "; ".join(filter(None, parts))


def _forecast(hosts: Sequence[HostPlan], limits: PlanLimits) -> Forecast:
    """Return the time if pages are spread over the hosts as well as they can be; none if there is no telling."""
    forecaster = Forecaster(float("inf"))
    of_domains: Counter[str] = Counter()
    for host in hosts:
        if not host.is_crawled:
            continue
        urls = _urls_of(host, limits)
        if urls is None:
            return Forecast(limits.max_time_s, text="") if limits.max_time_s is not None else Forecast()
        domain = registrable_domain(host.name)
        if limits.max_pages_per_domain is not None:  # which the hosts before have used up in part, or all of it
            urls = min(urls, max(0, limits.max_pages_per_domain - of_domains[domain]))
        of_domains[domain] += urls
        forecaster.add(host.name, urls + 1, _interval_s(host), 0.0)  # robots.txt
    if not forecaster.urls:
        return Forecast()
    forecaster.min_s = limits.domain_delay_s * max(of_domains.values())
    rate = min(PAGES_PER_CORE_S * max(1, limits.workers), limits.connections / LATENCY_S)
    ends = ForecastLimits(limits.max_pages, limits.max_time_s, max_fetches_per_s=rate)
    return forecaster.forecast(ends)


def _longest_s(hosts: Sequence[HostPlan], limits: PlanLimits, seconds: float | None) -> float | None:
    """Return the time if the host at which that takes longest has all the pages; None if it is hardly longer."""
    ends = [
        (urls + 1) * _interval_s(host)
        for host in hosts
        if host.is_crawled and not _is_listed(host) and (urls := _urls_of(host, limits)) is not None
    ]
    longest_s = min(max(ends, default=0.0), float("inf") if limits.max_time_s is None else limits.max_time_s)
    return longest_s if seconds is not None and longest_s > _HARDLY * seconds else None


def _is_listed(host: HostPlan) -> bool:
    return bool(host.sitemap_urls) and not host.sitemap_files


def _urls_of(host: HostPlan, limits: PlanLimits) -> int | None:
    """Return how many URLs of a host there are, or as many as may be fetched; None if neither is known."""
    bounds = [each for each in (limits.max_pages_per_host, limits.max_pages_per_domain) if each is not None]
    known = host.sitemap_urls if _is_listed(host) else limits.max_pages
    return min([*bounds, *([] if known is None else [known])], default=None)


def _interval_s(host: HostPlan) -> float:
    return max(host.delay_s, LATENCY_S / host.connections)


def _guesses(hosts: Sequence[HostPlan], limits: PlanLimits) -> list[str]:
    unlisted = sum(host.is_crawled and not host.sitemap_urls for host in hosts)
    guesses = []
    if unlisted:
        guesses.append(f"{agreeing(unlisted, 'host', 'lists', 'list')} no URLs: each counts as if it had enough pages")
        guesses.append("URLs that are no pages, and retries, are not in the time")
    if any(host.sitemap_files for host in hosts):
        guesses.append("sitemaps beyond the first file of a host were not read: such hosts count likewise")
    if not all(host.is_asked for host in hosts):
        guesses.append("hosts that were not asked count as if they had neither a Crawl-delay nor a sitemap")
    if not limits.is_host_scope:
        guesses.append("links may lead to more hosts, which are fetched at the same time and shorten it")
    disk = f"a page takes {size(PAGE_DISK_BYTES)} on the disk, an answer {LATENCY_S:g} s"
    return [*guesses, disk]


def _described(host: HostPlan) -> str:
    if host.problem:
        return printable(host.problem)
    own = f"Crawl-delay {host.crawl_delay_s:g} s, " if host.crawl_delay_s is not None else ""
    pace = f"{own}a request every {host.delay_s:g} s, {host.connections} at a time"
    listed = ""
    if host.sitemap_urls is not None:
        more = f" and {plural(host.sitemap_files, 'more file')}" if host.sitemap_files else ""
        more += f" (the first of {plural(host.sitemaps, 'sitemap')})" if host.sitemaps > 1 else ""
        listed = f"; its sitemap lists {plural(host.sitemap_urls, 'URL')}{more}"
    return f"robots.txt {printable(host.robots, 120)}; {pace}{listed}"
