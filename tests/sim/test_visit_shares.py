"""Visits of known pages beside a domain that wants all of them, in virtual time.

The hostile domain says of every page, whenever it is asked, that it has changed, each time with a link to a page that
is new; its feed dates all of them anew, and it sends a notice for each of them every hour. It is judged by what honest
hosts are visited, beside the same crawl in which a site of the same size changes as they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from xxhash import xxh3_128_digest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import DUE, HOST_VISITS
from gossamer.core.revisit.schedule import RevisitRules
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Outcome, Result
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario

DAY = 86_400.0
HOUR = 3600.0
DAYS = 30
FAIR = 0.9
HONEST = 20
BAD_PAGES = 20
BAD = "www.bad.test"
WAYS = ("changes", "feed", "notices")
NOTICED: Mapping[str, Sequence[str]] = {"changes": (), "feed": (), "notices": (BAD,)}
ROOT_OF_NEWS = "http://news.test/"


def page(task: FetchTask, version: str, links: Sequence[str]) -> Result:
    digest = xxh3_128_digest(f"{task.url} {version}".encode())
    return Result(
        task.id,
        Outcome.OK,
        status=200,
        content_type="text/html",
        content_bytes=1000,
        wire_bytes=1000,
        content_hash=digest,
        text_hash=digest[:8],
        links=[link_to(f"http://{task.host}/{path}") for path in links],
        archived=ArchiveSpan("stored.warc.gz", task.id, 100),
    )


def site(pages: int, changes_every_s: float) -> ImaginedHost:
    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        first = int(task.url.rpartition("/")[2] or 0) * 5 + 1
        links = [str(number) for number in range(first, min(first + 5, pages))]
        return page(task, str(int((now - START) / changes_every_s)), links)

    return ImaginedHost(pages=pages, says=says)


def greedy(pages: int, *, has_feed: bool = False) -> ImaginedHost:
    """Return a host of which everything has always changed."""
    asked = 0

    def says(task: FetchTask, now: float) -> Result | None:
        nonlocal asked
        if task.kind is FetchKind.ROBOTS:
            return None
        asked += 1
        links = [f"new{asked}"] if "new" in task.url else [*map(str, range(1, pages)), f"new{asked}"]
        result = page(task, str(asked), links)
        if has_feed and task.url.endswith("/"):
            result.content_type = "application/rss+xml"
            result.lastmods = {link.id: datetime.fromtimestamp(now, UTC).isoformat() for link in result.links}
        return result

    return ImaginedHost(pages=pages, says=says)


def news(changes_every_s: float) -> ImaginedHost:
    """Return a host whose first page names a new article every so many seconds; these never change."""

    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        if not task.url.endswith("/"):
            return page(task, "", [])
        newest = int((now - START) / changes_every_s)
        return page(task, str(newest), [str(number) for number in range(max(1, newest - 10), newest + 1)])

    return ImaginedHost(says=says)


def honest_hosts(changes_every_s: float = 2 * DAY, count: int = HONEST) -> dict[str, ImaginedHost]:
    return {f"h{number}.test": site(10, changes_every_s) for number in range(count)}


class Run:
    """A crawl, and the visits of known pages that it made."""

    def __init__(
        self,
        hosts: Mapping[str, ImaginedHost],
        budget: float,
        *,
        noticed: Sequence[str] = (),
        max_pages: int | None = BAD_PAGES,
    ) -> None:
        rules = CrawlRules(watches_traps=False, revisits=RevisitRules(fetches_per_day=budget))
        limits = FrontierLimits(max_pages_per_host=max_pages)
        scenario = Scenario(ImaginedSites(dict(hosts)), [f"http://{name}/" for name in hosts], limits, rules=rules)
        self.crawl, self.driver = scenario.prepare()
        self.most_held = 0
        notices = [link_to(f"http://{name}/{path}") for name in noticed for path in ("", *range(1, BAD_PAGES))]
        for hour in range(1, DAYS * 24 + 1):
            self.driver.run(until=START + hour * HOUR)
            if notices:
                self.crawl.accept_notice(notices, self.driver.now)
            self.most_held = max(self.most_held, self.held_domains())
        self.visits = visits(self.driver)

    def held_domains(self) -> int:
        figures = self.crawl.revisits.figures(1, self.driver.now)
        return figures.held_domains if figures is not None else 0

    def gap(self, url: str) -> float:
        """Return the median time between the last 100 requests for a URL."""
        times = [request.at for request in self.driver.requests if request.url == url][-100:]
        return sorted(after - before for before, after in pairwise(times))[len(times) // 2]

    def of(self, names: Mapping[str, ImaginedHost]) -> int:
        return sum(self.visits[name] for name in names)


def visits(driver: VirtualDriver) -> Counter[str]:
    known: set[str] = set()
    count: Counter[str] = Counter()
    for request in driver.requests:
        if not request.url.endswith("/robots.txt"):
            count[request.host] += request.url in known
            known.add(request.url)
    return count


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("budget", "changes_every_s"), [(0.0, 2 * DAY), (200.0, 10 * DAY)])
def test_a_domain_that_wants_all_visits_leaves_the_others_theirs(
    way: str, budget: float, changes_every_s: float
) -> None:
    honest = honest_hosts(changes_every_s)
    control = Run(honest | {BAD: site(BAD_PAGES, changes_every_s)}, budget)
    attacked = Run(honest | {BAD: greedy(BAD_PAGES, has_feed=way == "feed")}, budget, noticed=NOTICED[way])
    assert attacked.of(honest) >= FAIR * control.of(honest)
    assert control.visits[BAD] / 2 < attacked.visits[BAD] < 3.5 * control.visits[BAD], "its share, and a little more"
    assert attacked.held_domains() == 1
    assert control.held_domains() == 0


def test_neither_many_hosts_of_a_domain_nor_several_domains_get_more() -> None:
    honest = honest_hosts()
    for names in ([f"h{number}.bad.test" for number in range(10)], [f"bad{number}.test" for number in range(5)]):
        pages = BAD_PAGES // len(names)
        control = Run(honest | {name: site(pages, 2 * DAY) for name in names}, 0.0, max_pages=10)
        attacked = Run(honest | {name: greedy(pages) for name in names}, 0.0, max_pages=10, noticed=names)
        assert attacked.of(honest) >= 0.8 * control.of(honest)


def test_an_honest_crawl_of_sites_that_differ_holds_nobody() -> None:
    hosts = {f"h{number}.test": site(5 + number, (1 + number % 5) * DAY) for number in range(HONEST)}
    assert Run(hosts, 0.0).most_held == 0


def test_news_are_visited_every_hour_by_a_crawl_of_nothing_else() -> None:
    run = Run({"news.test": news(HOUR)}, 100.0, max_pages=None)
    assert run.gap(ROOT_OF_NEWS) <= 1.1 * HOUR
    assert run.most_held == 0, "alone it may have what it wants"


def test_news_are_visited_every_hour_beside_sites_that_hardly_change() -> None:
    idle = honest_hosts(10_000 * DAY, 8)
    run = Run(idle | {"news.test": news(4 * HOUR)}, 100.0, max_pages=None)
    assert run.gap(ROOT_OF_NEWS) <= 1.1 * HOUR
    assert run.visits["news.test"] > 0.5 * run.visits.total()


def test_what_is_held_back_is_told_stored_and_not_forgotten_by_the_next_run(tmp_path: Path) -> None:
    hosts = honest_hosts(count=5) | {BAD: greedy(BAD_PAGES)}
    rules = CrawlRules(watches_traps=False, revisits=RevisitRules())
    at = START
    for number in range(3):
        ledger = LocalLedger(tmp_path / "state")
        ledger.open()
        seeds = [f"http://{name}/" for name in hosts]
        limits = FrontierLimits(max_pages_per_host=BAD_PAGES)
        scenario = Scenario(
            ImaginedSites(hosts), seeds, limits, rules=rules, ledger=ledger, started_at=at, was_clean=not number
        )
        crawl, driver = scenario.prepare()
        known = crawl.revisits.pages
        driver.run(until=at + 8 * DAY)
        crawl.save_state(1.0, 1.0, driver.now)
        ledger.commit()
        assert number == 0 or known == crawl.revisits.pages
        figures = crawl.revisits.figures(1, driver.now)
        assert figures is not None
        assert (figures.held_domains, figures.known) == (1, sum(figures.classes.values()))
        visits = ledger.record(HOST_VISITS, host_id(BAD))
        assert visits is not None
        assert driver.now < visits.held_until <= driver.now + 2 * DAY
        due = sorted((entry.id, entry.at) for entry in ledger.records(DUE))
        planned = sorted((key, row.revisit.due_at) for key, row in ledger.urls() if row.revisit and row.revisit.due_at)
        assert due == planned
        pages = crawl.revisits.pages
        at = driver.now
        ledger.close()
    assert pages == len(due)
