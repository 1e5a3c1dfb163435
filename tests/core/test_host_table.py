"""The states of a host, as the table in `core/frontier/workbench` has them, and who is in memory."""

from __future__ import annotations

import pytest

from gossamer.core.frontier.effects import ReadQueue, SwapOut
from gossamer.core.frontier.host_table import HEAD_URLS, LONG_WAIT_S, MIN_HEAD_URLS, HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.workbench import BEFORE_ALL, HostSlot, HostState, OriginRules, RobotsRequest
from gossamer.core.url.identity import shard_of
from gossamer.model.records import DomainRecord, HostRecord
from tests.core.slots import FOREVER, NOW, enter, queued_url, table_with

IDLE, WAITING, READY, BUSY = HostState.IDLE, HostState.WAITING, HostState.READY, HostState.BUSY
BLOCKED, BUDGET_EXHAUSTED = HostState.BLOCKED, HostState.BUDGET_EXHAUSTED


def ready_host(table: HostTable, name: str = "a.test", *, domain: str = "", connections: int = 1) -> HostSlot:
    """Bring in a host that may be asked for a page now."""
    host = enter(table, name, domain=domain, connections=connections)
    host.push(queued_url(host, "1"))
    table.reschedule(host, NOW)
    assert host.state is READY
    return host


def waiting_host(table: HostTable, until: float, name: str = "a.test", *, domain: str = "") -> HostSlot:
    """Bring in a host that has to wait."""
    host = enter(table, name, domain=domain)
    host.push(queued_url(host, "1"))
    host.record.next_at = until
    table.reschedule(host, NOW)
    return host


# -- IDLE ----------------------------------------------------------------------------------------------


def test_a_host_without_work_is_idle_and_one_with_a_url_is_ready() -> None:
    table = table_with()
    host = enter(table)
    table.reschedule(host, NOW)
    assert host.state is IDLE
    assert list(table.idle) == ["a.test"]
    host.push(queued_url(host, "1"))
    table.reschedule(host, NOW)
    assert host.state is READY
    assert not table.idle


def test_of_too_many_idle_hosts_the_oldest_leaves_memory() -> None:
    table = table_with(FrontierLimits(max_idle_hosts=2))
    hosts = [enter(table, f"h{n}.test") for n in range(3)]
    for host in (hosts[0], hosts[1], hosts[0], hosts[2]):
        table.reschedule(host, NOW)
    assert list(table.hosts) == ["h0.test", "h2.test"]
    assert table.bench.count[IDLE] == 2
    assert table.commands == [], "what the ledger knows of it is all that there is"


def test_a_host_that_has_left_memory_gets_no_state() -> None:
    table = table_with(FrontierLimits(max_idle_hosts=0))
    host = enter(table)
    table.reschedule(host, NOW)
    assert not table.hosts
    host.push(queued_url(host, "1"))
    table.reschedule(host, NOW)
    assert table.bench.count == [0] * len(HostState)
    assert table.bench.pop_ready() is None


# -- WAITING -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("next_at", "parked_until"), [(NOW + 5, 0.0), (NOW + 1, NOW + 5), (NOW + 5, NOW + 1)])
def test_a_host_waits_for_its_delay_and_its_park(next_at: float, parked_until: float) -> None:
    table = table_with()
    host = enter(table)
    host.push(queued_url(host, "1"))
    host.record.next_at, host.record.parked_until = next_at, parked_until
    table.reschedule(host, NOW)
    assert host.state is WAITING
    assert table.bench.next_due() == NOW + 5
    assert table.bench.end_waits(NOW + 4.9) == []
    assert table.bench.end_waits(NOW + 5) == [host]
    table.reschedule(host, NOW + 5)
    assert host.state is READY


def test_a_host_with_nothing_but_a_retry_waits_for_it() -> None:
    table = table_with()
    host = enter(table)
    host.defer(queued_url(host, "1", not_before=NOW + 30))
    table.reschedule(host, NOW)
    assert host.state is WAITING
    assert table.bench.next_due() == NOW + 30
    table.reschedule(host, NOW + 30)
    assert host.state is READY
    assert [entry[3].url for entry in host.head] == ["http://a.test/1"]


