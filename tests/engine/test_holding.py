"""Links that a rule holds back wait, survive whatever happens to the crawl, and are offered when the rule allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.dedup.minhash import minhash
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import HELD, HELD_COUNTS, QUARANTINES
from gossamer.core.traps.calendar import MAX_UNPROVEN
from gossamer.core.url.forms import link_to, links_from
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission import holding
from gossamer.engine.crawl import Crawl
from gossamer.engine.results.evidence import release_quarantine
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import Completed, FetchKind, FetchTask, Outcome, Result, UrlState
from gossamer.parse.text.fingerprint import text_fingerprint
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts
from tests.support.sites.trap_sites import HONEST, TRAPS, prose

DEEP = FrontierLimits(max_depth=5000)
CONTINUES = CrawlRules(continues_after_target=True)
ARTICLES = 800


def page(task: FetchTask, text: str, hrefs: Sequence[str] = ()) -> Result:
    """Return a page that says `text` and leads to `hrefs`."""
    content = text.encode()
    return Result(
        task.id,
        Outcome.OK,
        status=200,
        content_type="text/html",
        content_hash=task.url_id,
        text_hash=text_fingerprint(content, task.url),
        signature=minhash(content),
        words=len(text.split()),
        links=links_from(task.url, list(hrefs)),
    )


def dated(number: int) -> str:
    return f"/{1990 + number // 12}/{1 + number % 12:02d}/"


def site(says: Callable[[FetchTask], Result | None]) -> ImaginedSites:
    host = ImaginedHost(latency_s=0.01, says=lambda task, _now: None if task.kind is FetchKind.ROBOTS else says(task))
    return ImaginedSites({"a.test": host})


INDEX = "/?month=1&year=1989"


def archive(task: FetchTask) -> Result:
    """Serve an index of dated articles, each with its own text; the index is dated, too."""
    if task.url.endswith("a.test/"):
        return page(task, "a front page", [INDEX])
    if task.url.endswith(INDEX):
        return page(task, "an index", [dated(number) for number in range(ARTICLES)])
    return page(task, prose(120, task.url))


def endless_calendar(task: FetchTask) -> Result:
    """Serve months without end, ten of which are linked from each."""
    if task.url.endswith("a.test/"):
        return page(task, "a front page", [dated(0)])
    if task.url.endswith("-no-such-page"):
        return Result(task.id, Outcome.CLIENT_ERROR, status=404)
    year, month = map(int, task.url.split("/")[-3:-1])
    number = (year - 1990) * 12 + month - 1
    text = TRAPS["a calendar"].text(number)
    return page(task, text, [dated(number + ahead) for ahead in range(1, 11)])


def crawl_of(web: ImaginedSites, ledger: Ledger, **more: object) -> tuple[Crawl, VirtualDriver, Scenario]:
    scenario = Scenario(web, ["http://a.test/"], DEEP, delay_s=0.0, ledger=ledger, **more)  # type: ignore[arg-type]
    crawl, driver = scenario.prepare()
    return crawl, driver, scenario


def pages(driver: VirtualDriver) -> list[str]:
    return [request.url for request in driver.requests if not request.url.endswith("robots.txt")]


# -- the first pass -------------------------------------------------------------------------------


def test_what_the_first_pass_refused_is_offered_when_it_is_over(ledger: Ledger) -> None:
    web = many_hosts(10, 5)
    scenario = Scenario(web, ["http://h0.test/"], target_domains=4, rules=CONTINUES, ledger=ledger)
    why, crawl, driver = scenario.run()
    assert why == "exhausted"
    assert sorted(pages(driver)) == sorted(set(pages(driver)))
    assert crawl.totals.pages == 50, "ten hosts with five pages each"
    assert (crawl.totals.held, list(ledger.records(HELD))) == ({}, [])


def test_sitemaps_that_are_found_in_the_first_pass_are_read_after_it(ledger: Ledger) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is not FetchKind.SITEMAP:
            return None
        return Result(
            task.id,
            Outcome.OK,
            status=200,
            content_type="application/x-sitemap",
            links=links_from(task.url, ["/1000"]),
        )

    web = many_hosts(6, 1, robots=b"Sitemap: /sitemap.xml\n", says=says)
    scenario = Scenario(web, ["http://h0.test/"], target_domains=4, rules=CONTINUES, ledger=ledger)
    _, _, driver = scenario.run()
    assert {f"http://h{number}.test/1000" for number in range(6)} <= set(pages(driver))


def test_a_first_pass_that_stops_at_its_target_holds_nothing() -> None:
    ledger = MemoryLedger()
    Scenario(many_hosts(10, 5), ["http://h0.test/"], target_domains=4, ledger=ledger).run()
    assert list(ledger.records(HELD)) == []


@pytest.mark.parametrize("stop_after_s", [0.5, 2.5, 4.2, 5.5])
def test_what_the_first_pass_holds_survives_a_kill(tmp_path: Path, stop_after_s: float) -> None:
    web = many_hosts(10, 5)
    local = LocalLedger(tmp_path / "state")
    local.open()
    crawl, driver = Scenario(web, ["http://h0.test/"], target_domains=4, rules=CONTINUES, ledger=local).prepare()
    driver.run(until=START + stop_after_s)
    crawl.save_state(0.0, 0.0, driver.now)
    local.commit()
    local.abandon()  # what follows a commit is lost
    again = LocalLedger(tmp_path / "state")
    again.open()
    scenario = Scenario(
        web, [], target_domains=4, rules=CONTINUES, ledger=again, started_at=driver.now, was_clean=False
    )
    why, crawl, _ = scenario.run()
    assert (why, crawl.totals.pages) == ("exhausted", 50)
    again.close()


def test_a_shard_takes_what_is_held_of_it_along(ledger: Ledger) -> None:
    crawl, driver = Scenario(
        many_hosts(10, 5), ["http://h0.test/"], target_domains=4, rules=CONTINUES, ledger=ledger
    ).prepare()
    shard = shard_of(host_id("h0.test"))
    while not crawl.totals.held:
        driver.run(until=driver.now + 0.1)
    crawl.release([shard], driver.now)
    ledger.commit()
    driver.run(until=driver.now + 30.0)
    assert list(ledger.records(HELD, shard)), "another owner would offer them"
    crawl.take(shard, driver.now)
    assert driver.run() == "exhausted"
    assert crawl.totals.pages == 50


def test_a_held_link_that_is_queued_as_a_seed_is_held_no_longer() -> None:
    ledger = MemoryLedger()
    crawl, driver = Scenario(
        many_hosts(9, 5), ["http://h0.test/"], target_domains=9, rules=CONTINUES, ledger=ledger
    ).prepare()
    driver.run(until=START + 2.0)
    held = next(held.url for held in ledger.records(HELD))
    before = crawl.totals.held["first_pass"]
    crawl.add_seeds([link_to(held)], driver.now)
    assert crawl.totals.held["first_pass"] == before - 1
    assert held not in {one.url for one in ledger.records(HELD)}


# -- the calendar ---------------------------------------------------------------------------------


def test_the_calendar_budget_counts_the_links_of_one_page(ledger: Ledger) -> None:
    crawl, driver, scenario = crawl_of(site(archive), ledger)
    while f"http://a.test{INDEX}" not in pages(driver) or crawl.frontier.in_flight:
        driver.run(until=driver.now + 0.005)
        if crawl.frontier.counts.queued > 1:
            break
    assert crawl.frontier.counts.queued <= MAX_UNPROVEN
    assert crawl.totals.held == {"calendar": ARTICLES - MAX_UNPROVEN}
    assert len([event for event in scenario.events if event.reason == "calendar"]) == ARTICLES - MAX_UNPROVEN


def test_dated_articles_with_new_text_are_all_fetched(ledger: Ledger) -> None:
    crawl, driver, _ = crawl_of(site(archive), ledger)
    assert driver.run() == "exhausted"
    assert len(pages(driver)) == crawl.totals.pages == ARTICLES + 2
    assert (crawl.totals.held, list(ledger.records(HELD)), list(ledger.records(HELD_COUNTS))) == ({}, [], [])


def test_tables_by_date_that_differ_in_digits_only_are_all_fetched() -> None:
    def tables(task: FetchTask) -> Result:
        if task.url.endswith(("a.test/", INDEX)):
            return archive(task)
        return page(task, HONEST["tables of measurements"].text(hash(task.url)))

    _, driver, _ = crawl_of(site(tables), MemoryLedger())
    driver.run()
    assert len(pages(driver)) == ARTICLES + 2


def test_an_endless_calendar_is_not_followed(ledger: Ledger) -> None:
    crawl, driver, _ = crawl_of(site(endless_calendar), ledger)
    assert driver.run() == "held"
    assert len(pages(driver)) <= MAX_UNPROVEN + 3, "the front page, the month that it names, and a probe"
    assert 0 < crawl.totals.held["calendar"] <= 20
    assert not crawl._holding.due


@pytest.mark.parametrize("runs", [2, 6])
def test_a_calendar_gets_no_new_budget_from_a_restart(ledger: Ledger, runs: int) -> None:
    web = site(endless_calendar)
    crawl, driver, _ = crawl_of(web, ledger)
    driver.run()
    first = len(pages(driver))
    for _ in range(runs):
        crawl.save_state(0.0, 0.0, driver.now)
        ledger.commit()
        crawl, driver = Scenario(web, [], DEEP, ledger=ledger, started_at=driver.now).prepare()
        assert driver.run() == "held"
        assert pages(driver) == [], f"the first run had {first}"


@pytest.mark.parametrize("step_s", [0.05, 0.3])
def test_an_archive_is_fetched_to_its_end_through_restarts(tmp_path: Path, step_s: float) -> None:
    web, now, fetched = site(archive), START, set()
    for _ in range(1000):
        local = LocalLedger(tmp_path / "state")
        local.open()
        scenario = Scenario(web, ["http://a.test/"], DEEP, delay_s=0.0, ledger=local, started_at=now)
        crawl, driver = scenario.prepare()
        why = driver.run(until=now + 1.0 + step_s)
        crawl.save_state(0.0, 0.0, driver.now)
        local.commit()
        local.abandon()
        fetched |= set(pages(driver))
        now = driver.now + 1.0
        if why == "exhausted":
            break
    assert len(fetched) == ARTICLES + 2


def test_dated_urls_that_bring_no_page_do_not_use_the_budget_up(ledger: Ledger) -> None:
    def half_missing(task: FetchTask) -> Result:
        if task.url.endswith("/") and task.url[-3:-1] in ("02", "04", "06", "08", "10", "12"):
            return Result(task.id, Outcome.CLIENT_ERROR, status=404)
        return archive(task)

    _, driver, _ = crawl_of(site(half_missing), ledger)
    assert driver.run() == "exhausted"
    assert len(pages(driver)) == ARTICLES + 2


def test_dated_urls_that_robots_forbids_do_not_use_the_budget_up() -> None:
    web = site(archive)
    web.hosts["a.test"].robots = b"User-agent: *\n" + b"".join(
        f"Disallow: /{year}/\n".encode() for year in range(1990, 2100) if year % 3
    )
    _, driver, _ = crawl_of(web, MemoryLedger())
    assert driver.run() == "exhausted"
    allowed = [number for number in range(ARTICLES) if not (1990 + number // 12) % 3]
    assert len(pages(driver)) == len(allowed) + 2


# -- quarantines ----------------------------------------------------------------------------------


def shop(task: FetchTask) -> Result:
    """Serve a shop whose pages say the same whatever is asked; each leads to three others."""
    number = int(task.url.rpartition("=")[2]) if "=" in task.url else 0
    text = prose(80, "shop" if "/shop" in task.url else "home")
    return page(task, text, [f"/shop?x={3 * number + ahead}" for ahead in (1, 2, 3)])


def test_links_of_a_pattern_in_quarantine_are_held_and_offered_when_it_is_released(ledger: Ledger) -> None:
    web = site(shop)
    web.hosts["a.test"].latency_s = 0.2
    scenario = Scenario(web, ["http://a.test/"], DEEP, delay_s=0.0, host_connections=16, ledger=ledger)
    _, crawl, driver = scenario.run()
    crawl.save_state(0.0, 0.0, driver.now)
    ledger.commit()
    (quarantine,) = ledger.records(QUARANTINES)
    rows = list(ledger.records(HELD))
    assert rows
    assert {held.rule for held in rows} == {"quarantine"}
    assert crawl.totals.held == {"quarantine": len(rows)} == {"quarantine": quarantine.held}
    assert not any(ledger.is_seen(held.id) for held in rows)
    assert [each.held for each in release_quarantine(ledger, quarantine.name)] == [quarantine.held]
    ledger.commit()
    again, later = Scenario(web, [], DEEP, delay_s=0.0, ledger=ledger, started_at=driver.now).prepare()
    while again.totals.held:
        later.run(until=later.now + 1.0)
    ledger.commit()
    assert {held.url for held in rows} <= {*pages(later)} | {
        row.url for _, row in ledger.urls() if row.state is UrlState.QUEUED
    }
    assert again.totals.held == {}


# -- bounds ---------------------------------------------------------------------------------------


def test_a_host_has_a_cap_and_what_is_beyond_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "MAX_URLS", 100)
    crawl, driver, _ = crawl_of(site(archive), MemoryLedger())
    completed: list[Completed | None] = []
    complete = crawl.complete
    monkeypatch.setattr(crawl, "complete", lambda result, now: completed.append(complete(result, now)))
    while not crawl.totals.held:
        driver.run(until=driver.now + 0.005)
    assert crawl.totals.held == {"calendar": 100}
    assert crawl.totals.held_dropped == ARTICLES - MAX_UNPROVEN - 100
    assert completed[-1] is not None
    assert not completed[-1].are_links_final


def test_no_step_of_the_loop_offers_more_than_a_slice() -> None:
    def index(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS or not task.url.endswith(".test/"):
            return None
        return page(task, "index", [f"/{number}" for number in range(1, 901)])

    web = many_hosts(3, 900, says=index)
    web.hosts["h0.test"].cross_links = ()
    seeds = [f"http://h{number}.test/" for number in range(3)]
    why, crawl, driver = Scenario(web, seeds, target_domains=4, rules=CONTINUES).run()
    assert (why, crawl.totals.held) == ("held", {"first_pass": 2700})
    crawl._admission._intake.first_pass = None
    crawl._holding.release_first_pass()
    steps = []
    while crawl._holding.due:
        before = crawl.totals.urls_seen
        crawl.tasks(driver.now)
        steps.append(crawl.totals.urls_seen - before)
    assert max(steps) == holding.SLICE
    assert sum(steps) == 2700


def test_what_is_held_is_said_as_an_event_when_the_crawl_ends() -> None:
    crawl, driver, scenario = crawl_of(site(endless_calendar), MemoryLedger())
    driver.run()
    crawl.warn_of_left_out(driver.now)
    (warning,) = [event for event in scenario.events if event.event is EventName.WARNING]
    assert (warning.reason, warning.rule, warning.links) == ("held_back", "calendar", crawl.totals.held["calendar"])
