"""The model of a crawl (`model`) whose pages need something: limits do not concern that, and nothing of it is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis.stateful import invariant
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from gossamer.core.frontier.workbench import HostState
from gossamer.core.links.requisite import requisite_id, requisites_from
from gossamer.core.url.forms import host_of
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Outcome, Requisites, Result, UrlState
from tests.amount import amount

from .model import ADDRESSES, ORIGINS, CrawlModel
from .test_crawl_model import little_memory

__all__ = ["little_memory"]

MAX_REQUISITES = 7


def needed_by(url: str) -> Requisites | None:
    """What a page or stylesheet needs, by its URL alone: up to five, the first two of them stylesheets."""
    number = xxh3_64_intdigest(url.encode())
    hrefs = [f"{ORIGINS[(number >> n) % len(ORIGINS)]}/{(number >> 2 * n) % 40}" for n in range(number % 6)]
    links = requisites_from(url, hrefs)
    return Requisites(links, min(2, len(links)), len(links)) if links else None


class CrawlWithRequisites(CrawlModel):
    """The same, with requisites."""

    def start_crawl(self, *, was_clean: bool) -> None:
        self.crawl_rules = replace(self.crawl_rules, max_requisites=MAX_REQUISITES)
        if not hasattr(self, "answered"):
            self.answered: Counter[bytes] = Counter()
        super().start_crawl(was_clean=was_clean)

    def end(self, task: FetchTask, result: Result, sent_at: float) -> None:
        if result.outcome is Outcome.OK and task.kind is not FetchKind.ROBOTS:
            result.requisites = needed_by(task.url)
            result.archived = ArchiveSpan("file", self.answered.total(), 1)
            self.answered[task.url_id] += 1
            if task.kind is FetchKind.REQUISITE:  # which the model has counted as a page
                self.pages[task.host] -= 1
                self.domain_pages[".".join(task.host.split(".")[-2:])] -= 1
        super().end(task, result, sent_at)

    def check_page_task(self, task: FetchTask) -> None:
        super().check_page_task(task)
        assert not self.answered[task.url_id], "fetched again"
        if task.kind is FetchKind.REQUISITE:
            page = self.ledger.look_up(requisite_id(task.url_id))
            assert page is None or page.archived is None, "it is stored as a page"

    @invariant()
    def requisites_are_counted_right(self) -> None:
        queued: Counter[str] = Counter()
        ended: Counter[str] = Counter()
        for _, row in self.rows():
            if row.kind is FetchKind.REQUISITE and row.state is UrlState.QUEUED:
                queued[host_of(row.url)] += 1
            elif row.kind is FetchKind.REQUISITE:
                ended["dead" if row.state is UrlState.DEAD else row.outcome] += 1
        frontier, totals = self.crawl.frontier, self.crawl.totals
        assert frontier.counts.requisites == queued.total()
        for name in ADDRESSES:
            live = frontier.record_of(name) or self.ledger.host(name)
            assert (live.requisites if live else 0) == queued[name], name
        assert (totals.requisites, totals.requisites_denied) == (ended["ok"], ended["robots_denied"])
        others = sum(count for name, count in ended.items() if name not in ("ok", "robots_denied", "redirect"))
        assert totals.requisites_failed == others

    def teardown(self) -> None:
        super().teardown()
        if not hasattr(self, "crawl"):
            return
        frontier = self.crawl.frontier
        is_waiting = any(host.state is HostState.BUSY for host in frontier._hosts.values())  # for another's robots.txt
        assert frontier.counts.requisites == 0 or is_waiting


CrawlWithRequisites.TestCase.settings = settings(max_examples=amount(15, 60), stateful_step_count=40)
TestCrawlWithRequisites = CrawlWithRequisites.TestCase