def test_a_retry_does_not_delay_other_urls() -> None:
    table = table_with()
    host = ready_host(table)
    host.defer(queued_url(host, "2", seq=2, not_before=NOW + 30))
    table.reschedule(host, NOW)
    assert host.state is READY


# -- READY ---------------------------------------------------------------------------------------------


def test_a_request_for_robots_of_another_host_is_work() -> None:
    table = table_with()
    host = enter(table)
    host.robots_requests.append(RobotsRequest("http://b.test", "http://a.test/robots.txt", 1))
    table.reschedule(host, NOW)
    assert host.state is READY


def test_a_ready_host_is_taken_once() -> None:
    table = table_with()
    host = ready_host(table)
    table.reschedule(host, NOW)
    assert table.bench.pop_ready(NOW) is host
    assert table.bench.pop_ready(NOW) is None


# -- BUSY ----------------------------------------------------------------------------------------------


def test_a_host_is_busy_with_as_many_requests_as_it_may_have() -> None:
    table = table_with()
    host = ready_host(table, connections=2)
    host.in_flight = 1
    table.reschedule(host, NOW)
    assert host.state is READY
    host.in_flight = 2
    table.reschedule(host, NOW)
    assert host.state is BUSY
    host.in_flight = 1
    table.reschedule(host, NOW)
    assert host.state is READY


def test_a_host_is_busy_until_the_request_before_is_on_the_wire() -> None:
    table = table_with()
    host = ready_host(table, connections=2)
    host.in_flight, host.unsent = 1, 7
    table.reschedule(host, NOW)
    assert host.state is BUSY
    host.unsent = 0
    table.reschedule(host, NOW)
    assert host.state is READY


def test_a_host_without_urls_is_busy_until_its_last_request_ends() -> None:
    table = table_with()
    host = enter(table, connections=2)
    host.in_flight = 1
    table.reschedule(host, NOW)
    assert host.state is BUSY
    host.in_flight = 0
    table.reschedule(host, NOW)
    assert host.state is IDLE


def test_a_host_is_busy_while_its_name_is_looked_up() -> None:
    table = table_with()
    host = ready_host(table)
    host.is_resolving = True
    table.reschedule(host, NOW)
    assert host.state is BUSY


def test_a_host_whose_first_url_waits_for_robots_is_busy() -> None:
    table = table_with()
    host = ready_host(table)
    host.origins["http://a.test"].is_pending = True
    table.reschedule(host, NOW)
    assert host.state is BUSY
    host.origins["http://a.test"].is_pending = False
    table.reschedule(host, NOW)
    assert host.state is READY


def test_the_robots_of_another_origin_delay_no_url() -> None:
    table = table_with()
    host = ready_host(table)
    host.origins["https://a.test"] = OriginRules(is_pending=True, expires_at=FOREVER)
    table.reschedule(host, NOW)
    assert host.state is READY


def test_a_host_whose_queue_is_in_the_ledger_has_it_read_once() -> None:
    table = table_with()
    host = table.enter(HostRecord("a.test", "a.test", queued=3), DomainRecord("a.test"), 1)
    assert host.horizon == BEFORE_ALL
    table.reschedule(host, NOW)
    table.reschedule(host, NOW)
    assert host.state is BUSY
    assert table.commands == [ReadQueue("a.test", BEFORE_ALL, HEAD_URLS)]


# -- BLOCKED -------------------------------------------------------------------------------------------


def test_a_host_is_blocked_while_its_address_is_full_and_ready_when_that_has_room() -> None:
    table = table_with(FrontierLimits(address_connections=1))
    one, two = ready_host(table, "one.test"), ready_host(table, "two.test")
    table.bench.occupy(one, "10.0.0.1")
    table.reschedule(one, NOW)
    assert table.bench.pop_ready(NOW) is None
    assert (one.state, two.state) == (BUSY, BLOCKED)
    freed = table.bench.vacate(one, "10.0.0.1")
    assert freed == [two]
    table.reschedule(two, NOW)
    assert two.state is READY


# -- BUDGET_EXHAUSTED ----------------------------------------------------------------------------------


