"""A farm of endless domains at one address, beside honest sites, in virtual time."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import INTRODUCED
from gossamer.core.links.introductions import EARNED_HOSTS
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.introduced_links import BATCH_LINKS, links_of
from gossamer.model.events import EventName
from gossamer.model.figures import Figures
from gossamer.model.records import Outcome
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts
from gossamer.telemetry.summary import summary_of

FARM = "10.9.9.9"
FREE = 50
SECONDS = 60.0
LINKS = 100


class Farm(ImaginedSites):
    """Honest hosts, and any number of domains each of whose pages links to 100 new ones."""

    made: int = 0

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        """Return the farm's address for any of its names."""
        if host.startswith("farm") and host not in self.hosts:
            links = [f"http://farm{self.made + n}.test/" for n in range(1, LINKS + 1)]
            self.made += LINKS
            self.hosts[host] = ImaginedHost(pages=1, cross_links=links, address=FARM)
        return super().resolve(host)


def _farm(healthy: int) -> Farm:
    return Farm(many_hosts(healthy, 200).hosts)


def _requests(driver: VirtualDriver, prefix: str) -> int:
    return sum(request.host.startswith(prefix) for request in driver.requests)


def _crawl(limits: FrontierLimits, seconds: float = SECONDS) -> tuple[Scenario, VirtualDriver]:
    seeds = ["http://farm0.test/", *(f"http://h{n}.test/" for n in range(5))]
    scenario = Scenario(_farm(5), seeds, limits)
    crawl, driver = scenario.prepare()
    driver.run(until=START + seconds)
    assert len(list(crawl.frontier.view.records())) <= limits.max_hosts_in_memory + limits.max_idle_hosts
    return scenario, driver


def test_a_farm_of_domains_gets_one_new_host_per_second_and_honest_hosts_keep_their_pace() -> None:
    _, driver = _crawl(FrontierLimits(max_hosts_per_address=FREE, max_hosts_in_memory=500, max_idle_hosts=50))
    assert FREE < _requests(driver, "farm") <= 2 * (FREE + SECONDS + 1), "robots.txt and a page of each"
    for n in range(5):
        assert _requests(driver, f"h{n}.test") >= 0.9 * SECONDS


def test_the_pages_of_a_farm_lead_to_as_many_hosts_as_its_answers_earn() -> None:
    scenario, driver = _crawl(FrontierLimits(max_hosts_per_address=FREE))
    farm = [host for host in scenario.ledger.hosts() if host.name.startswith("farm")]
    answered = sum(host.fetches > 0 for host in farm)
    assert len(farm) <= 1 + FREE + EARNED_HOSTS * answered + BATCH_LINKS
    assert len(farm) < 8 * (FREE + SECONDS), "of thousands that were named"
    assert _requests(driver, "farm") > FREE


def test_what_a_farm_names_beyond_that_is_counted_stored_and_in_the_summary() -> None:
    scenario = Scenario(_farm(0), ["http://farm0.test/"], FrontierLimits(max_hosts_per_address=FREE))
    crawl, driver = scenario.prepare()
    driver.run(until=START + SECONDS)
    held = crawl.totals.held[CROWDED]
    stored = {link.url for batch in scenario.ledger.records(INTRODUCED) for link in links_of(batch)}
    pages = crawl.totals.pages
    assert len(stored) == held
    assert held + crawl.totals.urls_seen == 1 + pages * LINKS, "each link is queued or waits"
    text = summary_of(Figures(totals=crawl.totals, out="crawl")).render()
    assert f"{held:,} URLs by the number of new hosts that pages at one address may lead to" in text


def test_pages_that_name_hosts_that_do_not_exist_lead_to_few_of_them_while_others_have_work() -> None:
    web = many_hosts(5, 200)
    names = [f"http://gone{n}.test/" for n in range(1000)]
    web.hosts["liar.test"] = ImaginedHost(pages=1, cross_links=names, address=FARM)
    seeds = ["http://liar.test/", *(f"http://h{n}.test/" for n in range(5))]
    scenario = Scenario(web, seeds, FrontierLimits(max_hosts_per_address=FREE))
    crawl, driver = scenario.prepare()
    driver.run(until=START + 150)
    assert sum(host.name.startswith("gone") for host in scenario.ledger.hosts()) == FREE
    assert driver.run() == "exhausted"
    assert sum(host.name.startswith("gone") for host in scenario.ledger.hosts()) == 1000, "when all else is done"
    assert not crawl.totals.held


