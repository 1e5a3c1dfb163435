from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.frontier.workbench import DomainSlot, HostSlot, HostState, Workbench
from gossamer.core.politeness.gates import Gates
from tests.amount import amount
from tests.core.slots import lone_host

ADDRESS = "10.0.0.1"


def stand_in_line(gates: Gates, hosts: list[HostSlot], now: float = 0.0) -> None:
    """Let hosts find a gate closed, as `Workbench.take` does."""
    for host in hosts:
        gate = gates.closed(host, now)
        assert gate is not None
        gate.blocked.append(host)


# -- requests at once ----------------------------------------------------------------------------------


def test_without_limits_no_gate_is_closed() -> None:
    gates = Gates(FrontierLimits(address_connections=0))
    host = lone_host("a.test")
    for _ in range(1000):
        gates.occupy(host, ADDRESS)
    assert gates.closed(host, 0.0) is None


def test_an_address_is_closed_to_all_its_hosts_and_to_no_others() -> None:
    gates = Gates(FrontierLimits(address_connections=2))
    one, two, elsewhere = lone_host("one.test"), lone_host("two.test"), lone_host("b.test", address="10.0.0.2")
    gates.occupy(one, ADDRESS)
    assert gates.closed(two, 0.0) is None
    gates.occupy(two, ADDRESS)
    gate = gates.closed(one, 0.0)
    assert gate is not None
    assert gate.name == ADDRESS
    assert gates.closed(elsewhere, 0.0) is None
    gates.vacate(two, ADDRESS)
    assert gates.closed(one, 0.0) is None


def test_an_address_whose_links_wait_gets_a_quarter_of_the_connections() -> None:
    limits = FrontierLimits(connections=8, address_connections=20)
    gates = Gates(limits)
    one, two, elsewhere = lone_host("one.test"), lone_host("two.test"), lone_host("b.test", address="10.0.0.2")
    for host, address in ((one, ADDRESS), (two, ADDRESS), (elsewhere, "10.0.0.2"), (elsewhere, "10.0.0.2")):
        gates.occupy(host, address)
    assert gates.closed(one, 0.0) is None
    gates.slow.add(ADDRESS)
    stand_in_line(gates, [one])
    assert gates.closed(elsewhere, 0.0) is None
    assert gates.vacate(two, ADDRESS) == [one]
    limits.connections = 80
    gates.occupy(two, ADDRESS)
    assert gates.closed(one, 0.0) is None, "a quarter of 80 is as many as any address gets"


def test_a_domain_is_closed_whatever_the_addresses_of_its_hosts() -> None:
    gates = Gates(FrontierLimits(domain_connections=1))
    domain = DomainSlot("a.test")
    one, two = lone_host("one.a.test", domain), lone_host("two.a.test", domain, address="10.0.0.2")
    gates.occupy(one, ADDRESS)
    assert gates.closed(two, 0.0) is domain


def test_a_host_without_an_address_can_only_find_its_domain_closed() -> None:
    gates = Gates(FrontierLimits(address_connections=1, domain_connections=1))
    host = lone_host("a.test")
    host.record.addresses = ()
    assert gates.closed(host, 0.0) is None
    gates.occupy(host, "")
    assert gates.closed(host, 0.0) is host.domain


# -- waking --------------------------------------------------------------------------------------------


def test_the_end_of_a_request_wakes_one_host_at_a_busy_gate_however_many_wait() -> None:
    gates = Gates(FrontierLimits(address_connections=2))
    asked = [lone_host(f"asked{n}.test") for n in range(2)]
    for host in asked:
        gates.occupy(host, ADDRESS)
    waiting = [lone_host(f"h{n}.test") for n in range(1000)]
    stand_in_line(gates, waiting)
    assert gates.vacate(asked[0], ADDRESS) == waiting[:1]


def test_more_hosts_are_woken_if_there_is_much_room() -> None:
    gates = Gates(FrontierLimits(address_connections=10))
    asked = [lone_host(f"asked{n}.test") for n in range(10)]
    for host in asked:
        gates.occupy(host, ADDRESS)
    waiting = [lone_host(f"h{n}.test") for n in range(100)]
    stand_in_line(gates, waiting)
    woken = [len(gates.vacate(host, ADDRESS)) for host in asked]
    assert woken == [1, 1, 1, 1, 1, 6, 7, 8, 9, 65]
    assert sum(woken) == len(waiting), "none is left when nothing is in flight"


