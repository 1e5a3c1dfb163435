"""Crawls that go on: known pages are fetched again when they are due, over weeks in virtual time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.amount import amount
from xxhash import xxh3_128_digest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import DUE, DUE_HOSTS
from gossamer.core.revisit.classes import ClassPatterns, PageClass, rules_within
from gossamer.core.revisit.history import past_visits
from gossamer.core.revisit.page import unpacked
from gossamer.core.revisit.schedule import RevisitRules, Schedule
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of
from gossamer.engine.crawl import Crawl
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Outcome, Result, UrlState
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts

DAY = 86_400.0
HOUR = 3600.0
RULES = CrawlRules(watches_traps=False, revisits=RevisitRules(fetches_per_day=40))
ROOT = "http://h0.test/"
STATUSES = st.sampled_from([200, 200, 200, 302, 404, 410, 500])


def changing(every_s: Callable[[int], float], pages: int = 10) -> ImaginedHost:
    """Return a host whose page n changes every so many seconds, and that answers conditional requests."""

    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        number = int(task.url.rpartition("/")[2] or 0)
        version = f'"{number}-{int((now - START) / every_s(number))}"'
        if task.etag == version:
            return Result(task.id, Outcome.NOT_MODIFIED, status=304)
        digest = xxh3_128_digest(version.encode())
        first = number * 5 + 1
        links = [link_to(f"http://{task.host}/{n}") for n in range(first, min(first + 5, pages))]
        return Result(
            task.id,
            Outcome.OK,
            status=200,
            content_type="text/html",
            content_bytes=1000,
            wire_bytes=1000,
            content_hash=digest,
            text_hash=digest[:8],
            etag=version,
            links=links,
            archived=ArchiveSpan("stored.warc.gz", task.id, 100),
        )

    return ImaginedHost(pages=pages, says=says)


def times_by_url(driver: VirtualDriver) -> dict[str, list[float]]:
    times: dict[str, list[float]] = defaultdict(list)
    for request in driver.requests:
        if not request.url.endswith("/robots.txt"):
            times[request.url].append(request.at)
    return times


def go_on(scenario: Scenario, days: float) -> tuple[Crawl, VirtualDriver]:
    crawl, driver = scenario.prepare()
    assert driver.run(until=scenario.started_at + days * DAY) == "time"
    return crawl, driver


def check_counts(crawl: Crawl, ledger: Ledger) -> None:
    """Check that the totals are what the rows say, and that what is scheduled is in the index exactly once."""
    rows = dict(ledger.urls())
    pages = [row for row in rows.values() if row.state is UrlState.DONE and row.outcome == "ok"]
    assert crawl.totals.pages == len(pages)
    assert crawl.totals.dead == sum(row.state is UrlState.DEAD for row in rows.values())
    assert crawl.totals.duplicates == sum(bool(row.duplicate_of) for row in pages)
    assert sum(crawl.totals.types.values()) == len(pages)
    due = sorted((entry.id, entry.at) for entry in ledger.records(DUE))
    planned = sorted((key, row.revisit.due_at) for key, row in rows.items() if row.revisit and row.revisit.due_at)
    assert due == planned
    assert len({entry.host for entry in ledger.records(DUE_HOSTS)}) == len(list(ledger.records(DUE_HOSTS)))


def test_pages_are_fetched_again_never_early_and_never_forgotten() -> None:
    site = ImaginedSites({"h0.test": changing(lambda number: DAY * (number + 1))})
    scenario = Scenario(site, [ROOT], rules=RULES)
    crawl, driver = go_on(scenario, 60)
    times = times_by_url(driver)
    assert len(times) == 10
    for each in times.values():
        gaps = [after - before for before, after in pairwise(each)]
        assert min(gaps) >= HOUR
        assert max(gaps) <= 30 * DAY + HOUR
        assert 60 * DAY - (each[-1] - START) <= 30 * DAY + HOUR  # and the next one is not overdue
    totals = crawl.totals
    assert totals.visits == sum(len(each) - 1 for each in times.values())
    assert totals.visits == totals.visits_changed + totals.visits_same
    assert totals.visits_same > totals.not_modified > 0.8 * totals.visits_same  # now and then one is fetched in full
    assert 40 * 60 * 0.5 < totals.visits < 40 * 60 * 1.3  # fetches per day, as far as there is something to gain
    check_counts(crawl, scenario.ledger)


def test_what_changes_is_visited_more_often_than_what_does_not() -> None:
    site = ImaginedSites({"h0.test": changing(lambda number: 2 * DAY if number % 2 else 1000 * DAY, pages=40)})
    rules = replace(RULES, revisits=RevisitRules(fetches_per_day=10))
    _, driver = go_on(Scenario(site, [ROOT], rules=rules), 120)
    times = times_by_url(driver)
    odd = sum(len(times[f"{ROOT}{number}"]) for number in range(1, 40, 2))
    even = sum(len(times[f"{ROOT}{number}"]) for number in range(2, 40, 2))
    assert odd > 3 * even


def test_a_class_that_is_set_decides_the_interval() -> None:
    site = ImaginedSites({"h0.test": changing(lambda _: 1000 * DAY)})
    patterns = ClassPatterns(((PageClass.NEWS, "/1$"),))
    rules = replace(RULES, revisits=RevisitRules(patterns=patterns, fetches_per_day=40))
    _, driver = go_on(Scenario(site, [ROOT], rules=rules), 30)
    times = times_by_url(driver)
    assert len(times[f"{ROOT}1"]) > 2 * len(times[f"{ROOT}2"])


def test_a_killed_crawl_goes_on_and_forgets_no_visit(tmp_path: Path) -> None:
    site = ImaginedSites({"h0.test": changing(lambda number: DAY * (number + 1), pages=30)})
    seen: dict[str, list[float]] = defaultdict(list)
    at = START
    for run in range(12):
        ledger = LocalLedger(tmp_path / "state")
        ledger.open()
        scenario = Scenario(site, [ROOT], rules=RULES, ledger=ledger, was_clean=run == 0, started_at=at)
        crawl, driver = scenario.prepare()
        driver.run(until=at + 2.5 * DAY)
        crawl.save_state(1.0, 1.0, driver.now)
        ledger.commit()
        driver.run(until=at + 2.6 * DAY)  # what follows is lost
        for url, times in times_by_url(driver).items():
            seen[url] += times
        at = driver.now
        ledger.close()
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    rows = [row for _, row in ledger.urls()]
    assert len(rows) == 30
    assert all(row.revisit is not None and row.revisit.due_at > 0 for row in rows)
    assert all(len(times) > 2 for times in seen.values())
    due = {entry.id: entry.at for entry in ledger.records(DUE)}
    assert due == {key: row.revisit.due_at for key, row in ledger.urls() if row.revisit}
    overdue = [url for url, times in seen.items() if at - times[-1] > 30 * DAY + HOUR]
    assert not overdue
    ledger.close()


def test_the_limit_of_pages_holds_for_new_ones_only() -> None:
    site = ImaginedSites({"h0.test": changing(lambda number: DAY * (number + 1), pages=30)})
    scenario = Scenario(site, [ROOT], rules=RULES, limits=FrontierLimits(max_pages=12))
    crawl, driver = go_on(scenario, 40)
    times = times_by_url(driver)
    assert len(times) == 12 == crawl.totals.pages
    assert all(len(each) > 1 for each in times.values())
    check_counts(crawl, scenario.ledger)


def test_a_budget_of_a_host_holds_for_new_pages_only() -> None:
    web = many_hosts(4, 30)
    scenario = Scenario(web, ["http://h0.test/"], rules=RULES, limits=FrontierLimits(max_pages_per_host=5))
    crawl, driver = go_on(scenario, 40)
    times = times_by_url(driver)
    assert len(times) == 20 == crawl.totals.pages
    assert all(len(each) > 1 for each in times.values())


def test_new_pages_get_their_share_while_known_ones_are_due() -> None:
    fast = {"h0.test": changing(lambda _: HOUR, pages=5000)}
    schedule = Schedule(classes=rules_within(1 / 1440, 1 / 1440))  # all of them are always due
    rules = replace(RULES, revisits=RevisitRules(schedule=schedule, known_share=0.5))
    crawl, _ = go_on(Scenario(ImaginedSites(fast), [ROOT], rules=rules), 0.1)  # 8,640 requests at most
    assert 3000 < crawl.totals.pages < 5000
    assert 3000 < crawl.totals.visits < 5400


def test_a_page_that_is_gone_is_asked_less_and_less_and_leaves_and_a_seed_stays() -> None:
    def status(_url: str, now: float) -> int:
        return 200 if now < START + DAY else 404

    web = ImaginedSites({"h0.test": ImaginedHost(pages=3, status=status)})
    scenario = Scenario(web, [ROOT], rules=RULES)
    crawl, driver = go_on(scenario, 200)
    gone = [at for at in times_by_url(driver)[f"{ROOT}1"] if at >= START + DAY]
    waits = [round((after - before) / DAY) for before, after in pairwise(gone)]
    assert waits == [1, 3, 9, 27]
    seed = times_by_url(driver)[ROOT]
    assert START + 200 * DAY - seed[-1] <= 31 * DAY
    row = scenario.ledger.look_up(link_to(f"{ROOT}1").id)
    assert row is not None
    assert row.revisit is not None
    assert (row.status, row.revisit.due_at) == (404, 0)
    assert [visit.found for visit in past_visits(row.revisit.history)][-5:] == ["gone"] * 5
    assert (crawl.totals.pages, crawl.totals.unique_hosts, crawl.totals.dead) == (0, 0, 3)
    check_counts(crawl, scenario.ledger)


class SometimesAway(ImaginedSites):
    """Hosts whose names can be taken away."""

    has_names: bool = True

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        """Return the host's address, if there are names."""
        return super().resolve(host) if self.has_names else ((), Outcome.DNS_NOT_FOUND)


