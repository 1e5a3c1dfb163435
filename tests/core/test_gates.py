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
from gossamer.core.politeness.gates import Gates, is_slow, record_held
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
    gates.crowding.add(ADDRESS)
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


# -- shares --------------------------------------------------------------------------------------------


def shared_gates(limits: FrontierLimits, *domains: str) -> Gates:
    """Return gates at whose address, and in whose pool, several domains are at work."""
    gates = Gates(limits)
    gates.domains_at_work = len(domains)
    for domain in domains:
        gates.crowds.record_tenant(ADDRESS, domain)
    return gates


def occupied(gates: Gates, host: HostSlot, wanted: int, address: str = ADDRESS) -> int:
    """Send as many requests of a host as are wanted and allowed; return how many."""
    for count in range(wanted):
        if gates.closed(host, 0.0) is not None:
            return count
        gates.occupy(host, address, is_slow=is_slow(host))
    return wanted


def test_a_domain_that_shares_an_address_leaves_a_part_of_it_free() -> None:
    gates = shared_gates(FrontierLimits(address_connections=20), "greedy.test", "late.test")
    assert occupied(gates, lone_host("greedy.test"), 100) == 15
    assert occupied(gates, lone_host("late.test"), 100) == 4
    assert occupied(gates, lone_host("third.test"), 1) == 1


def test_a_domain_that_is_alone_at_its_address_gets_all_of_it() -> None:
    gates = shared_gates(FrontierLimits(address_connections=20), "only.test")
    assert occupied(gates, lone_host("only.test"), 100) == 20


def test_a_domain_leaves_a_part_of_all_connections_whatever_its_addresses_are() -> None:
    gates = shared_gates(FrontierLimits(connections=40), "greedy.test", "other.test")
    domain = DomainSlot("greedy.test")
    hosts = [lone_host(f"h{n}.greedy.test", domain, f"10.1.0.{n}") for n in range(100)]
    assert sum(occupied(gates, host, 1, host.record.addresses[0]) for host in hosts) == 30
    assert occupied(gates, lone_host("other.test"), 1) == 1


def test_names_that_are_looked_up_count_for_their_domain() -> None:
    gates = shared_gates(FrontierLimits(connections=40), "greedy.test", "other.test")
    domain = DomainSlot("greedy.test")
    hosts = [lone_host(f"h{n}.greedy.test", domain, "") for n in range(31)]
    for host in hosts:
        host.record.addresses = ()
    for host in hosts[:30]:
        assert gates.closed(host, 0.0) is None
        gates.begin_lookup(host)
    stand_in_line(gates, hosts[30:])
    assert gates.closed(lone_host("other.test"), 0.0) is None
    assert gates.end_lookup(hosts[0].name) == hosts[30:]


def test_slow_hosts_of_all_domains_together_leave_a_part_free_for_the_others() -> None:
    names = [f"slow{n}.test" for n in range(30)]
    gates = shared_gates(FrontierLimits(address_connections=20), *names, "quick.test")
    slow = [lone_host(name) for name in names]
    for host in slow:
        record_held(host, 20.0)
    assert sum(occupied(gates, host, 1) for host in slow) == 15
    assert occupied(gates, lone_host("quick.test"), 1) == 1


def test_slow_hosts_yield_but_not_everything() -> None:
    gates = shared_gates(FrontierLimits(address_connections=8), *(f"h{n}.test" for n in range(12)))
    quick = [lone_host(f"h{n}.test") for n in range(8)]
    slow = lone_host("slow.test")
    record_held(slow, 20.0)
    for host in quick:
        gates.occupy(host, ADDRESS)
    waiting = lone_host("h9.test")
    for host in (waiting, slow):
        gate = gates.closed(host, 0.0)
        assert gate is not None
        gates.stand_in_line(host, gate)
    assert gates.vacate(quick[0], ADDRESS) == [slow], "no slow host has anything"
    gates.occupy(slow, ADDRESS, is_slow=True)
    closed = gates.closed(slow, 0.0)
    assert closed is not None
    gates.stand_in_line(slow, closed)
    assert gates.vacate(quick[1], ADDRESS) == [waiting]


def test_a_host_that_has_not_answered_is_as_slow_as_its_domain() -> None:
    domain = DomainSlot("a.test")
    one, other = lone_host("one.a.test", domain), lone_host("other.a.test", domain)
    record_held(one, 20.0)
    assert is_slow(one)
    assert is_slow(other)
    record_held(other, 0.1)
    assert not is_slow(other)
    assert is_slow(one)