def test_a_site_that_links_to_the_web_loses_nothing_and_waits_for_nothing() -> None:
    web = many_hosts(2000, 1)
    for n in range(0, 2000, 5):
        del web.hosts[f"h{n}.test"]  # a fifth of its links is dead
    links = [f"http://h{n}.test/" for n in range(2000)]
    for n in range(20):
        web.hosts[f"hub{n}.test"] = ImaginedHost(pages=1, cross_links=links[100 * n : 100 * n + 100], address=FARM)
    seeds = [f"http://hub{n}.test/" for n in range(20)]
    scenario = Scenario(web, seeds, FrontierLimits(max_hosts_per_address=200))
    why, crawl, driver = scenario.run()
    assert (why, crawl.totals.unique_domains, crawl.totals.held) == ("exhausted", 1620, {})
    assert driver.now - START < 60


def test_three_thousand_domains_of_one_shared_host_that_link_to_each_other_are_all_fetched() -> None:
    web = many_hosts(3000, 1)
    for n in range(3000):
        host = web.hosts[f"h{n}.test"]
        host.address, host.latency_s = FARM, 0.01
        host.cross_links = [f"http://h{3 * n + each}.test/" for each in (1, 2, 3) if 3 * n + each < 3000]
    why, crawl, driver = Scenario(web, ["http://h0.test/"]).run()
    assert (why, crawl.totals.unique_domains, crawl.totals.held) == ("exhausted", 3000, {})
    assert driver.now - START < 2100, "one new host per second, after the first thousand"


def test_what_waited_in_a_run_that_was_killed_is_offered_by_the_next() -> None:
    web = many_hosts(400, 1)
    for number, host in enumerate(web.hosts.values()):
        host.address = FARM
        host.cross_links = [f"http://h{n}.test/" for n in range(400)] if number == 0 else []
    limits = FrontierLimits(max_hosts_per_address=FREE)
    first = Scenario(web, ["http://h0.test/"], limits)
    crawl, driver = first.prepare()
    driver.run(until=START + 5)
    assert crawl.totals.held[CROWDED]
    crawl.save_state(5.0, 1.0, driver.now)
    again = Scenario(web, [], limits, ledger=first.ledger, started_at=START + 20, was_clean=False)
    why, crawl, _ = again.run()
    assert (why, crawl.totals.unique_domains, crawl.totals.held) == ("exhausted", 400, {})


def test_without_the_limit_a_farm_grows_without_bound() -> None:
    limits = FrontierLimits(max_hosts_per_address=0, max_hosts_in_memory=500, max_idle_hosts=50)
    _, driver = _crawl(limits, seconds=3.0)
    assert _requests(driver, "farm") > 3 * (FREE + 3), "in three seconds"


def test_what_waits_because_of_its_address_is_counted_and_named() -> None:
    scenario = Scenario(_farm(0), ["http://farm0.test/"], FrontierLimits(max_hosts_per_address=FREE))
    crawl, driver = scenario.prepare()
    driver.run(until=START + SECONDS)
    parked = [event for event in scenario.events if event.event is EventName.HOST_PARKED]
    assert crawl.totals.crowded_hosts == len(parked) > 100
    assert {event.reason for event in parked} == {f"max_hosts_per_address: {FARM} has more than {FREE}"}
    record = scenario.ledger.host(parked[-1].host)
    assert record is not None
    assert record.park_reason == parked[-1].reason, "which is what `why` shows"
    text = summary_of(Figures(totals=crawl.totals, out="crawl")).render()
    assert "more at crowded addresses had to wait (--max-hosts-per-address)" in text


def test_three_hundred_domains_of_one_shared_host_are_all_fetched() -> None:
    web = many_hosts(300, 3)
    for host in web.hosts.values():
        host.address = FARM
    why, crawl, driver = Scenario(web, ["http://h0.test/", *(f"http://h{n}.test/" for n in range(1, 300))]).run()
    assert (why, crawl.totals.unique_domains, crawl.totals.crowded_hosts) == ("exhausted", 300, 0)
    assert driver.now - START < 60


def test_more_domains_at_one_address_than_the_limit_are_fetched_later() -> None:
    web = many_hosts(80, 2)
    for host in web.hosts.values():
        host.address = FARM
    limits = FrontierLimits(max_hosts_per_address=FREE)
    why, crawl, _ = Scenario(web, [f"http://h{n}.test/" for n in range(80)], limits).run()
    assert (why, crawl.totals.unique_domains, crawl.totals.crowded_hosts) == ("exhausted", 80, 30)


def test_a_host_that_waited_does_not_wait_again_after_a_restart() -> None:
    web = many_hosts(60, 1)
    for host in web.hosts.values():
        host.address = FARM
    limits = FrontierLimits(max_hosts_per_address=FREE)
    first = Scenario(web, [f"http://h{n}.test/" for n in range(60)], limits)
    _, driver = first.prepare()
    driver.run(until=START + 3)
    again = Scenario(web, [], limits, ledger=first.ledger, started_at=START + 20, was_clean=False)
    why, crawl, _ = again.run()
    assert (why, crawl.totals.crowded_hosts) == ("exhausted", 0)
    assert first.ledger.look_up(link_to("http://h59.test/").id) is not None
