from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts


def test_a_run_stops_at_its_time_and_goes_on_from_there() -> None:
    whole = Scenario(many_hosts(5, 20), ["http://h0.test/"], FrontierLimits(max_depth=30))
    why, _, expected = whole.run()
    assert why == "exhausted"
    _, driver = Scenario(many_hosts(5, 20), ["http://h0.test/"], FrontierLimits(max_depth=30)).prepare()
    assert driver.run(until=START + 3.0) == "time"
    assert driver.now == START + 3.0
    assert driver.run(until=START + 7.5) == "time"
    assert driver.run() == "exhausted"
    assert driver.requests == expected.requests


def test_a_day_of_crawling_takes_no_time() -> None:
    web = ImaginedSites({"a.test": ImaginedHost(pages=1000, fanout=999)})
    why, crawl, driver = Scenario(web, ["http://a.test/"], delay_s=90.0).run()
    assert (why, crawl.totals.pages) == ("exhausted", 1000)
    assert driver.now - START > 86_400


def test_what_the_server_sees_is_written_down() -> None:
    web = ImaginedSites({"a.test": ImaginedHost(pages=1, latency_s=0.4)})
    _, _, driver = Scenario(web, ["http://a.test/"]).run()
    robots, page = driver.requests
    assert (robots.url, page.url) == ("http://a.test/robots.txt", "http://a.test/")
    assert round(robots.at - START, 6) == 0.22, "a look-up, then half the latency"
    assert round(robots.until - robots.at, 6) == 0.2
