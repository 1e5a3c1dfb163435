"""Estimates before a crawl: what hosts say counts, and what is guessed is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.telemetry.planning import HostPlan, PlanLimits, PlanTotals, plan_of

LIMITS = PlanLimits(
    max_pages=1000,
    max_time_s=None,
    max_pages_per_host=None,
    max_pages_per_domain=None,
    workers=1,
    connections=256,
    memory_ceiling_bytes=2_000_000_000,
    has_near_duplicates=True,
    is_host_scope=True,
)


def seconds(*hosts: HostPlan, limits: PlanLimits = LIMITS) -> float | None:
    return plan_of(hosts, limits, requests=0).forecast.seconds


def test_the_pace_of_the_hosts_decides_the_time() -> None:
    assert seconds(HostPlan(name="a.test", delay_s=2.0)) == pytest.approx(2000.0, rel=0.1)
    many = [HostPlan(name=f"h{n}.test", delay_s=2.0) for n in range(10)]
    assert seconds(*many) == pytest.approx(200.0, rel=0.1)
    assert seconds(HostPlan(name="a.test")) == pytest.approx(200.0, rel=0.1), "an answer takes time, too"


def test_a_time_that_depends_on_where_the_pages_are_is_a_range() -> None:
    hosts = [HostPlan(name=f"h{n}.test", delay_s=1.0) for n in range(5)]
    limits = replace(LIMITS, max_pages=200)
    plan = plan_of(hosts, limits, requests=0)
    assert plan.forecast.seconds == pytest.approx(40.0, rel=0.1)
    assert plan.longest_seconds == pytest.approx(200.0, rel=0.1)
    assert "39 s to 3 min for 200 pages (--max-pages), by how many of them are at the slowest host" in plan.render()
    listed = [replace(host, sitemap_urls=40) for host in hosts]
    assert plan_of(listed, limits, requests=0).longest_seconds is None
    assert plan_of(hosts[:1], limits, requests=0).longest_seconds is None


def test_without_a_limit_a_host_that_lists_no_urls_has_no_time() -> None:
    hosts = [HostPlan(name="a.test", delay_s=1.0, sitemap_urls=40), HostPlan(name="b.test", delay_s=1.0)]
    plan = plan_of(hosts, replace(LIMITS, max_pages=None), requests=0)
    assert plan.forecast.seconds is None
    assert "not known: hosts list no URLs" in plan.render()
    assert seconds(*hosts, limits=replace(LIMITS, max_pages=None, max_pages_per_domain=60)) == pytest.approx(60.0)


def test_hosts_that_cannot_be_crawled_have_no_estimate() -> None:
    plan = plan_of([HostPlan(name="a.test", is_crawled=False, problem="no address")], LIMITS, requests=1)
    assert (plan.forecast.seconds, plan.disk_bytes, plan.memory_bytes, plan.guesses) == (None, None, None, [])


def test_a_sitemap_says_how_much_there_is() -> None:
    small = HostPlan(name="a.test", delay_s=2.0, sitemap_urls=50)
    assert seconds(small) == pytest.approx(100.0, rel=0.1)
    index = HostPlan(name="a.test", delay_s=2.0, sitemap_urls=0, sitemap_files=3)
    assert seconds(index) == pytest.approx(2000.0, rel=0.1)


def test_limits_of_time_and_of_pages_per_host_count() -> None:
    host = HostPlan(name="a.test", delay_s=2.0)
    assert seconds(host, limits=replace(LIMITS, max_time_s=60.0)) == 60.0
    assert seconds(host, limits=replace(LIMITS, max_pages_per_host=100)) == pytest.approx(200.0, rel=0.1)


def test_hosts_of_a_domain_share_its_budget_and_its_delay() -> None:
    hosts = [HostPlan(name=f"h{n}.example.org", delay_s=1.0) for n in range(10)]
    limits = replace(LIMITS, max_pages=None, max_pages_per_domain=100)
    assert seconds(*hosts, limits=limits) == pytest.approx(100.0, rel=0.1), "all of it may be at one host"
    listed = [replace(host, sitemap_urls=40) for host in hosts]
    assert seconds(*listed, limits=limits) == pytest.approx(40.0, rel=0.1)
    assert seconds(*listed, limits=replace(limits, domain_delay_s=2.0)) == pytest.approx(200.0, rel=0.1)


def test_connections_bound_a_plan_of_many_hosts() -> None:
    hosts = [HostPlan(name=f"h{n}.test", sitemap_urls=100) for n in range(100)]
    assert seconds(*hosts, limits=replace(LIMITS, max_pages=None, connections=10)) == pytest.approx(200.0, rel=0.1)


def test_a_host_that_cannot_be_crawled_takes_no_time() -> None:
    plan = plan_of([HostPlan(name="a.test", is_crawled=False)], LIMITS, requests=1)
    assert plan.forecast.seconds is None
    assert "not known: no seed host can be crawled" in plan.render()


def test_the_seed_hosts_are_summed_up() -> None:
    hosts = [
        HostPlan(name="a.test", delay_s=2.0, sitemap_urls=1200),
        HostPlan(name="b.test", delay_s=0.5, sitemap_urls=34, sitemap_files=3),
        HostPlan(name="c.test", is_crawled=False, problem="no address"),
        HostPlan(name="d.test", delay_s=1.0, is_asked=False),
    ]
    plan = plan_of(hosts, LIMITS, requests=0)
    assert plan.totals == PlanTotals(4, 3, 3, 1234, 3, 3.5)
    line = next(line for line in plan.render().splitlines() if line.startswith("  hosts "))
    assert line.split(None, 1)[1] == (
        "3 of 4 seed hosts; 1 cannot be crawled; their sitemaps list 1,234 URLs; "
        "3 more files of sitemaps were not read; at most 3.5 requests per second"
    )
    assert [host.name for host in plan.hosts] == ["a.test", "b.test", "c.test", "d.test"]


def test_disk_and_memory_grow_with_the_pages_and_stay_below_the_ceiling() -> None:
    host = HostPlan(name="a.test", delay_s=1.0)
    small, large = (plan_of([host], replace(LIMITS, max_pages=pages), requests=0) for pages in (1000, 10_000_000))
    assert small.disk_bytes == 20_000_000
    assert small.memory_bytes is not None
    assert 30_000_000 < small.memory_bytes < 100_000_000
    assert large.memory_bytes == LIMITS.memory_ceiling_bytes
    unlimited = plan_of([host], replace(LIMITS, max_pages=None), requests=0)
    assert (unlimited.disk_bytes, unlimited.memory_bytes) == (None, None)


def test_what_is_guessed_is_told() -> None:
    hosts = [HostPlan(name="a.test", delay_s=5.0, crawl_delay_s=5.0, robots="200", sitemap_urls=12), HostPlan(name="b")]
    hosts += [HostPlan(name=f"h{n}.test", is_asked=False, delay_s=1.0) for n in range(900)]
    plan = plan_of(hosts, replace(LIMITS, is_host_scope=False), requests=3)
    shown = plan.render()
    assert "robots.txt 200; Crawl-delay 5 s, a request every 5 s, 1 at a time; its sitemap lists 12 URLs" in shown
    assert "and 900 more hosts, not asked" in shown
    assert "901 hosts list no URLs" in shown
    assert "hosts that were not asked count as if" in shown
    assert "links may lead to more hosts" in shown
    assert "3 were made for this plan" in shown
