"""The forecast against crawls in virtual time: on webs without new links it is right within a quarter."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.amount import amount

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.engine.crawl import Crawl
from gossamer.model.figures import Forecast
from gossamer.runtime.watch import forecasting
from gossamer.runtime.watch.forecasting import Forecasting
from gossamer.runtime.watch.gauges import Gauges
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import ImaginedHost, ImaginedSites, Scenario
from gossamer.telemetry.forecast import ForecastLimits


def sites(pages: list[int], crawl_delays: list[int]) -> Scenario:
    """Return a crawl of hosts without links, every page of which is a seed."""
    web = ImaginedSites()
    seeds = []
    for number, (count, delay) in enumerate(zip(pages, crawl_delays, strict=True)):
        robots = f"User-agent: *\nCrawl-delay: {delay}\n".encode() if delay else b""
        address = f"127.0.{number >> 8}.{number & 255}"
        web.hosts[f"h{number}.test"] = ImaginedHost(pages=0, robots=robots, address=address)
        seeds += [f"http://h{number}.test/{page}" for page in range(count)]
    return Scenario(web, seeds, delay_s=1.0)


def forecast(crawl: Crawl, driver: VirtualDriver, limits: ForecastLimits) -> Forecast:
    gauges = Gauges()
    forecasts = Forecasting(crawl.frontier, gauges, lambda: limits, lambda: 300.0, lambda: driver.now)
    asyncio.run(forecasts.look())
    assert gauges.forecast is not None
    return gauges.forecast


webs = st.lists(st.tuples(st.integers(1, 60), st.sampled_from([0, 0, 0, 2, 7, 30])), min_size=1, max_size=8)


@settings(max_examples=amount(15, 60), deadline=None)
@given(webs)
def test_the_time_left_is_within_a_quarter(web: list[tuple[int, int]]) -> None:
    scenario = sites([pages for pages, _ in web], [delay for _, delay in web])
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 5.0)  # by then every robots.txt is known
    if crawl.frontier.counts.queued < 3:
        return
    found, at = forecast(crawl, driver, ForecastLimits()), driver.now
    assert driver.run() == "exhausted"
    assert found.seconds is not None
    left_s = driver.now - at
    assert abs(found.seconds - left_s) <= max(0.25 * left_s, 1.5)


@settings(max_examples=amount(15, 40), deadline=None)
@given(webs, st.floats(0.2, 0.9))
def test_the_time_until_the_page_limit_is_within_a_quarter(web: list[tuple[int, int]], share: float) -> None:
    scenario = sites([pages for pages, _ in web], [delay for _, delay in web])
    limit = int(share * len(scenario.seeds))
    scenario.limits = FrontierLimits(max_pages=limit)
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 5.0)
    pages_left = limit - crawl.totals.pages
    if pages_left < 5:
        return
    found, at = forecast(crawl, driver, ForecastLimits(pages_left=pages_left)), driver.now
    assert driver.run() == "max_pages"
    assert found.seconds is not None
    left_s = driver.now - at
    longest_s = max(delay for _, delay in web) or 1
    assert abs(found.seconds - left_s) <= max(0.25 * left_s, float(longest_s))


def test_what_waits_for_its_retry_is_in_the_forecast_and_named() -> None:
    scenario = sites([40], [0])
    scenario.web.hosts["h0.test"].status = lambda url, _now: 500 if url.endswith("/39") else 200
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 44.0)
    assert crawl.frontier.counts.queued == 1
    gauges = Gauges()
    looks = Forecasting(crawl.frontier, gauges, ForecastLimits, lambda: 300.0, lambda: driver.now)
    asyncio.run(looks.look())
    at = driver.now
    assert gauges.forecast is not None
    assert gauges.next_retry is not None
    assert (gauges.retried_urls, gauges.next_retry.url) == (1, "http://h0.test/39")
    assert gauges.forecast.text.startswith("1 URL waits for its retry: done in about ")
    assert driver.run() == "exhausted"
    assert gauges.forecast.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_back_off_that_ends_with_the_next_success_is_not_taken_for_the_pace_of_the_rest() -> None:
    scenario = sites([300], [0])
    begun = scenario.started_at
    scenario.web.hosts["h0.test"].status = lambda _url, now: 500 if 60 < now - begun < 130 else 200
    crawl, driver = scenario.prepare()
    driver.run(until=begun + 125.0)
    record = crawl.frontier.view.hosts()[0].record
    assert record.backoff > 2
    found, at = forecast(crawl, driver, ForecastLimits()), driver.now
    assert driver.run() == "exhausted"
    assert found.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_a_host_that_says_retry_after_counts_if_others_take_as_long() -> None:
    scenario = sites([1000, 300], [0, 0])
    begun = scenario.started_at
    refusals = iter([429])
    host = scenario.web.hosts["h1.test"]
    host.retry_after_s = 900.0
    host.status = lambda _url, now: next(refusals, 200) if now - begun > 30 else 200
    crawl, driver = scenario.prepare()
    driver.run(until=begun + 100.0)
    found, at = forecast(crawl, driver, ForecastLimits()), driver.now
    assert "not counted" not in found.text
    assert driver.run() == "exhausted"
    assert found.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_a_host_that_does_not_answer_any_more_is_not_counted() -> None:
    scenario = sites([2000, 300], [0, 0])
    begun = scenario.started_at
    scenario.web.hosts["h1.test"].status = lambda _url, now: 500 if now - begun > 30 else 200
    crawl, driver = scenario.prepare()
    driver.run(until=begun + 1500.0)
    found = forecast(crawl, driver, ForecastLimits())
    assert "URLs of parked hosts are not counted" in found.text
    at = driver.now
    assert driver.run() == "parked"
    assert found.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_the_share_of_errors_is_in_the_forecast() -> None:
    scenario = sites([400], [0])
    scenario.web.hosts["h0.test"].status = lambda url, _now: 500 if url.endswith("7") else 200
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 200.0)
    totals = crawl.totals
    tried = totals.fetches - totals.robots_fetches
    limits = ForecastLimits(requests_per_url=tried / (tried - totals.retries))
    found, at = forecast(crawl, driver, limits), driver.now
    assert driver.run() == "exhausted"
    assert found.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_the_budget_of_a_domain_is_shared_by_its_hosts_and_the_rest_is_over_budget() -> None:
    web = ImaginedSites()
    names = [f"h{number}.shared.test" for number in range(4)]
    web.hosts = {name: ImaginedHost(pages=0, address=f"127.0.0.{9 + place}") for place, name in enumerate(names)}
    seeds = [f"http://{name}/{page}" for name in names for page in range(50)]
    crawl, driver = Scenario(web, seeds, FrontierLimits(max_pages_per_domain=60), delay_s=1.0).prepare()
    driver.run(until=driver.now + 5.0)
    gauges = Gauges()
    looks = Forecasting(crawl.frontier, gauges, ForecastLimits, lambda: 300.0, lambda: driver.now)
    asyncio.run(looks.look())
    in_flight = crawl.frontier.in_flight
    assert abs(gauges.over_budget_urls - 140) <= in_flight
    assert gauges.forecast is not None
    assert gauges.forecast.text.endswith("URLs are over budget and not fetched")


def test_a_budget_of_pages_per_host_is_respected() -> None:
    scenario = sites([100, 10], [0, 0])
    scenario.limits = FrontierLimits(max_pages_per_host=20)
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 5.0)
    found = forecast(crawl, driver, ForecastLimits())
    assert found.seconds is not None
    assert 12 < found.seconds < 20


@pytest.mark.parametrize("limits", [FrontierLimits(address_delay_s=1.0), FrontierLimits(domain_delay_s=1.0)])
def test_hosts_that_share_an_address_or_a_domain_with_a_delay_wait_for_each_other(limits: FrontierLimits) -> None:
    web = ImaginedSites()
    names = [f"h{number}.shared.test" for number in range(6)]
    web.hosts = {name: ImaginedHost(pages=0, address="127.0.0.9") for name in names}
    seeds = [f"http://{name}/{page}" for name in names for page in range(20)]
    scenario = Scenario(web, seeds, limits, delay_s=1.0)
    crawl, driver = scenario.prepare()
    driver.run(until=scenario.started_at + 10.0)
    found, at = forecast(crawl, driver, ForecastLimits()), driver.now
    assert driver.run() == "exhausted"
    assert found.seconds == pytest.approx(driver.now - at, rel=0.25)


def test_a_pass_over_many_hosts_never_holds_the_loop_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "SLICE_S", 0.0)  # a quick machine makes a pass within one slice
    scenario = sites([1] * 5000, [0] * 5000)
    crawl, driver = scenario.prepare()
    gauges = Gauges()
    forecasts = Forecasting(crawl.frontier, gauges, ForecastLimits, lambda: 300.0, lambda: driver.now)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while gauges.forecast is None:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(forecasts.look(), others())

    asyncio.run(main())
    assert turns > 50
    assert gauges.forecast is not None
    assert gauges.forecast.text.startswith("5,000 queued URLs")
