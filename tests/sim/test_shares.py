"""One registrable domain against its neighbours, in virtual time: with everything shared that two parties can share.

Each attack runs beside honest hosts and is judged by these: what they are asked, beside the same crawl without the
attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec import field

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchTask, Outcome, Result
from gossamer.sim.driver import ImaginedAnswer, VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts

SHARED = "10.9.9.9"
FAIR = 0.8  # of what an honest host gets without the attack
SLOW_S = 25.0
ANSWER_S = 2.0


def crawl(
    web: ImaginedSites, seeds: Sequence[str], seconds: float, limits: FrontierLimits | None = None
) -> VirtualDriver:
    _, driver = Scenario(web, seeds, limits or FrontierLimits()).prepare()
    driver.run(until=START + seconds)
    return driver


def requests(driver: VirtualDriver, names: Sequence[str]) -> int:
    return sum(request.host in names for request in driver.requests)


def most_at_once(driver: VirtualDriver, names: Sequence[str]) -> int:
    ends = sorted(
        event
        for request in driver.requests
        if request.host in names
        for event in ((request.at, 1), (request.until, -1))
    )
    count = most = 0
    for _, change in ends:
        count += change
        most = max(most, count)
    return most


def honest_sites(count: int = 5, pages: int = 300, address: str = "") -> ImaginedSites:
    """Return honest hosts, each at its own address or all at one."""
    return many_hosts(count, pages, address=address) if address else many_hosts(count, pages)


def seeds_of(names: Sequence[str]) -> list[str]:
    return [f"http://{name}/" for name in names]


def beside(
    attack: Mapping[str, ImaginedHost], *, seconds: float = 40.0, address: str = ""
) -> tuple[float, VirtualDriver]:
    """Return the honest hosts' share of what they get alone, and the crawl with the attack."""
    honest = honest_sites(address=address)
    names = list(honest.hosts)
    control = requests(crawl(honest, seeds_of(names), seconds), names)
    web = honest_sites(address=address)
    web.hosts |= attack
    driver = crawl(web, [*seeds_of(list(attack)), *seeds_of(names)], seconds)
    return requests(driver, names) / control, driver


def slow_domain(hosts: int, addresses: int, domain: str = "evil.test") -> dict[str, ImaginedHost]:
    return {
        f"s{n}.{domain}": ImaginedHost(pages=50, latency_s=SLOW_S, address=f"10.8.8.{n % addresses}")
        for n in range(hosts)
    }


# -- connections ---------------------------------------------------------------------------------------


def test_a_slow_domain_at_many_addresses_leaves_the_others_their_connections() -> None:
    attack = slow_domain(600, 14)
    share, driver = beside(attack)
    assert share >= FAIR
    assert most_at_once(driver, list(attack)) <= 0.75 * 256


def test_an_honest_domain_that_is_alone_uses_all_connections() -> None:
    web = ImaginedSites({f"w{n}.big.test": ImaginedHost(3, address=f"10.7.{n >> 8}.{n & 255}") for n in range(300)})
    driver = crawl(web, seeds_of(list(web.hosts)), 20.0, FrontierLimits(connections=64))
    assert most_at_once(driver, list(web.hosts)) == 64


def test_a_slow_domain_with_few_connections_leaves_one_to_the_others() -> None:
    honest = honest_sites(1, 100)
    names = list(honest.hosts)
    limits = FrontierLimits(connections=4)
    control = requests(crawl(honest, seeds_of(names), 60.0, limits), names)
    web = honest_sites(1, 100)
    web.hosts |= slow_domain(20, 5)
    driver = crawl(web, [*seeds_of([name for name in web.hosts if name not in names]), *seeds_of(names)], 60.0, limits)
    assert requests(driver, names) >= FAIR * control


def test_slow_names_at_a_shared_address_leave_its_honest_hosts_their_requests() -> None:
    attack = {f"s{n}.evil.test": ImaginedHost(50, latency_s=SLOW_S, address=SHARED) for n in range(60)}
    share, driver = beside(attack, address=SHARED)
    assert share >= FAIR
    assert most_at_once(driver, list(driver_names(driver))) <= 20


def driver_names(driver: VirtualDriver) -> set[str]:
    return {request.host for request in driver.requests}


def test_slow_names_of_many_domains_at_a_shared_address_leave_room_for_quick_hosts() -> None:
    attack = {f"evil{n}.test": ImaginedHost(50, latency_s=SLOW_S, address=SHARED) for n in range(60)}
    share, _ = beside(attack, seconds=300.0, address=SHARED)
    assert share >= FAIR