def test_what_is_in_flight_counts_towards_the_budget_of_a_host() -> None:
    table = table_with(FrontierLimits(max_pages_per_host=3))
    host = ready_host(table, connections=9)
    host.record.pages, host.pages_in_flight = 1, 1
    table.reschedule(host, NOW)
    assert host.state is READY
    host.pages_in_flight = 2
    table.reschedule(host, NOW)
    assert host.state is BUDGET_EXHAUSTED


def test_a_page_that_failed_gives_the_hosts_of_its_domain_their_turn_back() -> None:
    table = table_with(FrontierLimits(max_pages_per_domain=1))
    one, two = ready_host(table, "one.a.test", domain="a.test"), ready_host(table, "two.a.test", domain="a.test")
    one.domain.pages_in_flight = 1
    for host in (one, two):
        table.reschedule(host, NOW)
    assert {one.state, two.state} == {BUDGET_EXHAUSTED}
    one.domain.pages_in_flight = 0
    table.reopen(one.domain, NOW)
    assert {one.state, two.state} == {READY}
    assert one.domain.exhausted == {}


def test_a_domain_that_stays_without_budget_is_reopened_in_vain() -> None:
    table = table_with(FrontierLimits(max_pages_per_domain=1))
    host = ready_host(table)
    host.domain.pages = 1
    table.reschedule(host, NOW)
    table.reopen(host.domain, NOW)
    assert host.state is BUDGET_EXHAUSTED
    assert list(host.domain.exhausted) == ["a.test"]


def test_robots_is_asked_for_whatever_the_budget() -> None:
    table = table_with(FrontierLimits(max_pages_per_host=0))
    host = enter(table)
    host.robots_requests.append(RobotsRequest("http://b.test", "http://a.test/robots.txt", 1))
    table.reschedule(host, NOW)
    assert host.state is READY


def test_a_host_that_the_operator_blocked_is_asked_no_more_but_its_requests_may_end() -> None:
    table = table_with()
    host = ready_host(table, connections=2)
    host.in_flight, host.record.is_blocked = 1, True
    table.reschedule(host, NOW)
    assert host.state is BUSY
    host.in_flight = 0
    table.reschedule(host, NOW)
    assert host.state is HostState.OPTED_OUT
    host.record.is_blocked = False
    table.reschedule(host, NOW)
    assert host.state is READY


# -- memory --------------------------------------------------------------------------------------------


def test_idle_hosts_take_no_room() -> None:
    table = table_with(FrontierLimits(max_hosts_in_memory=2))
    table.reschedule(enter(table, "idle.test"), NOW)
    ready_host(table, "one.test")
    assert (table.room(), table.has_room(), table.is_crowded()) == (1, True, False)
    ready_host(table, "two.test")
    assert (table.room(), table.has_room(), table.is_crowded()) == (0, False, True)


def test_a_host_that_waits_for_long_makes_room_if_memory_is_crowded() -> None:
    table = table_with(FrontierLimits(max_hosts_in_memory=2))
    long_wait = waiting_host(table, NOW + LONG_WAIT_S + 1, "first.test")
    assert long_wait.state is WAITING, "memory is not crowded yet"
    waiting_host(table, NOW + LONG_WAIT_S, "short.test")
    assert table.commands == []
    host = waiting_host(table, NOW + LONG_WAIT_S + 1, "long.test")
    assert table.commands == [SwapOut(host.record, NOW + LONG_WAIT_S + 1)]
    assert list(table.hosts) == ["first.test", "short.test"]
    assert table.bench.count[WAITING] == 2


def test_a_host_that_others_wait_for_stays_in_memory() -> None:
    table = table_with(FrontierLimits(max_hosts_in_memory=0))
    host = enter(table)
    host.record.next_at = NOW + LONG_WAIT_S + 1
    host.robots_requests.append(RobotsRequest("http://b.test", "http://a.test/robots.txt", 1))
    table.reschedule(host, NOW)
    assert host.state is WAITING
    assert table.commands == []


