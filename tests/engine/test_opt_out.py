"""Who opts out is left alone, at once and for good."""

from __future__ import annotations

from gossamer.core.url.forms import link_to
from gossamer.model.events import EventName
from gossamer.model.records import Outcome, UrlState
from gossamer.sim.scenarios import START, Scenario, many_hosts


def test_a_host_that_opts_out_is_asked_no_more() -> None:
    scenario = Scenario(many_hosts(2, 50), ["http://h0.test/", "http://h1.test/"])
    crawl, driver = scenario.prepare()
    driver.run(until=START + 10)
    crawl.opt_out(frozenset({"h0.test"}), driver.now)
    before, since = crawl.totals.dead, driver.now
    assert driver.run() == "exhausted"
    late = [request for request in driver.requests if request.host == "h0.test" and request.at > since + 0.1]
    assert late == []
    assert sum(request.host == "h1.test" for request in driver.requests) == 51
    dead = [row for _, row in scenario.ledger.urls() if row.outcome == Outcome.OPTED_OUT.value]
    assert dead
    assert all(row.state is UrlState.DEAD for row in dead)
    assert before + 1 >= len(dead) >= before - 1
    assert [event.host for event in scenario.events if event.event is EventName.OPTED_OUT] == ["h0.test"]


def test_a_domain_stands_for_all_its_hosts_and_seeds_are_no_exception() -> None:
    web = many_hosts(1, 5)
    web.hosts["www.a.test"] = web.hosts["a.test"] = web.hosts["h0.test"]
    scenario = Scenario(web, ["http://www.a.test/", "http://a.test/", "http://h0.test/"])
    crawl, driver = scenario.prepare()
    crawl.opt_out(frozenset({"a.test"}), driver.now)
    assert driver.run() == "exhausted"
    assert {request.host for request in driver.requests} == {"h0.test"}


def test_who_comes_back_is_crawled_again() -> None:
    scenario = Scenario(many_hosts(1, 3), ["http://h0.test/"])
    crawl, driver = scenario.prepare()
    crawl.opt_out(frozenset({"h0.test"}), driver.now)
    assert driver.run() == "exhausted"
    crawl.opt_out(frozenset(), driver.now)
    crawl.add_seeds([link_to("http://h0.test/2")], driver.now)
    assert driver.run() == "exhausted"
    assert [request.url for request in driver.requests] == ["http://h0.test/robots.txt", "http://h0.test/2"]