def silent(task: FetchTask, _now: float) -> Result:
    return Result(task.id, Outcome.TIMEOUT, error="silent")


def test_a_hundred_silent_domains_at_a_shared_address_delay_its_honest_hosts_once() -> None:
    attack = {f"evil{n}.test": ImaginedHost(latency_s=30.0, address=SHARED, says=silent) for n in range(100)}
    share, _ = beside(attack, seconds=300.0, address=SHARED)
    assert share >= FAIR


def test_domains_that_take_long_but_are_not_slow_do_not_count_as_many_turns() -> None:
    attack = {f"evil{n}.test": ImaginedHost(50, latency_s=1.5 + 0.618 * n % 1, address=SHARED) for n in range(40)}
    share, _ = beside(attack, seconds=120.0, address=SHARED)
    assert share >= FAIR


def test_an_honest_domain_that_is_alone_at_its_address_uses_all_of_its_connections() -> None:
    web = ImaginedSites({f"w{n}.big.test": ImaginedHost(20, latency_s=1.0, address=SHARED) for n in range(60)})
    web.hosts |= honest_sites(3).hosts
    driver = crawl(web, seeds_of(list(web.hosts)), 20.0)
    assert most_at_once(driver, [name for name in web.hosts if name.startswith("w")]) == 20


def test_addresses_of_one_ipv6_network_have_one_limit() -> None:
    attack = {f"s{n}.evil.test": ImaginedHost(50, latency_s=SLOW_S, address=f"2001:db8::{n + 1:x}") for n in range(100)}
    share, driver = beside(attack)
    assert share >= FAIR
    assert most_at_once(driver, list(attack)) <= 20


# -- addresses -----------------------------------------------------------------------------------------


class Refusing(ImaginedSites):
    """Names of an attacker have two addresses: the first refuses connections, the second is somebody else's."""

    victim: str = "10.5.5.5"
    asked: list[tuple[float, FetchTask]] = field(default_factory=list)

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        self.asked.append((now, task))
        return super().answer(task, now)

    def resolve(self, host: str) -> tuple[tuple[str, ...], Outcome]:
        if host.endswith("evil.test"):
            number = int(host.partition(".")[0][1:])
            return (f"10.4.{number >> 8}.{number & 255}", self.victim), Outcome.OK
        return super().resolve(host)


def refusing(task: FetchTask, _now: float) -> Result | None:
    if task.addresses[0].startswith("10.4."):
        return Result(task.id, Outcome.CONNECT_FAILED, error="refused", address=task.addresses[0])
    return None


def refused_names(count: int) -> dict[str, ImaginedHost]:
    return {f"r{n}.evil.test": ImaginedHost(3, latency_s=ANSWER_S, says=refusing) for n in range(count)}


def test_a_request_goes_to_one_address_and_the_next_address_has_a_gate_of_its_own() -> None:
    web = Refusing(refused_names(200))
    crawl(web, seeds_of(list(web.hosts)), 60.0)
    assert {len(task.addresses) for _, task in web.asked} == {1}
    at_victim = [at for at, task in web.asked if task.addresses == (web.victim,)]
    assert len(at_victim) > 100
    most = max(sum(0 <= at - other < ANSWER_S for other in at_victim) for at in at_victim)
    assert most <= 20


# -- new hosts -----------------------------------------------------------------------------------------


def test_names_of_one_domain_at_a_shared_address_do_not_delay_its_new_hosts() -> None:
    limits = FrontierLimits(max_hosts_per_address=100)
    names = [f"n{n}.evil.test" for n in range(297)]
    attack = {name: ImaginedHost(1, address=SHARED) for name in names}
    found = {f"honest{n}.test": ImaginedHost(1, address=SHARED) for n in range(20)}
    links = seeds_of(list(found))

    def fetched_at(attackers: Mapping[str, ImaginedHost]) -> float:
        web = ImaginedSites({**attackers, **found})
        web.hosts["hub.test"] = ImaginedHost(60, address="10.1.1.1", fanout=1)
        web.hosts["hub.test"].cross_links = ["http://late.test/"]
        web.hosts["late.test"] = ImaginedHost(1, latency_s=8.0, address="10.1.1.2", cross_links=links)
        driver = crawl(web, [*seeds_of(list(attackers)), "http://hub.test/"], 600.0, limits)
        reached = {request.host: request.at for request in reversed(driver.requests) if request.host in found}
        assert set(reached) == set(found)
        return max(reached.values()) - START

    assert fetched_at(attack) <= fetched_at({}) + 60.0