def test_no_more_hosts_are_woken_than_wait() -> None:
    gates = Gates(FrontierLimits(domain_connections=8, address_connections=0))
    domain = DomainSlot("a.test")
    asked = [lone_host(f"asked{n}.a.test", domain) for n in range(8)]
    for host in asked:
        gates.occupy(host, ADDRESS)
    waiting = [lone_host(f"h{n}.a.test", domain) for n in range(7)]
    stand_in_line(gates, waiting)
    assert [len(gates.vacate(host, ADDRESS)) for host in asked] == [1, 1, 1, 1, 3, 0, 0, 0]


def test_an_address_is_forgotten_with_its_last_request() -> None:
    gates = Gates(FrontierLimits())
    host = lone_host("a.test")
    gates.occupy(host, ADDRESS)
    gates.occupy(host, ADDRESS)
    gates.vacate(host, ADDRESS)
    assert list(gates._addresses) == [ADDRESS]
    gates.vacate(host, ADDRESS)
    assert not gates._addresses


def test_the_lines_of_a_host_are_those_in_which_it_stands() -> None:
    gates = Gates(FrontierLimits(address_connections=1))
    asked, waiting = lone_host("asked.test"), lone_host("waiting.test")
    gates.occupy(asked, ADDRESS)
    stand_in_line(gates, [waiting])
    assert gates.lines_of(asked) == []
    (line,) = gates.lines_of(waiting)
    line.remove(waiting)
    assert gates.vacate(asked, ADDRESS) == []


# -- delays --------------------------------------------------------------------------------------------

BY_ADDRESS = FrontierLimits(address_connections=0, address_delay_s=2.0)
BY_DOMAIN = FrontierLimits(address_connections=0, domain_delay_s=2.0)


@pytest.mark.parametrize("limits", [BY_ADDRESS, BY_DOMAIN], ids=["address", "domain"])
def test_a_gate_is_closed_until_its_request_is_sent_and_then_for_its_delay(limits: FrontierLimits) -> None:
    gates = Gates(limits)
    host = lone_host("a.test")
    assert gates.closed(host, 0.0) is None
    gates.occupy(host, ADDRESS)
    assert gates.closed(host, 1e9) is not None, "nobody knows when it will be sent"
    gates.record_arrival(host, ADDRESS, 10.0, is_first_report=True)
    assert gates.closed(host, 11.9) is not None
    assert gates.closed(host, 12.0) is None


def test_the_end_of_a_request_that_was_reported_as_sent_opens_no_gate_twice() -> None:
    gates = Gates(BY_ADDRESS)
    host = lone_host("a.test")
    gates.occupy(host, ADDRESS)
    gates.record_arrival(host, ADDRESS, 10.0, is_first_report=True)
    gates.occupy(host, ADDRESS)
    gates.record_arrival(host, ADDRESS, 10.5, is_first_report=False)
    assert gates.closed(host, 1e9) is not None, "the second request is not on the wire"
    gates.record_arrival(host, ADDRESS, 14.0, is_first_report=True)
    assert gates.closed(host, 15.9) is not None
    assert gates.closed(host, 16.0) is None


def test_an_earlier_arrival_does_not_bring_the_next_time_forward() -> None:
    gates = Gates(BY_ADDRESS)
    host = lone_host("a.test")
    gates.occupy(host, ADDRESS)
    gates.record_arrival(host, ADDRESS, 10.0, is_first_report=True)
    gates.record_arrival(host, ADDRESS, 9.0, is_first_report=False)
    assert gates.closed(host, 11.9) is not None