def test_what_a_domain_has_beyond_its_share_is_lent() -> None:
    gates = shared_gates(FrontierLimits(address_connections=20), "only.test")
    host = lone_host("only.test")
    lent = []
    for _ in range(20):
        lent.append(gates.is_lent(host, ADDRESS))
        gates.occupy(host, ADDRESS)
    assert lent == [False] * 15 + [True] * 5
    gates.vacate(host, ADDRESS)
    record_held(host, 20.0)
    assert not gates.is_lent(host, ADDRESS), "it is known to need more time"


def test_domains_that_wait_take_turns_whatever_number_of_hosts_they_have() -> None:
    gates = shared_gates(FrontierLimits(address_connections=2), "many.test", "few.test", "asked.test")
    asked = [lone_host("asked.test"), lone_host("asked2.test")]
    for host in asked:
        gates.occupy(host, ADDRESS)
    many = DomainSlot("many.test")
    crowd = [lone_host(f"h{n}.many.test", many) for n in range(5)]
    late = lone_host("few.test")
    stand_in_line(gates, [*crowd, late])
    woken = []
    for host in asked:
        woken += gates.vacate(host, ADDRESS)[:1]
    assert woken == [crowd[0], late]


def test_addresses_of_one_ipv6_network_are_one_gate_and_those_that_stand_for_ipv4_are_that() -> None:
    gates = Gates(FrontierLimits(address_connections=1))
    gates.occupy(lone_host("a.test", address="2001:db8::1"), "2001:db8::1")
    assert gates.closed(lone_host("b.test", address="2001:db8::2"), 0.0) is not None
    assert gates.closed(lone_host("c.test", address="2001:db8:0:1::2"), 0.0) is None
    gates.occupy(lone_host("d.test"), ADDRESS)
    for address in (f"::ffff:{ADDRESS}", f"64:ff9b::{ADDRESS}", "2002:a00:1::"):
        assert gates.closed(lone_host("e.test", address=address), 0.0) is not None


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
    is_slow: bool = False

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
        pool=st.tuples(st.sampled_from([1, 3, 5, 100]), st.sampled_from([0.5, 0.75, 1.0])),
    )
    def begin(
        self,
        connections: tuple[int, int],
        delays: tuple[float, float],
        is_restart: bool,
        host_connections: int,
        pool: tuple[int, float],
    ) -> None:
        self.limits = FrontierLimits(
            connections=pool[0],
            domain_share=pool[1],
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
        self.bench.gates.domains_at_work = len(domains)
        for host in self.hosts:
            self.bench.gates.crowds.record_tenant(host.record.addresses[0], host.domain.name)
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
    def task(self) -> None:
        self.try_task()

    def try_task(self) -> bool:
        """Make the next task, if there is one; return whether there was."""
        for woken in self.bench.end_waits(self.now):
            self.reschedule(woken)
        while len(self.out) < self.limits.connections and (host := self.bench.pop_ready(self.now)) is not None:
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
        self.check_share(request, self.out, self.limits.connections)
        at_address = [other for other in self.out if other.address == request.address]
        self.check_share(request, at_address, self.limits.address_connections)
        self.wanted[host.name] -= 1
        request.is_slow = is_slow(host)
        self.out.append(request)
        self.bench.occupy(host, request.address, is_slow=request.is_slow)
        self.reschedule(host)

    def check_share(self, request: Request, others: list[Request], capacity: int) -> None:
        """Neither a domain nor the slow hosts together have more of a gate than a multiple of what is free."""
        if not capacity:
            return
        most = self.limits.share_of_free * (capacity - len(others))
        assert sum(other.host.domain is request.host.domain for other in others) < most
        assert not is_slow(request.host) or sum(other.is_slow for other in others) < most

    @rule(number=st.integers(0, 6), seconds=st.sampled_from([0.1, 20.0]))
    def become_slow_or_quick(self, number: int, seconds: float) -> None:
        self.hosts[number].held_s = seconds

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
        freed = self.bench.vacate(request.host, request.address, is_slow=request.is_slow)
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
            while self.try_task():
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


def test_what_a_host_in_line_waits_for_is_named() -> None:
    gates = shared_gates(FrontierLimits(address_connections=4, connections=8), "greedy.test", "other.test")
    greedy = lone_host("greedy.test")
    assert occupied(gates, greedy, 9) == 3
    stand_in_line(gates, [greedy])
    assert gates.described_wait(greedy) == (
        "its address 10.0.0.1: 3 requests are in flight there, and its domain greedy.test may have 75% of 4"
    )
    elsewhere = [lone_host(f"h{n}.greedy.test", greedy.domain, f"10.2.0.{n}") for n in range(5)]
    assert sum(occupied(gates, host, 1, host.record.addresses[0]) for host in elsewhere) == 3
    stand_in_line(gates, elsewhere[4:])
    assert gates.described_wait(elsewhere[4]) == (
        "connections: its domain greedy.test may have 75% of all, while others have work"
    )
    assert gates.described_wait(lone_host("free.test", address="10.3.0.1")) == ""
