"""How many hosts a domain may have, and what becomes of links to further ones."""

from __future__ import annotations

from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario

RULES = CrawlRules(max_hosts_per_domain=8)


def _victim(hosts: int) -> ImaginedSites:
    """Return a domain that names its own hosts, after some seconds."""
    names = [f"www{n}.victim.test" for n in range(hosts)]
    web = ImaginedSites({name: ImaginedHost(1, address=f"10.6.6.{n}") for n, name in enumerate(names)})
    links = [f"http://{name}/" for name in names]
    web.hosts["victim.test"] = ImaginedHost(1, latency_s=5.0, address="10.6.6.100", cross_links=links)
    return web


def _reached(driver: VirtualDriver, prefix: str) -> int:
    return len({request.host for request in driver.requests if request.host.startswith(prefix)})


def test_a_part_of_the_places_is_for_hosts_that_the_domain_names_itself() -> None:
    web = _victim(5)
    invented = [f"x{n}.victim.test" for n in range(50)]
    web.hosts |= {name: ImaginedHost(1, address="10.6.6.200") for name in invented}  # a wildcard: all of them answer
    web.hosts["liar.test"] = ImaginedHost(1, address="10.9.9.9", cross_links=[f"http://{name}/" for name in invented])
    _, crawl, driver = Scenario(web, ["http://liar.test/", "http://victim.test/"], rules=RULES).run()
    assert (_reached(driver, "x"), _reached(driver, "www")) == (6, 1), "and the domain's own name"
    assert crawl.totals.held == {"hosts_per_domain": 48}


def test_hosts_that_fail_give_their_places_back() -> None:
    web = _victim(20)
    for n in range(15):
        del web.hosts[f"www{n}.victim.test"]  # the name does not exist
    why, crawl, driver = Scenario(web, ["http://victim.test/"], rules=RULES).run()
    assert (why, crawl.totals.held, _reached(driver, "www")) == ("exhausted", {}, 5)


def test_what_is_held_back_is_told_and_fetched_with_a_higher_limit() -> None:
    first = Scenario(_victim(20), ["http://victim.test/"], rules=RULES)
    why, crawl, driver = first.run()
    assert (why, _reached(driver, "www")) == ("held", 7)
    assert crawl.totals.held == {"hosts_per_domain": 13}
    assert {event.reason for event in first.events if event.event is EventName.EXCLUDED_BY_RULE} == {"hosts_per_domain"}
    crawl.save_state(5.0, 1.0, driver.now)
    more = CrawlRules(max_hosts_per_domain=30)
    why, crawl, driver = Scenario(_victim(20), [], rules=more, ledger=first.ledger, started_at=START + 100).run()
    assert (why, crawl.totals.held, _reached(driver, "www")) == ("exhausted", {}, 13)
