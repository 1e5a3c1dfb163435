"""Crawls in virtual time that fetch what pages need: limits, budgets, retries, robots.txt, restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.links.requisite import requisite_id, requisites_from
from gossamer.core.links.scope import Reach
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.revisit.schedule import RevisitRules
from gossamer.core.url.forms import url_id
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import ArchiveSpan, FetchKind, FetchTask, Outcome, Requisites, Result, UrlState
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario

RULES = CrawlRules(max_requisites=20, watches_traps=False)
CDN = "cdn.test"
DAY_S = 86_400


def named(base: str, *hrefs: str, stylesheets: int = 0) -> Requisites:
    links = requisites_from(base, list(hrefs))
    return Requisites(links, stylesheets, len(links))


class Styled:
    """A host whose pages need what `needs` says; requisites answer 200 unless `status` says otherwise."""

    def __init__(self, sites: ImaginedSites, name: str = "a.test", pages: int = 5) -> None:
        self.needs: Callable[[FetchTask], Requisites | None] = lambda task: named(task.url, f"http://{CDN}/logo.png")
        self.status: Callable[[FetchTask], int] = lambda _task: 200
        self.asked: Counter[str] = Counter()
        self._sites = sites
        for each in (name, CDN):
            sites.hosts.setdefault(each, ImaginedHost(pages=pages if each == name else 0))
            sites.hosts[each].says = self.answer

    def answer(self, task: FetchTask, now: float) -> Result | None:
        self.asked[task.url] += 1
        if task.kind is FetchKind.REQUISITE:
            status = self.status(task)
            outcome = {200: Outcome.OK, 404: Outcome.CLIENT_ERROR, 503: Outcome.SERVER_ERROR}[status]
            needs = self.needs(task) if task.url.endswith(".css") else None
            return Result(task.id, outcome, status=status, content_bytes=10, requisites=needs)
        if task.kind is not FetchKind.PAGE:
            return None
        result = self._sites._page(task, self._sites.hosts[task.host], now)
        result.requisites = self.needs(task)
        result.archived = ArchiveSpan("f", 10 * self.asked.total(), 1)
        return result


def crawled(styled: Styled, sites: ImaginedSites, **options: object) -> tuple[str, Scenario, VirtualDriver]:
    settings = {"seeds": ["http://a.test/"], "rules": RULES, "reach": Reach.DOMAIN, "delay_s": 0.1, **options}
    scenario = Scenario(sites, **settings)  # type: ignore[arg-type]
    why, _, driver = scenario.run()
    return why, scenario, driver


def rows(scenario: Scenario) -> Counter[tuple[str, str]]:
    return Counter((row.kind.name, row.state.name) for _, row in scenario.ledger.urls())


def check_counts(scenario: Scenario) -> None:
    """Hosts count what the catalog has."""
    queued = Counter[str]()
    for _, row in scenario.ledger.urls():
        if row.state is UrlState.QUEUED and row.kind is FetchKind.REQUISITE:
            queued[row.url.split("/")[2]] += 1
    assert {host.name: host.requisites for host in scenario.ledger.hosts() if host.requisites} == dict(queued)


@pytest.fixture
def sites() -> ImaginedSites:
    return ImaginedSites()


@pytest.fixture
def styled(sites: ImaginedSites) -> Styled:
    return Styled(sites)


def test_what_all_pages_name_is_fetched_once_at_a_host_out_of_scope(sites: ImaginedSites, styled: Styled) -> None:
    why, scenario, _ = crawled(styled, sites)
    assert why == "exhausted"
    assert styled.asked[f"http://{CDN}/logo.png"] == 1
    assert styled.asked[f"http://{CDN}/robots.txt"] == 1
    assert rows(scenario) == {("PAGE", "DONE"): 5, ("REQUISITE", "DONE"): 1}
    check_counts(scenario)


@pytest.mark.parametrize(("limits", "why"), [({"max_pages": 2}, "max_pages"), ({"max_pages_per_host": 2}, "budgets")])
def test_limits_of_pages_end_after_the_requisites_of_the_pages(
    sites: ImaginedSites, styled: Styled, limits: dict[str, int], why: str
) -> None:
    styled.needs = lambda task: named(task.url, *(f"{task.url}?{n}.png" for n in range(4)))
    found, scenario, driver = crawled(styled, sites, limits=FrontierLimits(**limits))  # type: ignore[arg-type]
    assert found == why
    assert rows(scenario)[("REQUISITE", "DONE")] == 8
    assert rows(scenario)[("PAGE", "DONE")] == 2
    assert driver.requests[-1].url.endswith(".png")
    check_counts(scenario)


@pytest.mark.parametrize("limits", [{"max_pages": 1}, {"max_pages_per_host": 1}])
def test_a_requisite_that_is_tried_again_is_waited_for(
    sites: ImaginedSites, styled: Styled, limits: dict[str, int]
) -> None:
    styled.needs = lambda task: named(task.url, "/i.png")
    styled.status = lambda _task: 503 if styled.asked["http://a.test/i.png"] < 3 else 200
    _, scenario, _ = crawled(styled, sites, limits=FrontierLimits(**limits))  # type: ignore[arg-type]
    row = scenario.ledger.look_up(requisite_id(url_id("http://a.test/i.png")))
    assert row is not None
    assert (row.state, row.outcome, row.attempt) == (UrlState.DONE, "ok", 2)


def test_a_requisite_at_a_parked_host_does_not_hold_a_crawl_at_its_limit(sites: ImaginedSites, styled: Styled) -> None:
    sites.hosts[CDN].robots_status = 503
    why, scenario, driver = crawled(styled, sites, limits=FrontierLimits(max_pages=1))
    assert why == "max_pages"
    assert driver.now - START < 3600
    assert rows(scenario)[("REQUISITE", "QUEUED")] == 1
    check_counts(scenario)


def test_the_target_of_a_first_pass_waits_for_requisites(sites: ImaginedSites, styled: Styled) -> None:
    why, scenario, _ = crawled(styled, sites, target_domains=1, reach=Reach.ANY)
    assert why == "target_domains"
    assert styled.asked[f"http://{CDN}/logo.png"] == 1
    assert rows(scenario)[("PAGE", "DONE")] == 1


def test_a_forbidden_requisite_and_one_without_a_host_are_recorded_as_such(
    sites: ImaginedSites, styled: Styled
) -> None:
    sites.hosts[CDN].robots = b"User-agent: *\nDisallow: /"
    styled.needs = lambda task: named(task.url, f"http://{CDN}/logo.png", "http://nowhere.test/x.png")
    scenario = Scenario(sites, ["http://a.test/"], rules=RULES, reach=Reach.DOMAIN, delay_s=0.1)
    why, crawl, _ = scenario.run()
    totals = crawl.totals
    assert why == "exhausted"
    assert (totals.requisites, totals.requisites_denied, totals.requisites_failed) == (0, 1, 1)
    assert (totals.robots_disallowed, totals.dead, totals.urls_seen, totals.pages) == (0, 0, 5, 5)
    assert styled.asked[f"http://{CDN}/logo.png"] == 0
    assert crawl.frontier.counts.requisites == 0
    check_counts(scenario)


def test_hosts_of_requisites_have_no_pages_and_none_of_their_sitemaps_are_read(
    sites: ImaginedSites, styled: Styled
) -> None:
    sites.hosts[CDN].robots = b"Sitemap: http://cdn.test/sitemap.xml"
    scenario = Scenario(sites, ["http://a.test/"], rules=RULES, reach=Reach.DOMAIN, delay_s=0.1)
    _, crawl, _ = scenario.run()
    assert (crawl.totals.unique_hosts, crawl.totals.unique_domains) == (1, 1)
    assert styled.asked[f"http://{CDN}/sitemap.xml"] == 0


@pytest.mark.parametrize(("identified", "times"), [(("*.a.test",), 2), ((), 1)])
def test_what_waits_as_foreign_is_fetched_again_where_credentials_are_sent_if_its_own_domain_names_it(
    sites: ImaginedSites, identified: tuple[str, ...], times: int
) -> None:
    styled = Styled(sites, "www.a.test", pages=1)
    sites.hosts["b.test"] = ImaginedHost(pages=1, says=styled.answer)
    sites.hosts["img.a.test"] = ImaginedHost(pages=0, latency_s=1.0, says=styled.answer)
    images = [f"http://img.a.test/{n}.png" for n in range(4)]
    styled.needs = lambda task: named(task.url, *images)
    sent: list[tuple[str, bool]] = []

    def status(task: FetchTask) -> int:
        sent.append((task.url, task.is_anonymous))
        return 404 if task.is_anonymous else 200

    styled.status = status
    rules = replace(RULES, identified=identified)
    why, scenario, _ = crawled(styled, sites, rules=rules, seeds=["http://b.test/", "http://www.a.test/"])
    assert why == "exhausted"
    assert Counter(sent) == Counter((image, anonymous) for image in images for anonymous in [True, False][:times])
    check_counts(scenario)
    done = rows(scenario)[("REQUISITE", "DONE")]
    assert (done, rows(scenario)[("REQUISITE", "DEAD")]) == ((4, 0) if identified else (0, 4))


def test_blocked_hosts_stay_blocked_and_what_they_are_asked_for_is_refused_or_dead(
    sites: ImaginedSites, styled: Styled
) -> None:
    scenario = Scenario(sites, ["http://a.test/"], rules=RULES, reach=Reach.DOMAIN, delay_s=0.1)
    crawl, driver = scenario.prepare()
    crawl.opt_out(frozenset({CDN}), START)
    assert driver.run() == "exhausted"
    assert styled.asked[f"http://{CDN}/logo.png"] == styled.asked[f"http://{CDN}/robots.txt"] == 0
    assert crawl.totals.requisites_refused == 1
    (refused,) = [event for event in scenario.events if event.event is EventName.REQUISITE_REFUSED]
    assert (refused.reason, refused.kind) == ("blocked_host", "requisite")


def test_a_host_that_is_blocked_later_loses_its_queued_requisites(sites: ImaginedSites, styled: Styled) -> None:
    sites.hosts[CDN].robots_status = 503
    scenario = Scenario(sites, ["http://a.test/"], rules=RULES, reach=Reach.DOMAIN, delay_s=0.1)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 60)
    assert crawl.frontier.counts.requisites == 1
    crawl.opt_out(frozenset({CDN}), driver.now)
    assert (crawl.frontier.counts.requisites, crawl.totals.requisites_failed, crawl.totals.dead) == (0, 1, 0)
    check_counts(scenario)


def test_new_hosts_of_requisites_are_earned_as_those_of_links(sites: ImaginedSites, styled: Styled) -> None:
    styled.needs = lambda task: named(task.url, *(f"http://n{len(styled.asked)}-{n}.test/i.png" for n in range(15)))
    scenario = Scenario(
        sites, ["http://a.test/"], FrontierLimits(max_hosts_per_address=4), rules=RULES, reach=Reach.DOMAIN
    )
    _, crawl, _ = scenario.run()
    assert crawl.totals.requisites_failed == 4  # names that do not exist
    assert crawl.totals.requisites_refused == 15 * 5 - 4
    assert {event.reason for event in scenario.events if event.event is EventName.REQUISITE_REFUSED} == {CROWDED}
    assert crawl.totals.held == {}


def test_the_limit_for_a_page_is_divided_among_its_stylesheets(sites: ImaginedSites, styled: Styled) -> None:
    def needs(task: FetchTask) -> Requisites:
        name = task.url.rpartition("/")[2] or "home"
        hrefs = [f"/{name}-{n}.css" for n in range(2)] + [f"/{name}-{n}.png" for n in range(3)]
        return named(task.url, *hrefs, stylesheets=2)

    sites.hosts["a.test"].pages = 1
    styled.needs = needs
    scenario = Scenario(sites, ["http://a.test/"], rules=replace(RULES, max_requisites=21), delay_s=0.1)
    _, crawl, _ = scenario.run()
    fetched = sum(count for url, count in styled.asked.items() if url.endswith((".css", ".png")))
    # The page names 5 of 21, each of its two stylesheets 5 of 8, and of the four below each only the first of 1.
    assert fetched == 5 + 2 * 5 + 4 * 1
    assert crawl.totals.requisites_cut == 4 * 4 + 4 * 5
    assert crawl.totals.requisites == fetched


def test_a_page_that_becomes_one_while_it_waits_as_a_requisite_is_fetched_once(
    sites: ImaginedSites, styled: Styled
) -> None:
    styled.needs = lambda task: named(task.url, "/1", "/2") if task.url.endswith("test/") else None
    styled.status = lambda task: 503 if task.url.endswith("/1") else 200  # the retry comes after the page
    scenario = Scenario(sites, ["http://a.test/"], rules=RULES, reach=Reach.DOMAIN, delay_s=0.01)
    _, crawl, _ = scenario.run()
    row = scenario.ledger.look_up(requisite_id(url_id("http://a.test/1")))
    assert row is not None
    assert (row.state, row.error, row.archived) == (UrlState.DONE, "stored as a page", None)
    assert styled.asked["http://a.test/1"] == 2  # the attempt that failed, and the page
    assert (crawl.totals.pages, crawl.totals.requisites, crawl.totals.requisites_failed) == (5, 2, 0)
    assert crawl.frontier.counts.requisites == 0
    check_counts(scenario)


def test_a_restart_goes_on_with_what_is_queued_and_asks_nothing_twice(sites: ImaginedSites, styled: Styled) -> None:
    styled.needs = lambda task: named(task.url, *(f"http://{CDN}/{n}.png" for n in range(30)))
    rules = replace(RULES, max_requisites=100)
    scenario = Scenario(sites, ["http://a.test/"], FrontierLimits(max_pages=3), rules=rules, reach=Reach.DOMAIN)
    first, driver = scenario.prepare()
    driver.run(until=START + 12)
    first.give_back(first.tasks_out(), driver.now)
    first.save_state(12.0, 0.0, driver.now)
    assert 0 < first.frontier.counts.requisites < 30
    before = Counter(styled.asked)
    again = replace_scenario(scenario, started_at=driver.now)
    why, second, _ = again.run()
    assert (why, second.frontier.counts.requisites, second.totals.requisites) == ("max_pages", 0, 30)
    pictures = [url for url in styled.asked if url.endswith(".png")]
    assert len(pictures) == 30
    assert sum(styled.asked[url] - before[url] for url in pictures) <= 30 - first.totals.requisites + 1


def replace_scenario(scenario: Scenario, *, started_at: float) -> Scenario:
    return Scenario(
        scenario.web,
        scenario.seeds,
        scenario.limits,
        rules=scenario.rules,
        reach=scenario.reach,
        ledger=scenario.ledger,
        started_at=started_at,
    )


def test_requisites_are_not_fetched_again_with_the_pages(sites: ImaginedSites, styled: Styled) -> None:
    rules = replace(RULES, revisits=RevisitRules(fetches_per_day=1000))
    scenario = Scenario(sites, ["http://a.test/"], rules=rules, reach=Reach.DOMAIN, delay_s=0.1)
    crawl, driver = scenario.prepare()
    driver.run(until=START + 60 * DAY_S)
    assert crawl.totals.visits > 10
    assert styled.asked[f"http://{CDN}/logo.png"] == 1


def test_what_a_changed_page_names_for_the_first_time_is_fetched(sites: ImaginedSites, styled: Styled) -> None:
    rules = replace(RULES, revisits=RevisitRules(fetches_per_day=1000))
    styled.needs = lambda task: named(task.url, f"/{min(3, styled.asked[task.url])}.png")
    scenario = Scenario(sites, ["http://a.test/"], rules=rules, reach=Reach.DOMAIN, delay_s=0.1)
    _, driver = scenario.prepare()
    driver.run(until=START + 60 * DAY_S)
    assert [styled.asked[f"http://a.test/{n}.png"] for n in (1, 2, 3)] == [1, 1, 1]


def test_without_the_option_what_pages_name_is_left_alone(sites: ImaginedSites, styled: Styled) -> None:
    why, scenario, _ = crawled(styled, sites, rules=CrawlRules(), ledger=MemoryLedger())
    assert why == "exhausted"
    assert rows(scenario) == {("PAGE", "DONE"): 5}


def test_hosts_that_leave_memory_come_back_for_their_requisites(sites: ImaginedSites, styled: Styled) -> None:
    for n in range(12):
        sites.hosts[f"c{n}.test"] = ImaginedHost(pages=0, says=styled.answer, address=f"127.0.1.{n}")
    styled.needs = lambda task: named(task.url, *(f"http://c{n}.test/i{m}.png" for n in range(12) for m in range(3)))
    limits = FrontierLimits(max_pages=1, max_hosts_in_memory=3, max_idle_hosts=1, max_urls_in_memory=8)
    rules = replace(RULES, max_requisites=100)
    why, scenario, _ = crawled(styled, sites, limits=limits, rules=rules)
    assert why == "max_pages"
    assert rows(scenario)[("REQUISITE", "DONE")] == 36
    check_counts(scenario)
