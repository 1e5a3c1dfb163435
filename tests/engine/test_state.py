"""What a decision depends on survives a resume: budgets, suspicions, reserves, submitted sitemaps, numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.traps.calendar import MAX_UNPROVEN
from gossamer.core.url.forms import host_of, link_to
from gossamer.core.url.identity import host_id
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, FetchTask, HostRecord, Outcome
from gossamer.ports import Ledger
from gossamer.sim.scenarios import ImaginedHost, ImaginedSites, Scenario
from tests.engine.test_crawl import Bench

LIMITS = FrontierLimits(max_depth=1000)


@pytest.fixture(params=["memory", "local"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Ledger | None], Ledger]:
    """Return what opens a ledger anew, as the next run does."""

    def reopen(ledger: Ledger | None) -> Ledger:
        if request.param == "memory":
            return ledger or MemoryLedger()
        if ledger is not None:
            ledger.close()
        local = LocalLedger(tmp_path / "state")
        local.open()
        request.addfinalizer(local.close)
        return local

    return reopen


Reopen = Callable[[Ledger | None], Ledger]


def resumed(bench: Bench, reopened: Reopen) -> Bench:
    bench.crawl.give_back(bench.crawl.tasks_out(), bench.now)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    return Bench(ledger=reopened(bench.ledger), limits=LIMITS, now=bench.now + 10.0)


def next_page(bench: Bench, host: str = "a.test") -> FetchTask:
    """Return the next task at a host that is not for robots.txt; all others are answered with nothing."""
    for _ in range(20):
        for task in bench.tasks(after_s=2.0):
            if task.host == host and task.kind is not FetchKind.ROBOTS:
                return task
            bench.end(task, robots=b"")
    raise AssertionError(f"no page of {host} is ordered")


def dated(count: int) -> list[str]:
    return [f"http://a.test/{2000 + n // 12}/{1 + n % 12:02d}/" for n in range(count)]


def test_the_calendar_budget_is_not_given_anew(reopened: Reopen) -> None:
    bench = Bench("http://a.test/2010/01/", ledger=reopened(None), limits=LIMITS)
    task = next_page(bench)
    bench.end(task, links=[link_to(url) for url in dated(MAX_UNPROVEN)])
    assert bench.crawl.frontier.counts.queued == MAX_UNPROVEN
    again = resumed(bench, reopened)
    task = next_page(again)
    queued = again.crawl.frontier.counts.queued
    again.end(task, links=[link_to(f"{url}x/2031/01/") for url in dated(3)])
    assert again.crawl.frontier.counts.queued == queued - 1
    assert {event.reason for event in again.told(EventName.EXCLUDED_BY_RULE)} == {"calendar"}


def test_pages_that_repeat_a_text_are_counted_over_runs_until_the_host_is_probed_once(reopened: Reopen) -> None:
    bench = Bench(*(f"http://a.test/{n}" for n in range(29)), ledger=reopened(None), limits=LIMITS)
    probes = 0
    for number in range(1, 31):
        task = next_page(bench)
        probes += task.url.endswith("-no-such-page")
        bench.end(task, text_hash=b"not here", content_type="text/html", content_hash=task.url_id)
        if number % 4 == 0:
            bench = resumed(bench, reopened)
    assert probes == 1, "ten pages with one text are suspicious, in however many runs they were fetched"


def test_reserves_of_the_first_pass_are_tried_in_the_next_run(reopened: Reopen) -> None:
    links = [f"http://d.test/{n}" for n in range(1, 5)]
    web = ImaginedSites({"hub.test": ImaginedHost(pages=1, cross_links=links, address="10.0.0.9")})
    web.hosts["d.test"] = ImaginedHost(
        pages=1, address="10.0.1.1", status=lambda url, _now: 404 if int(url.rpartition("/")[2]) < 4 else 200
    )
    ledger = reopened(None)
    first = Scenario(web, ["http://hub.test/"], target_domains=9, ledger=ledger)
    crawl, driver = first.prepare()
    driver.run(until=driver.now + 2.5)
    assert crawl.totals.unique_domains == 1
    crawl.give_back(crawl.tasks_out(), driver.now)
    crawl.save_state(0.0, 0.0, driver.now)
    second = Scenario(web, [], target_domains=9, ledger=reopened(ledger), started_at=driver.now + 60.0)
    why, crawl, driver = second.run()
    assert why == "exhausted"
    assert crawl.totals.unique_domains == 2
    pages = [request.url for request in driver.requests if not request.url.endswith("robots.txt")]
    assert pages[-1] == "http://d.test/4"


def test_a_sitemap_elsewhere_may_speak_for_a_domain_in_the_next_run_too(reopened: Reopen) -> None:
    bench = Bench("http://a.test/", ledger=reopened(None), limits=LIMITS)
    (robots,) = bench.tasks()
    bench.end(robots, robots=b"Sitemap: http://maps.test/a.xml")
    again = resumed(bench, reopened)
    sitemap = next_page(again, "maps.test")
    assert (sitemap.url, sitemap.kind) == ("http://maps.test/a.xml", FetchKind.SITEMAP)
    links = [link_to("http://a.test/listed"), link_to("http://other.test/listed")]
    again.end(sitemap, links=links, content_type="application/x-sitemap")
    assert again.ledger.is_seen(links[0].id)
    assert not again.ledger.is_seen(links[1].id), "nobody but a.test lists it"


def test_arrivals_are_numbered_on_from_the_run_before(reopened: Reopen) -> None:
    bench = Bench("http://a.test/", "http://b.test/", ledger=reopened(None), limits=LIMITS)
    again = resumed(bench, reopened)
    again.crawl.add_seeds([link_to("http://c.test/")], again.now)
    again.ledger.commit()
    seqs = {host_of(row.url): row.seq for _, row in again.ledger.urls()}
    assert seqs["c.test"] > max(seqs["a.test"], seqs["b.test"])


def test_a_host_whose_id_another_host_has_gets_another_id() -> None:
    bench = Bench("http://a.test/", limits=LIMITS)
    ledger = bench.ledger
    assert isinstance(ledger, MemoryLedger)
    # As if the two names had equal hashes: finding such a pair takes hours.
    ledger._put("hosts", host_id("twin.test"), HostRecord("other.test", "other.test"))
    (task,) = bench.past_robots()
    bench.end(task, Outcome.OK, links=[link_to("http://twin.test/x"), link_to("http://fine.test/")])
    assert {task.host for task in bench.tasks()} == {"twin.test", "fine.test"}
    assert bench.told(EventName.EXCLUDED_BY_RULE) == []
    assert {record.name for record in ledger.hosts()} == {"a.test", "other.test", "twin.test", "fine.test"}
    again = Bench(ledger=ledger, limits=LIMITS, now=bench.now + 100.0)
    assert again.crawl.frontier.counts.queued == 2, "also after a restart"
    assert {task.host for task in again.tasks()} == {"twin.test", "fine.test"}
