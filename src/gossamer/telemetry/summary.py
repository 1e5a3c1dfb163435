"""The result of a crawl as one object: the last line of `crawl --json`, and the head of every report."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from gossamer.model.figures import (
    MAX_DEPTH,
    MAX_LINKS_PER_PAGE,
    NOFOLLOW,
    TRUNCATED_PAGES,
    Figures,
    RequisiteCounts,
    Totals,
    VisitCounts,
    requisite_counts,
    visit_counts,
)
from gossamer.telemetry.figure_list import Place, labelled, rows_of, unknown
from gossamer.telemetry.text import agreeing, count, decimal, duration, percent, plural, rounded, size

SUMMARY_INDENT = 12  # columns before the values of a summary for people


class Summary(Struct, kw_only=True):
    """The figures of a crawl over all its runs. The names of the fields are fixed: scripts rely on them."""

    pages: int
    fetches: int
    errors: int
    error_rate: float | None  # None: `unknown` says why; like the next three
    bytes: int
    seconds: float
    pages_per_second: float | None
    cpu_seconds: float
    cpu_ms_per_page: float | None
    peak_rss_bytes: int
    peak_private_bytes: int
    unique_hosts: int
    unique_domains: int
    urls_seen: int
    urls_queued: int
    urls_parked: int
    robots_disallowed: int
    duplicates: int
    near_duplicates: int
    html_share: float | None
    finished: str
    out: str
    urls_over_budget: int = 0  # of those queued: their host or domain has as many pages as it may
    dead: int = 0
    loop_stall_p99_ms: float = 0.0  # the program blocked an event loop; of the process with the longest stalls
    loop_stall_max_ms: float = 0.0  # the longest one, which a percentile hides
    core_wait_p99_ms: float = 0.0  # an event loop waited for a core; 0 if the kernel does not report it
    commit_p50_ms: float = 0.0
    commit_p99_ms: float = 0.0
    hub_cpu_seconds: float = 0.0  # of `cpu_seconds`, the part of the process that schedules
    crawl_cpu_seconds: float = 0.0  # the part of that while requests were made: without start, index and report
    worker_deaths: int = 0
    memory_ceiling_bytes: int = 0  # 0: not known
    held: dict[str, int] = {}  # URLs that are held back, by rule
    held_dropped: int = 0  # links beyond what a host may have held back
    spam_pages: int = 0
    spam_hosts: int = 0  # that were demoted, or whose links are held back
    evicted: int = 0  # URLs that left the queue because of --max-queued
    crowded_hosts: int = 0  # hosts that had to wait because of --max-hosts-per-address
    robots_overridden: int = 0  # requests that robots.txt forbids, at own hosts (--own-host)
    robots_cut: int = 0  # robots.txt files with more rules or sitemaps than are read
    unchecked_hosts: int = 0  # whose first page came with a certificate that was not checked (--insecure)
    requisites: RequisiteCounts | None = None  # what pages need to be shown (--requisites); None: there is none
    visits: VisitCounts | None = None  # of known URLs; None: none was fetched again
    run_fetches: int = 0  # of the last run
    fetch_cpu_ms_per_page: float = 0.0  # in the last run, while requests were made: a small crawl is mostly its start
    # The share of the copies that is to be expected to be what the servers have; None: no page was visited again.
    freshness: float | None = None
    node_pages: int | None = None  # of this node; the rest is about the whole crawl. None: there is one machine
    cuts: dict[str, int] = {}  # links and pages that limits and rules left out, by rule
    domain_budgets: tuple[int, int] | None = None  # pages of the least and most important domain, if ranks scale it
    more: dict[str, float] | UnsetType = UNSET  # figures that have a row of their own
    unknown: dict[str, str] | UnsetType = UNSET  # why there is no number: there is no evidence for one yet

    def render(self) -> str:
        rows = [
            ("pages", f"{count(self.pages)}  ({decimal(self.pages_per_second)}/s, {percent(self.html_share)} HTML)"),
            ("fetches", f"{count(self.fetches)}  ({plural(self.errors, 'error')}, {percent(self.error_rate)})"),
            (
                "hosts",
                f"{count(self.unique_hosts)}  ({plural(self.unique_domains, 'registrable domain')}){self._crowded()}",
            ),
            (
                "URLs",
                f"{count(self.urls_seen)} known, {count(self.urls_queued)} queued, {count(self.urls_parked)} parked"
                + (f", {count(self.urls_over_budget)} over budget" if self.urls_over_budget else ""),
            ),
            (
                "forbidden",
                f"{plural(self.robots_disallowed, 'URL')}, by robots.txt{self._overridden()}{self._robots_cut()}",
            ),
            (
                "copies",
                f"{plural(self.duplicates, 'page')} with the content of another, stored once; "
                f"{count(self.near_duplicates)} nearly the same",
            ),
            ("volume", f"{size(self.bytes)} received"),
            ("time", f"{duration(self.seconds)}, {self.cpu_text()}"),
            ("memory", f"{size(self.peak_private_bytes)} private at most{self._ceiling()}"),
            *rows_of(self.more),
            ("ended", self.ended_because),
        ]
        held = held_text(self.held, self.held_dropped)
        if self.requisites is not None:
            rows.insert(2, ("needed", requisites_text(self.requisites)))
        if self.visits is not None:
            rows.insert(2, ("again", visits_text(self.visits, self.freshness)))
        if self.spam_pages:
            rows.insert(6, ("spam", self._spam()))
        if cuts := cuts_text(self.cuts):
            rows.insert(5, ("left out", cuts))
        if held:
            rows.insert(5, ("held back", held))
        if self.evicted:
            rows.insert(5, ("evicted", self._evicted()))
        if self.unchecked_hosts:
            hosts = plural(self.unchecked_hosts, "host")
            rows.insert(4, ("insecure", f"the certificates of {hosts} were not checked (--insecure)"))
        if self.node_pages is not None:
            rows.insert(1, ("this node", f"{count(self.node_pages)} of these pages"))
        return "\n".join(f"  {name:<9} {text}" for name, text in rows)

    def omissions(self) -> list[str]:
        """Return what was left out or held back, and by which rule, in words."""
        held = held_text(self.held, self.held_dropped)
        return [
            *([f"held back: {held}"] if held else []),
            *([f"evicted: {self._evicted()}"] if self.evicted else []),
            *([f"left out: {cuts_text(self.cuts)}"] if not CUT_BY_LIMITS.isdisjoint(self.cuts) else []),
            *([f"requisites: {self._requisites_cut()}"] if self.requisites is not None and self.requisites.cut else []),
            *([f"spam: {self._spam()}"] if self.spam_hosts else []),
            *([f"hosts:{self._crowded().removeprefix(';')}"] if self.crowded_hosts else []),
            *([f"robots.txt:{self._robots_cut().removeprefix(';')}"] if self.robots_cut else []),
        ]

    def _spam(self) -> str:
        hosts = f"; {agreeing(self.spam_hosts, 'host', 'was', 'were')} demoted ('gossamer traps' shows them)"
        return plural(self.spam_pages, "page") + (hosts if self.spam_hosts else "")

    def _evicted(self) -> str:
        what = "it" if self.evicted == 1 else "them"
        return f"{plural(self.evicted, 'URL')}, by --max-queued; 'gossamer retry' queues {what} again"

    def _requisites_cut(self) -> str:
        cut = self.requisites.cut if self.requisites is not None else 0
        return f"{count(cut)} more than --max-requisites-per-page allows"

    def _crowded(self) -> str:
        text = f"; {count(self.crowded_hosts)} more at crowded addresses had to wait (--max-hosts-per-address)"
        return text if self.crowded_hosts else ""

    def cpu_text(self) -> str:
        """Return what a page costs, without what the start costs, if that is known."""
        if not self.fetch_cpu_ms_per_page:
            return f"{decimal(self.cpu_ms_per_page, 2)} ms of CPU per page"
        return f"{self.fetch_cpu_ms_per_page:.2f} ms of CPU per page while fetching, {self.cpu_seconds:.2f} s in all"

    def _overridden(self) -> str:
        text = f"; {count(self.robots_overridden)} more fetched all the same at your own hosts (--own-host)"
        return text if self.robots_overridden else ""

    def _robots_cut(self) -> str:
        text = f"; {agreeing(self.robots_cut, 'such file', 'has', 'have')} more rules or sitemaps than are read"
        return text if self.robots_cut else ""

    @property
    def ended_because(self) -> str:
        """Why the crawl has ended, in words."""
        if self.finished in ENDED_WITHOUT_QUEUE and (self.held or self.held_dropped):
            return held_because(self.held, self.held_dropped)
        if self.finished == "exhausted" and self.evicted:
            return "nothing is queued any more, but URLs were left out"
        if self.finished == "exhausted" and not CUT_BY_LIMITS.isdisjoint(self.cuts):
            return CUT_BECAUSE
        reasons = REASONS if self.node_pages is None else SHARED_REASONS
        reason = reasons.get(self.finished, self.finished)
        if self.finished == "budgets" and self.domain_budgets is not None:
            least, most = map(count, self.domain_budgets)
            return f"{reason}: {least} to {most} pages per domain, by rank (--domain-budget-by-rank)"
        return reason

    def _ceiling(self) -> str:
        return f", under a ceiling of {size(self.memory_ceiling_bytes)}" if self.memory_ceiling_bytes else ""


def visits_text(visits: VisitCounts, freshness: float | None, held_domains: int = 0) -> str:
    """Return for people the results of visits to known URLs, how fresh the copies are, and whether visits are held."""
    found = (
        f"{count(visits.changed)} changed, {count(visits.same)} the same ({count(visits.not_modified)} by 304), "
        f"{count(visits.gone)} gone, {count(visits.failed)} without an answer"
    )
    if not visits.all:
        return "no known URL was visited again yet: how many copies are fresh is not known"
    fresh = "" if freshness is None else f"; about {percent(freshness)} of the copies are fresh"
    held = f"; {plural(held_domains, 'domain')} held back, with more than a share of the visits" if held_domains else ""
    return f"{plural(visits.all, 'visit')} of known URLs: {found}{fresh}{held}"


def requisites_text(counts: RequisiteCounts) -> str:
    """Return the counts of requisites for people."""
    parts = [
        f"{plural(counts.stored, 'requisite')} of pages stored ({size(counts.bytes)})",
        f"{count(counts.queued)} queued" if counts.queued else "",
        f"{count(counts.failed)} failed" if counts.failed else "",
        f"{count(counts.denied)} forbidden by robots.txt" if counts.denied else "",
        f"{count(counts.refused)} refused by rules" if counts.refused else "",
        f"{count(counts.cut)} left out by --max-requisites-per-page" if counts.cut else "",
    ]
    return ", ".join(filter(None, parts))


def summary_of(figures: Figures) -> Summary:
    totals = figures.totals
    return Summary(
        pages=totals.pages,
        fetches=totals.fetches,
        errors=totals.errors,
        error_rate=rounded(figures.error_rate, 6),
        bytes=totals.bytes,
        seconds=round(totals.seconds, 3),
        pages_per_second=rounded(figures.pages_per_second, 2),
        cpu_seconds=round(figures.cpu_seconds, 3),
        cpu_ms_per_page=rounded(figures.cpu_ms_per_page, 3),
        peak_rss_bytes=figures.peak_rss_bytes,
        peak_private_bytes=figures.peak_private_bytes,
        unique_hosts=totals.unique_hosts,
        unique_domains=totals.unique_domains,
        urls_seen=totals.urls_seen,
        urls_queued=figures.urls_queued,
        urls_parked=figures.urls_parked,
        urls_over_budget=figures.urls_over_budget,
        robots_disallowed=totals.robots_disallowed,
        duplicates=totals.duplicates,
        near_duplicates=totals.near_duplicates,
        html_share=rounded(figures.html_share, 4),
        finished=figures.finished,
        out=figures.out,
        dead=totals.dead,
        loop_stall_p99_ms=round(figures.loop_stall_p99_ms, 2),
        loop_stall_max_ms=round(figures.loop_stall_max_ms, 2),
        core_wait_p99_ms=round(figures.core_wait_p99_ms, 2),
        commit_p50_ms=round(figures.commit_p50_ms, 1),
        commit_p99_ms=round(figures.commit_p99_ms, 1),
        hub_cpu_seconds=round(totals.cpu_seconds, 3),
        crawl_cpu_seconds=round(figures.crawl_cpu_seconds, 3),
        run_fetches=totals.fetches - figures.fetches_before,
        fetch_cpu_ms_per_page=round(figures.fetch_cpu_ms_per_page, 3),
        worker_deaths=figures.worker_deaths,
        memory_ceiling_bytes=figures.memory_ceiling_bytes,
        held=dict(totals.held),
        spam_pages=totals.spam_pages,
        spam_hosts=totals.spam_hosts,
        held_dropped=totals.held_dropped,
        evicted=totals.evicted,
        crowded_hosts=totals.crowded_hosts,
        robots_overridden=totals.robots_overridden,
        robots_cut=totals.robots_cut,
        unchecked_hosts=totals.unchecked_hosts,
        requisites=requisite_counts(totals, figures.requisites_queued),
        visits=visit_counts(totals) if totals.visits or figures.revisits is not None else None,
        freshness=figures.freshness,
        node_pages=figures.node_pages,
        cuts=cuts_of(totals),
        domain_budgets=figures.domain_budgets,
        more=labelled(figures, Place.SUMMARY),
        unknown=unknown(figures),
    )


def held_text(held: Mapping[str, int], dropped: int) -> str:
    """Return how many URLs are held back by which rule, in one line; empty if there are none."""
    parts = [f"{plural(urls, 'URL')} by the {HELD_BY.get(rule, rule)}" for rule, urls in sorted(held.items())]
    if dropped:
        parts.append(f"{agreeing(dropped, 'more link', 'was', 'were')} dropped, beyond what a host may have held back")
    return "; ".join(parts)


def cuts_of(totals: Totals) -> dict[str, int]:
    """Return how many links and pages limits and rules left out."""
    return totals.cuts | ({"rules": totals.excluded} if totals.excluded else {})


def cuts_text(cuts: Mapping[str, int]) -> str:
    """Return what limits and rules left out, in one line; empty if that is nothing."""
    return "; ".join(_cut_text(rule, cuts) for rule in CUT_BY if cuts.get(rule))


def _cut_text(rule: str, cuts: Mapping[str, int]) -> str:
    pages = f" on {plural(cuts[f'{rule}_pages'], 'page')}" if cuts.get(f"{rule}_pages") else ""
    return f"{plural(cuts[rule], 'page' if rule.endswith('_pages') else 'link')}{pages} {CUT_BY[rule]}"


CUT_BY = {
    MAX_DEPTH: "deeper than --max-depth, known ones among them",
    MAX_LINKS_PER_PAGE: "beyond --max-links-per-page",
    NOFOLLOW: "with nofollow",
    TRUNCATED_PAGES: "incomplete (--max-bytes, a time limit, a connection that broke)",
    "rules": "refused by rules, some of them often",
}
CUT_BY_LIMITS = frozenset({MAX_DEPTH, MAX_LINKS_PER_PAGE, TRUNCATED_PAGES})
CUT_BECAUSE = "everything within the limits was fetched ('gossamer missing' lists what they left out)"
HELD_BY = {
    "first_pass": "first pass",
    "calendar": "calendar rule (dates without new content)",
    "hosts_per_domain": "number of hosts that a domain may have (--max-hosts-per-domain)",
    "link_backlog": "length of their page or sitemap (resume queues them)",
    "max_hosts_per_address": "number of new hosts that pages at one address may lead to (--max-hosts-per-address)",
    "quarantine": "quarantine of traps ('gossamer traps' shows them)",
    "spam": "quarantine of hosts with spam ('gossamer traps' shows them)",
}


def held_because(held: Mapping[str, int], dropped: int) -> str:
    """Return how much may be missing after a crawl that has ended although URLs are held back."""
    urls = plural(sum(held.values()) + dropped, "URL")
    return f"all else was fetched, but {urls} held back may be pages ('gossamer missing' lists, 'traps' releases them)"


ENDED_WITHOUT_QUEUE = ("exhausted", "held")  # a crawl of an earlier version was exhausted in either case
REASONS = {
    "exhausted": "everything within reach was fetched",
    "held": "all else was fetched, but some URLs are held back",
    "max_pages": "the page limit was reached",
    "max_time": "the time limit was reached",
    "target_domains": "the target of unique domains was reached",
    "budgets": "what is left is over the budgets of its hosts or domains",
    "parked": "what is left is parked; resume continues with it",
    "signal": "stopped by a signal; resume continues",
    "stopped": "stopped by the operator; resume continues",
    "left": "the node has left on request; the others continue",
    "failed": "stopped by an error; resume continues",
    "running": "the crawl is running",
    "interrupted": "its process was killed; resume continues",
}

# Of a crawl on many nodes.
SHARED_REASONS = {
    **REASONS,
    "signal": "stopped by a signal; join continues",
    "stopped": "stopped by the operator; join continues",
    "failed": "stopped by an error; join continues",
}