def test_a_host_without_budget_stays_in_crowded_memory_only_while_a_page_may_fail() -> None:
    table = table_with(FrontierLimits(max_hosts_in_memory=0, max_pages_per_domain=1))
    host = enter(table)
    host.push(queued_url(host, "1"))
    host.domain.pages_in_flight = 1
    table.reschedule(host, NOW)
    assert host.state is BUDGET_EXHAUSTED
    assert list(table.hosts) == ["a.test"]
    host.domain.pages_in_flight, host.domain.pages = 0, 1
    table.reopen(host.domain, NOW)
    assert not table.hosts


def test_the_pages_of_a_domain_are_kept_as_long_as_one_of_its_hosts_is_in_memory() -> None:
    table = table_with(FrontierLimits(max_idle_hosts=0))
    one = table.enter(HostRecord("one.a.test", "a.test"), DomainRecord("a.test", pages=4), 1)
    two = table.enter(HostRecord("two.a.test", "a.test"), DomainRecord("a.test", pages=99), 1)
    assert one.domain is two.domain
    assert (one.domain.pages, len(one.domain.hosts)) == (4, 2)
    table.reschedule(one, NOW)
    assert table.enter(HostRecord("one.a.test", "a.test"), DomainRecord("a.test"), 1).domain is two.domain
    for host in list(table.hosts.values()):
        table.reschedule(host, NOW)
    assert table.enter(HostRecord("one.a.test", "a.test"), DomainRecord("a.test", pages=5), 1).domain.pages == 5


def test_a_domain_that_comes_back_keeps_its_distance() -> None:
    table = table_with(FrontierLimits(domain_delay_s=60.0, max_idle_hosts=0))
    host = enter(table)
    table.bench.occupy(host, "10.0.0.1")
    table.bench.gates.record_arrival(host, "10.0.0.1", NOW, is_first_report=True)
    table.bench.vacate(host, "10.0.0.1")
    table.reschedule(host, NOW)
    assert not table.hosts
    host = ready_host(table)
    assert host.domain.next_at == NOW + 60.0
    assert table.bench.pop_ready(NOW + 59) is None
    assert host.state is BLOCKED


def test_heads_are_shorter_the_more_hosts_are_in_memory() -> None:
    table = table_with(FrontierLimits(max_urls_in_memory=300))
    assert table.head_size() == HEAD_URLS
    for number in range(3):
        enter(table, f"h{number}.test")
    assert table.head_size() == 100
    for number in range(3, 100):
        enter(table, f"h{number}.test")
    assert table.head_size() == MIN_HEAD_URLS


# -- release of a shard --------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [IDLE, WAITING, READY, BLOCKED, BUDGET_EXHAUSTED])
def test_a_host_can_be_released_from_every_state_but_busy(state: HostState) -> None:
    table = table_with(FrontierLimits(address_connections=1, max_pages_per_host=5))
    other = enter(table, "other.test", connections=2)
    host = enter(table)
    if state is not IDLE:
        host.push(queued_url(host, "1"))
    host.record.next_at = NOW + 5 if state is WAITING else 0.0
    host.record.pages = 5 if state is BUDGET_EXHAUSTED else 0
    table.reschedule(host, NOW)
    if state is BLOCKED:
        table.bench.occupy(other, "10.0.0.1")
        assert table.bench.pop_ready(NOW) is None
    assert host.state is state
    table.release(host)
    assert list(table.hosts) == ["other.test"]
    assert table.bench.count[state] == (1 if state is IDLE else 0)
    assert host.domain.exhausted == {}
    assert table.bench.pop_ready(FOREVER) is None
    assert table.bench.end_waits(FOREVER) == []
    if state is BLOCKED:
        assert table.bench.vacate(other, "10.0.0.1") == []


def test_a_host_with_tasks_out_is_not_released() -> None:
    table = table_with()
    host = ready_host(table)
    host.in_flight = 1
    with pytest.raises(RuntimeError, match=r"a\.test"):
        table.release(host)


def test_the_hosts_of_a_shard_are_found() -> None:
    table = table_with()
    hosts = [enter(table, f"h{n}.test") for n in range(50)]
    shard = shard_of(hosts[7].id)
    assert table.of_shards([shard]) == [host for host in hosts if shard_of(host.id) == shard]