def test_a_page_at_a_shared_address_does_not_stop_the_introductions_of_its_neighbours() -> None:
    gone = [f"http://gone{n}.test/" for n in range(900)]
    found = {f"new{n}.test": ImaginedHost(1, address=f"10.3.3.{n}") for n in range(52)}

    def introduced(attack: bool) -> int:
        web = honest_sites(5, 300)
        web.hosts |= found
        web.hosts["hub.test"] = ImaginedHost(1, latency_s=3.0, address=SHARED, cross_links=seeds_of(list(found)))
        seeds = [*seeds_of([f"h{n}.test" for n in range(5)]), "http://hub.test/"]
        if attack:
            web.hosts["liar.test"] = ImaginedHost(1, address=SHARED, cross_links=gone)
            seeds.append("http://liar.test/")
        driver = crawl(web, seeds, 40.0)
        return len({request.host for request in driver.requests if request.host in found})

    assert introduced(attack=False) == len(found)
    assert introduced(attack=True) >= FAIR * len(found)


# -- hosts per domain ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_attacked", [False, True], ids=["control", "attacked"])
def test_invented_names_of_a_domain_do_not_take_the_place_of_its_hosts(is_attacked: bool) -> None:
    real = {f"www{n}.victim.test": ImaginedHost(2, address=f"10.6.6.{n}") for n in range(20)}
    invented = [f"http://x{n}.victim.test/" for n in range(60)]
    web = ImaginedSites(dict(real))
    web.hosts["victim.test"] = ImaginedHost(
        2, latency_s=5.0, address="10.6.6.100", cross_links=[f"http://{name}/" for name in real]
    )
    web.hosts["liar.test"] = ImaginedHost(1, address=SHARED, cross_links=invented if is_attacked else [])
    scenario = Scenario(web, ["http://liar.test/", "http://victim.test/"], rules=CrawlRules(max_hosts_per_domain=30))
    why, state, driver = scenario.run()
    reached = {request.host for request in driver.requests} & set(real)
    assert len(reached) == len(real)
    assert why in ("exhausted", "held")
    assert not state.totals.held


# -- requests that are made again ------------------------------------------------------------------------


def test_an_answer_that_needs_longer_than_its_connection_is_lent_is_fetched_all_the_same() -> None:
    web = ImaginedSites({f"w{n}.big.test": ImaginedHost(4, latency_s=8.0, address=SHARED) for n in range(60)})
    scenario = Scenario(web, seeds_of(list(web.hosts)), FrontierLimits())
    why, state, driver = scenario.run()
    assert (why, state.totals.pages, state.totals.dead) == ("exhausted", 240, 0)
    assert most_at_once(driver, list(web.hosts)) == 20
    assert not [event for event in scenario.events if event.event is EventName.HOST_PARKED]
    lent = [request for request in driver.requests if request.until - request.at < 8.0 / 2]
    assert 0 < len(lent) <= 60, "once per host at most"


def test_a_host_one_of_whose_addresses_refuses_is_fetched_at_the_next_without_a_penalty() -> None:
    web = Refusing({"r1.evil.test": ImaginedHost(10, says=refusing)})
    scenario = Scenario(web, ["http://r1.evil.test/"])
    why, state, driver = scenario.run()
    assert (why, state.totals.pages, state.totals.dead) == ("exhausted", 10, 0)
    assert len([task for _, task in web.asked if task.addresses[0].startswith("10.4.")]) == 1
    host = scenario.ledger.host("r1.evil.test")
    assert host is not None
    assert (host.addresses[0], host.backoff, host.failures_in_a_row) == (web.victim, 0, 0)
    assert driver.now - START < 20


def test_a_host_all_of_whose_addresses_refuse_has_failed_once_per_round() -> None:
    web = Refusing({"r1.evil.test": ImaginedHost(1, says=lambda task, _: Result(task.id, Outcome.CONNECT_FAILED))})
    scenario = Scenario(web, ["http://r1.evil.test/"])
    scenario.run(max_wait_s=1.0)
    assert [task.addresses[0] for _, task in web.asked] == ["10.4.0.1", web.victim]
    host = scenario.ledger.host("r1.evil.test")
    assert host is not None
    assert host.failures_in_a_row == 1