def test_a_host_that_is_away_for_days_is_tried_again() -> None:
    web = SometimesAway({"h0.test": changing(lambda number: DAY * (number + 1))})
    scenario = Scenario(web, [ROOT], rules=RULES)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 3 * DAY)
    web.has_names = False
    driver.run(until=START + 3 * DAY + HOUR)  # until then its address is known
    before = len(driver.requests)
    driver.run(until=START + 5 * DAY)
    assert len(driver.requests) == before
    web.has_names = True
    driver.run(until=START + 8 * DAY)
    after = [request for request in driver.requests if request.at > START + 5 * DAY]
    assert len({request.url for request in after}) >= 10
    check_counts(crawl, scenario.ledger)


def test_a_seed_that_failed_is_tried_again() -> None:
    web = ImaginedSites({"h0.test": ImaginedHost(pages=1, status=lambda _u, now: 503 if now < START + DAY else 200)})
    seeds = [ROOT, "http://none.test/"]
    scenario = Scenario(web, seeds, rules=RULES)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 2 * DAY)
    web.hosts["none.test"] = ImaginedHost(pages=1, address="127.0.0.9")
    driver.run(until=START + 4 * DAY)
    assert crawl.totals.pages == 2
    check_counts(crawl, scenario.ledger)


def test_what_robots_txt_forbids_later_is_not_requested_and_keeps_its_copy() -> None:
    host = changing(lambda number: DAY * (number + 1))
    web = ImaginedSites({"h0.test": host})
    scenario = Scenario(web, [ROOT], rules=RULES)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 2 * DAY)
    host.robots = b"User-agent: *\nDisallow: /1\n"
    driver.run(until=START + 4 * DAY)  # its robots.txt is a day old at most
    asked = len(times_by_url(driver)[f"{ROOT}1"])
    driver.run(until=START + 30 * DAY)
    assert len(times_by_url(driver)[f"{ROOT}1"]) == asked
    row = scenario.ledger.look_up(link_to(f"{ROOT}1").id)
    assert row is not None
    assert (row.outcome, row.status) == ("ok", 200)
    assert crawl.totals.robots_disallowed > 0
    check_counts(crawl, scenario.ledger)