def test_a_gate_with_a_delay_wakes_one_host_per_delay() -> None:
    gates = Gates(BY_ADDRESS)
    asked = lone_host("asked.test")
    gates.occupy(asked, ADDRESS)
    gates.record_arrival(asked, ADDRESS, 0.0, is_first_report=True)
    waiting = [lone_host(f"h{n}.test") for n in range(3)]
    stand_in_line(gates, waiting)
    assert gates.vacate(asked, ADDRESS) == [], "the time wakes them, one by one"
    assert gates.next_time() == 2.0
    assert gates.open_due(1.9) == []
    # None of those that are woken asks for anything: the next one gets its turn all the same.
    assert [gates.open_due(float(second)) for second in (2, 3, 4, 6)] == [[waiting[0]], [], [waiting[1]], [waiting[2]]]


def test_a_gate_that_is_asked_meanwhile_is_looked_at_again_when_its_time_has_come() -> None:
    gates = Gates(BY_ADDRESS)
    asked, waiting = lone_host("asked.test"), lone_host("waiting.test")
    gates.occupy(asked, ADDRESS)
    gates.record_arrival(asked, ADDRESS, 0.0, is_first_report=True)
    stand_in_line(gates, [waiting])
    gates.record_arrival(asked, ADDRESS, 1.0, is_first_report=False)
    assert gates.open_due(2.0) == []
    assert gates.next_time() == 3.0
    assert gates.open_due(3.0) == [waiting]


def test_an_address_is_forgotten_when_its_time_is_over() -> None:
    gates = Gates(BY_ADDRESS)
    host = lone_host("a.test")
    gates.occupy(host, ADDRESS)
    gates.record_arrival(host, ADDRESS, 0.0, is_first_report=True)
    gates.vacate(host, ADDRESS)
    assert list(gates._addresses) == [ADDRESS], "its next time must not be lost"
    gates.open_due(2.0)
    assert not gates._addresses
    assert gates.next_time() is None


def test_the_time_of_a_domain_outlives_its_slot() -> None:
    gates = Gates(BY_DOMAIN)
    host = lone_host("a.test")
    gates.occupy(host, ADDRESS)
    gates.record_arrival(host, ADDRESS, 5.0, is_first_report=True)
    gates.vacate(host, ADDRESS)
    assert gates.domain_next_at("a.test") == 7.0
    gates.open_due(7.0)
    assert gates.domain_next_at("a.test") == 0.0, "it is forgotten once it is over"


def test_after_a_restart_every_address_and_domain_counts_as_asked() -> None:
    for limits in (BY_ADDRESS, BY_DOMAIN):
        gates = Gates(limits)
        gates.begun_at = 100.0
        host = lone_host("a.test")
        assert gates.closed(host, 101.9) is not None
        assert gates.next_time() == 102.0
        assert gates.closed(host, 102.0) is None


# -- all of it together --------------------------------------------------------------------------------


@dataclass(eq=False)
class Request:
    host: HostSlot
    address: str
    is_sent: bool = False

    @property
    def gate_names(self) -> tuple[str, str]:
        return self.host.domain.name, self.address


