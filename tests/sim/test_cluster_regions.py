"""Clusters with regions in virtual time: who fetches what, and what happens if no node has a label."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import structs

from gossamer.core.cluster.regions import RegionRule, Regions
from gossamer.core.ledger.rows import decode_host
from gossamer.core.ledger.tables import HOMES
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.model.state import Waiting
from gossamer.sim.cluster.cluster import ClusterSim
from gossamer.sim.cluster.plan import ClusterPlan, Faults
from gossamer.sim.cluster.runs import HOSTS, PAGES, country_of, scenario
from gossamer.sim.scenarios import START, Scenario

RULES = [RegionRule("h2.test", "eu"), RegionRule("h5.test", "us"), RegionRule("h11.test", "us")]
US_HOSTS = {"h5.test", "h11.test"}
QUIET = Faults(
    until_s=1400.0, deaths=0.0, pauses=0.0, lost_answers=0.0, cuts=0.0, outages=0.0, roll_backs=0.0
)  # fmt: skip
LATE_S = 300.0


def plan(
    rules: list[RegionRule], *labels: str, late_s: float | None = None, max_pages: int | None = None
) -> ClusterPlan:
    """Return a cluster with strict regions and one node per label."""
    return ClusterPlan(
        scenario,
        nodes=len(labels),
        faults=QUIET,
        max_pages=max_pages,
        max_s=1500.0,
        regions=Regions(rules, is_strict=True),
        labels=labels,
        last_node_at_s=late_s,
    )


def hosts_of(sim: ClusterSim, since_s: float = 0.0) -> set[str]:
    return {request.host for request in sim.requests if request.at >= START + since_s}


def waiting(sim: ClusterSim) -> list[dict[str, Waiting]]:
    return [view.status.waiting for view in sim.shared.nodes().values() if view.status.waiting]


def test_what_has_a_label_waits_for_a_node_with_it() -> None:
    sim = ClusterSim(plan(RULES, "eu", "eu"), 1)
    assert sim.run() == "stuck"
    assert hosts_of(sim) == {f"h{number}.test" for number in range(HOSTS)} - US_HOSTS
    found = [each["us"] for each in waiting(sim)]
    assert (sum(each.shards for each in found), sum(each.urls for each in found)) == (2, 2)
    assert not sim.misplaced


def test_a_node_with_the_label_comes_later_and_fetches_what_waited() -> None:
    sim = ClusterSim(plan(RULES, "eu", "", "us", late_s=LATE_S), 2)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    assert not US_HOSTS & {each.host for each in sim.requests if each.at < START + LATE_S}
    assert hosts_of(sim, LATE_S) >= US_HOSTS
    assert not sim.misplaced


def test_a_label_of_which_nothing_was_found_does_not_delay_the_end() -> None:
    sim = ClusterSim(plan([*RULES[:1], RegionRule("nowhere.test", "us")], "eu", ""), 3)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES


def test_pages_that_wait_use_up_no_budget() -> None:
    can_be_fetched = (HOSTS - len(US_HOSTS)) * PAGES
    sim = ClusterSim(plan(RULES, "eu", "", max_pages=can_be_fetched), 4)
    assert sim.run() == "max_pages"
    assert len(sim.stored()) == can_be_fetched


def test_without_strict_regions_others_fetch_until_a_node_with_the_label_comes() -> None:
    regions, host = Regions([RegionRule("h1.test", "us")]), "http://h1.test/"
    sim = ClusterSim(structs.replace(plan(RULES, "eu", "us", late_s=30.0), regions=regions), 5)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    urls = {url_id: row.url for url_id, row in sim.rows().items()}
    early, late = (
        {page.at - START for page in node.archive if urls[page.url_id].startswith(host)} for node in sim.nodes
    )
    assert early, "there was nobody else"
    assert late
    assert max(early) < 60.0 < max(late)
    assert max(early) < min(late)


def redirected_robots(target: str = "http://h5.test/robots.txt") -> Callable[[], Scenario]:
    """Return the crawl with a host whose robots.txt is at another one."""
    return partial(_redirected_robots, target)


def _redirected_robots(target: str) -> Scenario:
    made = scenario()

    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is not FetchKind.ROBOTS:
            return None
        return Result(task.id, Outcome.REDIRECT, status=301, redirect_to=target)

    made.web.hosts["h2.test"].says = says
    return made


def test_a_host_whose_robots_txt_must_not_be_requested_here_is_parked_and_says_so() -> None:
    sim = ClusterSim(structs.replace(plan(RULES, "eu"), scenario=redirected_robots()), 6)
    assert sim.run() == "stuck"
    assert not hosts_of(sim) & US_HOSTS
    host = next(host for row in sim.shared.table("hosts").values() if (host := decode_host(row)).name == "h2.test")
    assert (host.queued, host.pages) == (1, 0)
    assert host.park_reason == "robots.txt unreachable: another node requests it"


def test_it_is_fetched_when_a_node_that_may_request_its_robots_txt_comes() -> None:
    sim = ClusterSim(structs.replace(plan(RULES, "eu", "us", late_s=LATE_S), scenario=redirected_robots()), 7)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    assert not sim.misplaced


COUNTRY_RULES = [RegionRule("country:DE", "eu", ("DE",)), RegionRule("country:US", "us", ("US",))]


def by_country(*labels: str, late_s: float | None = None) -> ClusterPlan:
    """Return a cluster whose domains have labels by the country of their address."""
    return structs.replace(plan(COUNTRY_RULES, *labels, late_s=late_s), country_of=country_of)


def homes_of(sim: ClusterSim) -> dict[str, str]:
    """Return the label of every domain that was looked up."""
    homes = [HOMES.decode(row) for row in sim.shared.table("homes").values()]
    return {home.name: home.label for home in homes}


def test_domains_move_to_the_region_of_their_country_before_anything_is_fetched() -> None:
    sim = ClusterSim(by_country("eu", "us"), 8)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    assert homes_of(sim) == {f"h{number}.test": ("eu", "us", "")[number % 3] for number in range(HOSTS)}
    assert not sim.misplaced
    assert sum(view.totals.urls_seen for view in sim.shared.nodes().values()) == HOSTS * PAGES, "each counts once"


def test_what_is_in_a_country_waits_for_a_node_with_its_label() -> None:
    sim = ClusterSim(by_country("eu", "", "us", late_s=LATE_S), 9)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    american = {f"h{number}.test" for number in range(1, HOSTS, 3)}
    assert not american & {each.host for each in sim.requests if each.at < START + LATE_S}


def test_robots_txt_at_a_host_that_has_moved_is_requested_there() -> None:
    made = redirected_robots("http://h4.test/robots.txt")
    sim = ClusterSim(structs.replace(by_country("eu", "us"), scenario=made), 10)
    assert sim.run() == "exhausted"
    assert len(sim.stored()) == HOSTS * PAGES
    assert not sim.misplaced