def test_what_was_fetched_before_is_scheduled_when_a_crawl_begins_to_fetch_again() -> None:
    web = many_hosts(20, 12)
    ledger = MemoryLedger()
    why, first, _ = Scenario(web, [f"http://{name}/" for name in web.hosts], ledger=ledger).run()
    assert (why, first.totals.pages) == ("exhausted", 240)
    first.save_state(1.0, 1.0, START + HOUR)
    rules = replace(RULES, revisits=RevisitRules())
    again = Scenario(web, [], rules=rules, ledger=ledger, started_at=START + DAY)
    crawl, driver = go_on(again, 32)
    assert len(times_by_url(driver)) == 240
    assert crawl.revisits.census.pages == 240
    check_counts(crawl, ledger)


def test_what_a_run_fetches_without_scheduling_it_is_scheduled_by_the_next() -> None:
    web = many_hosts(5, 30)
    ledger = MemoryLedger()
    crawl, _ = go_on(Scenario(web, ["http://h0.test/"], rules=RULES, ledger=ledger), 1)
    crawl.save_state(1.0, 1.0, START + DAY)
    seeds = [f"http://{name}/" for name in web.hosts]
    web.hosts["new.test"] = ImaginedHost(pages=10, address="127.0.0.77")
    why, crawl, _ = Scenario(web, [*seeds, "http://new.test/"], ledger=ledger, started_at=START + 2 * DAY).run()
    assert why == "exhausted"
    crawl.save_state(1.0, 1.0, START + 3 * DAY)
    crawl, driver = go_on(Scenario(web, [], rules=RULES, ledger=ledger, started_at=START + 4 * DAY), 32)
    assert sum(url.startswith("http://new.test/") for url in times_by_url(driver)) == 10
    assert crawl.revisits.census.pages == crawl.totals.pages == 160
    check_counts(crawl, ledger)