class GatesModel(RuleBasedStateMachine):
    """Hosts at shared addresses and domains. Judged by what servers see: requests at once, and arrivals."""

    @initialize(
        connections=st.tuples(st.integers(0, 3), st.integers(0, 3)),
        delays=st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 0.5, 3.0])),
        is_restart=st.booleans(),
        host_connections=st.integers(1, 3),
    )
    def begin(
        self, connections: tuple[int, int], delays: tuple[float, float], is_restart: bool, host_connections: int
    ) -> None:
        self.limits = FrontierLimits(
            domain_connections=connections[0],
            address_connections=connections[1],
            domain_delay_s=delays[0],
            address_delay_s=delays[1],
        )
        self.bench = Workbench(ordering(QueueOrder.BREADTH), self.limits)
        self.now = 100.0
        self.asked_at: defaultdict[str, float] = defaultdict(lambda: float("-inf"))  # by name of the gate
        if is_restart:
            self.bench.gates.begun_at = self.now
            self.asked_at = defaultdict(lambda: 100.0)
        domains = [DomainSlot("x.test"), DomainSlot("y.test")]
        self.hosts = [lone_host(f"h{n}", domains[n % 2], f"10.0.0.{n % 3}", host_connections) for n in range(7)]
        self.wanted: Counter[str] = Counter()  # requests that a host is still to make
        self.out: list[Request] = []
        for host in self.hosts:
            self.bench.enter(host)

    def reschedule(self, host: HostSlot) -> None:
        if host.in_flight >= host.connections:
            self.bench.move(host, HostState.BUSY)
        elif self.wanted[host.name]:
            self.bench.make_ready(host)
        else:
            self.bench.move(host, HostState.IDLE)

    @rule(number=st.integers(0, 6), count=st.integers(1, 4))
    def find_urls(self, number: int, count: int) -> None:
        host = self.hosts[number]
        self.wanted[host.name] += count
        if host.state is HostState.IDLE:
            self.reschedule(host)

    @rule(number=st.integers(0, 6))
    def lose_urls(self, number: int) -> None:
        """Leave a host with nothing to ask for, wherever it stands in line."""
        self.wanted[self.hosts[number].name] = 0

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(address=st.integers(0, 3), domain=st.integers(0, 3))
    def change_limits(self, address: int, domain: int) -> None:
        self.limits.address_connections, self.limits.domain_connections = address, domain

    @rule()
    def order(self) -> None:
        self.try_order()

    def try_order(self) -> bool:
        """Make the next order, if there is one; return whether there was."""
        for woken in self.bench.due(self.now):
            self.reschedule(woken)
        while (host := self.bench.pop_ready(self.now)) is not None:
            if self.wanted[host.name]:
                self.send_out(host)
                return True
            self.bench.move(host, HostState.IDLE)
        return False

    def send_out(self, host: HostSlot) -> None:
        request = Request(host, host.record.addresses[0])
        limits = (
            (self.limits.domain_connections, self.limits.domain_delay_s),
            (self.limits.address_connections, self.limits.address_delay_s),
        )
        for name, (connections, delay_s) in zip(request.gate_names, limits, strict=True):
            others = [other for other in self.out if name in other.gate_names]
            assert not connections or len(others) < connections, "too many requests at once"
            if delay_s:
                assert all(other.is_sent for other in others), "one before may not be on the wire yet"
                assert self.now >= self.asked_at[name] + delay_s, "too close to the one before"
        self.wanted[host.name] -= 1
        self.out.append(request)
        self.bench.occupy(host, request.address)
        self.reschedule(host)

    def hold(self, request: Request, asked_at: float) -> None:
        is_first_report, request.is_sent = not request.is_sent, True
        self.bench.gates.record_arrival(request.host, request.address, asked_at, is_first_report=is_first_report)
        for name in request.gate_names:
            self.asked_at[name] = max(self.asked_at[name], asked_at)

    @precondition(lambda self: any(not request.is_sent for request in self.out))
    @rule(data=st.data())
    def report_sent(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from([request for request in self.out if not request.is_sent]))
        self.hold(request, self.now + 0.1)
        self.reschedule(request.host)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.end_request(data.draw(st.sampled_from(self.out)))

    def end_request(self, request: Request) -> None:
        self.out.remove(request)
        self.hold(request, self.now)
        freed = self.bench.vacate(request.host, request.address)
        self.reschedule(request.host)
        for host in freed:
            self.reschedule(host)

    @invariant()
    def whoever_is_blocked_stands_in_line(self) -> None:
        for host in self.hosts:
            assert host.state is not HostState.BLOCKED or self.bench.gates.lines_of(host)

    @invariant()
    def a_gate_that_is_timed_has_one_entry(self) -> None:
        timed = [gate for _, _, gate in self.bench.gates._times]
        assert all(gate.is_timed for gate in timed)
        assert len({id(gate) for gate in timed}) == len(timed)

    def teardown(self) -> None:
        """Nobody waits for ever: as requests end and time passes, every host makes all its requests."""
        for _ in range(1000):
            while self.try_order():
                pass
            if self.out:
                self.end_request(self.out[0])
                continue
            due_at = self.bench.next_due()
            if due_at is None:
                break
            self.now = max(self.now, due_at)
        assert not +self.wanted
        assert {host.state for host in self.hosts} == {HostState.IDLE}
        assert not self.bench.gates._addresses
        assert not self.bench.gates._domain_times


GatesModel.TestCase.settings = settings(max_examples=amount(37, 150), stateful_step_count=50)
TestGatesModel = GatesModel.TestCase