def test_visits_go_on_where_a_shard_is_released_and_taken_again() -> None:
    web = many_hosts(12, 5)
    scenario = Scenario(web, [f"http://{name}/" for name in web.hosts], rules=RULES)
    crawl, driver = scenario.prepare()
    driver.run(until=START + DAY)
    known = crawl.revisits.census.pages
    used = {shard_of(host_id(name)) for name in web.hosts}
    for day in range(2, 40):
        shards = [shard for shard in sorted({*used, *range(0, SHARD_COUNT, 100)}) if shard % 3 == day % 3]
        crawl.release(shards, driver.now)
        assert crawl.revisits.census.pages <= known
        for shard in shards:
            crawl.take(shard, driver.now)
        assert crawl.revisits.census.pages == known
        driver.run(until=START + day * DAY)
    times = times_by_url(driver)
    assert len(times) == 60
    assert all(len(each) > 1 for each in times.values())
    check_counts(crawl, scenario.ledger)


def announcing(every_s: float, content_type: str) -> ImaginedHost:
    """Return a host whose first page names a new page every so many seconds; those never change."""

    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        number = int(task.url.rpartition("/")[2] or 0)
        there = int((now - START) / every_s) + 1
        page = Result(task.id, Outcome.OK, status=200, content_type="text/html", content_bytes=10)
        page.content_hash = xxh3_128_digest(task.url.encode())
        if number == 0:
            page.content_type = content_type
            page.links = [link_to(f"http://{task.host}/{n}") for n in range(max(1, there - 20), there)]
            page.content_hash = xxh3_128_digest(str(there).encode())
        return page

    return ImaginedHost(says=says)


def delays(driver: VirtualDriver, every_s: float) -> list[float]:
    """Return how long after their appearance pages were fetched for the first time, from the third day on."""
    first = {url: times[0] for url, times in times_by_url(driver).items()}
    appeared = {url: START + int(url.rpartition("/")[2] or 0) * every_s for url in first}
    return sorted(first[url] - at for url, at in appeared.items() if at > START + 3 * DAY)


def test_a_page_with_new_links_is_found_to_be_news_and_half_of_them_are_seen_within_two_hours() -> None:
    scenario = Scenario(ImaginedSites({"h0.test": announcing(4 * HOUR, "text/html")}), [ROOT], rules=RULES)
    _, driver = go_on(scenario, 30)
    late = delays(driver, 4 * HOUR)
    assert len(late) >= 150
    assert late[len(late) // 2] < 2 * HOUR
    row = scenario.ledger.look_up(link_to(ROOT).id)
    assert row is not None
    assert row.revisit is not None
    assert unpacked(row.revisit.state).page_class is PageClass.NEWS


def test_a_feed_is_fetched_within_minutes_if_it_names_new_pages_all_the_time() -> None:
    host = announcing(HOUR, "application/rss+xml")
    rules = replace(RULES, revisits=RevisitRules(fetches_per_day=500))
    scenario = Scenario(ImaginedSites({"h0.test": host}), [ROOT], rules=rules)
    _, driver = go_on(scenario, 20)
    late = delays(driver, HOUR)
    assert len(late) >= 350
    assert late[len(late) // 2] < 0.5 * HOUR
    gaps = [after - before for before, after in pairwise(times_by_url(driver)[ROOT])]
    assert 5 * 60 <= min(gaps) < HOUR


@settings(max_examples=amount(15, 30), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([200, 200, 200, 302, 404, 410, 500]), min_size=6, max_size=6), min_size=6, max_size=6
    ),
    st.sampled_from([None, 3]),
)
def test_counts_follow_the_rows_whatever_pages_become(course: list[list[int]], max_pages: int | None) -> None:
    """Six pages with one of two contents, each with a status per week; some are copies of each other."""

    def says(task: FetchTask, now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        week = min(int((now - START) / (7 * DAY)), 5)
        number = int(task.url.rpartition("/")[2] or 0)
        status = course[number % 6][week]
        links = [link_to(f"{ROOT}{other}") for other in range(6)] if number == 0 else []
        if status == 302:
            return Result(task.id, Outcome.REDIRECT, status=302, redirect_to=f"{ROOT}{(number + 1) % 6}")
        if status != 200:
            outcome = Outcome.SERVER_ERROR if status == 500 else Outcome.CLIENT_ERROR
            return Result(task.id, outcome, status=status)
        digest = xxh3_128_digest(bytes([(number + week) % 4]))
        return Result(
            task.id,
            Outcome.OK,
            status=200,
            content_type="text/html",
            content_bytes=10,
            content_hash=digest,
            links=links,
        )

    limits = FrontierLimits(max_pages=max_pages)
    scenario = Scenario(ImaginedSites({"h0.test": ImaginedHost(says=says)}), [ROOT], rules=RULES, limits=limits)
    crawl, driver = scenario.prepare()
    for week in range(1, 7):
        driver.run(until=START + week * 7 * DAY)
        check_counts(crawl, scenario.ledger)
    host = scenario.ledger.host("h0.test")
    assert host is not None
    assert host.pages == crawl.totals.pages
    assert crawl.frontier.counts.pages == crawl.totals.new_pages
    assert max_pages is None or crawl.totals.new_pages <= max_pages
    assert host.queued == crawl.frontier.counts.queued


def changes_with_each_visit(pages: int) -> ImaginedHost:
    """Return a host that says of every page, whenever it is asked, that it has changed."""
    visits: dict[str, int] = defaultdict(int)

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        visits[task.url] += 1
        digest = xxh3_128_digest(f"{task.url} {visits[task.url]}".encode())
        first = int(task.url.rpartition("/")[2] or 0) * 20 + 1
        return Result(
            task.id,
            Outcome.OK,
            status=200,
            content_type="text/html",
            content_bytes=1000,
            wire_bytes=1000,
            content_hash=digest,
            text_hash=digest[:8],
            etag=digest.hex(),
            links=[link_to(f"http://{task.host}/{n}") for n in range(first, min(first + 20, pages))],
            archived=ArchiveSpan("stored.warc.gz", task.id, 100),
            fresh_s=1.0,
        )

    return ImaginedHost(pages=pages, says=says)


@pytest.mark.parametrize("budget", [0.0, 40.0, 200.0])
def test_a_host_that_says_changed_for_everything_takes_no_turns_of_others(budget: float) -> None:
    """Compared with a host of as many pages that change as often as those of the others."""

    def visits(other: ImaginedHost) -> tuple[int, int]:
        hosts = {f"h{number}.test": changing(lambda _: 2 * DAY) for number in range(8)}
        seeds = [f"http://{host}/" for host in (*hosts, "other.test")]
        rules = replace(RULES, revisits=RevisitRules(fetches_per_day=budget))
        _, driver = go_on(Scenario(ImaginedSites({**hosts, "other.test": other}), seeds, rules=rules), 8)
        times = times_by_url(driver)
        of_other = sum(len(each) for url, each in times.items() if "other.test" in url)
        return sum(map(len, times.values())) - of_other, of_other

    honest, of_honest = visits(changing(lambda _: 2 * DAY, pages=200))
    beside, of_liar = visits(changes_with_each_visit(200))
    assert beside >= 0.8 * honest
    assert of_liar <= 1.2 * of_honest
