from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gossamer.core.frontier import workbench
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.frontier.workbench import DomainSlot, HostSlot, HostState, Workbench
from gossamer.model.records import HostRecord, QueuedUrl
from tests.amount import amount


def _host(name: str, domain: DomainSlot | None = None, address: str = "10.0.0.1", lane: int = 0) -> HostSlot:
    slot = domain or DomainSlot(name)
    record = HostRecord(name, slot.name, addresses=(address,))
    host = HostSlot(record, name.encode(), slot, lane=lane)
    slot.hosts.append(host)
    return host


def _url(host: HostSlot, priority: int, seq: int, not_before: float = 0.0) -> QueuedUrl:
    url = f"http://{host.name}/{seq}"
    return QueuedUrl(url, b"%d" % seq, host.name, priority, seq, depth=priority, not_before=not_before)


def _bench(address_connections: int = 0, domain_connections: int = 0) -> Workbench:
    limits = FrontierLimits(address_connections=address_connections, domain_connections=domain_connections)
    return Workbench(ordering(QueueOrder.BREADTH), limits)


def test_a_host_whose_standing_has_become_worse_goes_back_in_line() -> None:
    bench = _bench()
    shared = DomainSlot("a.test")
    one, two, other = _host("one.a.test", shared), _host("two.a.test", shared), _host("b.test")
    for seq, host in enumerate((one, two, other)):
        bench.enter(host)
        host.push(_url(host, 0, seq))
        bench.make_ready(host)
    assert bench.pop_ready() is one
    bench.move(one, HostState.BUSY)
    shared.pages += 1
    assert bench.pop_ready() is other
    bench.move(other, HostState.BUSY)
    assert bench.pop_ready() is two


def test_a_stale_entry_behind_a_worse_one_is_never_taken() -> None:
    bench = _bench()
    shared = DomainSlot("a.test")
    worse, gone, fine = _host("one.a.test", shared), _host("b.test"), _host("c.test")
    for seq, host in enumerate((worse, gone, fine)):
        bench.enter(host)
        host.push(_url(host, 0, seq))
        bench.make_ready(host)
    shared.pages += 5
    bench.move(gone, HostState.BUSY)
    assert bench.pop_ready() is fine
    bench.move(fine, HostState.BUSY)
    assert bench.pop_ready() is worse


def test_hosts_at_one_address_wait_for_each_other() -> None:
    bench = _bench(address_connections=1)
    hosts = [_host(f"h{n}.test") for n in range(3)]
    for seq, host in enumerate(hosts):
        bench.enter(host)
        host.push(_url(host, 0, seq))
        bench.make_ready(host)
    first = bench.pop_ready()
    assert first is hosts[0]
    bench.occupy(first, "10.0.0.1")
    bench.move(first, HostState.BUSY)
    assert bench.pop_ready() is None
    assert bench.count[HostState.BLOCKED] == 2
    freed = bench.vacate(first, "10.0.0.1")
    assert freed == hosts[1:], "nothing is left in flight that could free the second later"


def test_urls_are_recalled_when_their_time_has_come() -> None:
    host = _host("a.test")
    host.defer(_url(host, 0, 1, not_before=5.0))
    host.defer(_url(host, 0, 2, not_before=3.0))
    host.recall(4.0)
    assert [entry[1] for entry in host.head] == [2]
    assert host.out == {b"1"}


def test_what_is_recalled_beyond_the_horizon_stays_in_the_ledger() -> None:
    host = _host("a.test")
    host.defer(_url(host, 9, 1, not_before=5.0))
    for seq in range(2, 12):
        host.push(_url(host, 0, seq))
    host.trim(4)
    assert host.horizon == (0, 5, b"5")
    host.recall(6.0)
    assert [entry[1] for entry in sorted(host.head)] == [2, 3, 4, 5]
    assert host.out == set()


class WorkbenchModel(RuleBasedStateMachine):
    """Hosts change their state; the bench must find each by its state, and keep the limits."""

    @initialize(
        order=st.sampled_from([QueueOrder.BREADTH, QueueOrder.SCORE, QueueOrder.TIERS]),
        by_address=st.integers(0, 2),
        by_domain=st.integers(0, 2),
    )
    def begin(self, order: QueueOrder, by_address: int, by_domain: int) -> None:
        self.by_address, self.by_domain = by_address, by_domain
        self.ordering = ordering(order)
        limits = FrontierLimits(address_connections=by_address, domain_connections=by_domain)
        self.bench = Workbench(self.ordering, limits)
        domains = [DomainSlot("x.test"), DomainSlot("y.test")]
        self.hosts = [
            _host(f"h{n}", domains[n % 2], f"10.0.0.{n % 3}", n % len(self.ordering.lane_weights)) for n in range(7)
        ]
        self.seq = 0
        self.now = 0.0
        self.due: dict[str, float] = {}
        self.flying: list[HostSlot] = []
        for host in self.hosts:
            self.bench.enter(host)

    def free(self) -> list[HostSlot]:
        return [host for host in self.hosts if host.state in (HostState.IDLE, HostState.WAITING, HostState.READY)]

    @rule(number=st.integers(0, 6), priority=st.integers(0, 3))
    def make_ready(self, number: int, priority: int) -> None:
        host = self.hosts[number]
        if host in self.free():
            self.seq += 1
            host.push(_url(host, priority, self.seq))
            self.due.pop(host.name, None)
            self.bench.make_ready(host)

    @rule(number=st.integers(0, 6), seconds=st.integers(1, 5))
    def wait(self, number: int, seconds: int) -> None:
        host = self.hosts[number]
        if host in self.free():
            self.due[host.name] = self.now + seconds
            self.bench.wait(host, self.now + seconds)

    @rule(number=st.integers(0, 6))
    def idle(self, number: int) -> None:
        host = self.hosts[number]
        if host in self.free():
            self.due.pop(host.name, None)
            self.bench.move(host, HostState.IDLE)

    @rule(seconds=st.integers(0, 4))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        over = self.bench.end_waits(self.now)
        assert {host.name for host in over} == {name for name, until in self.due.items() if until <= self.now}
        assert [self.due[host.name] for host in over] == sorted(self.due[host.name] for host in over)
        for host in over:
            del self.due[host.name]
            self.bench.make_ready(host)

    @rule()
    def take(self) -> None:
        ready = [host for host in self.hosts if host.state is HostState.READY]
        open_hosts = [host for host in ready if self.has_room(host)]
        host = self.bench.pop_ready()
        assert (host is None) == (not open_hosts)
        if host is None:
            return
        assert host in open_hosts
        if len(self.ordering.lane_weights) == 1:
            standings = {other.name: self.bench._standing(other) for other in open_hosts}
            assert standings[host.name] == min(standings.values()), "it was not its turn"
        self.bench.occupy(host, host.record.addresses[0])
        self.bench.move(host, HostState.BUSY)
        self.flying.append(host)

    def has_room(self, host: HostSlot) -> bool:
        at_address = sum(other.record.addresses == host.record.addresses for other in self.flying)
        at_domain = sum(other.domain is host.domain for other in self.flying)
        return (not self.by_address or at_address < self.by_address) and (
            not self.by_domain or at_domain < self.by_domain
        )

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), is_page=st.booleans())
    def end(self, data: st.DataObject, is_page: bool) -> None:
        host = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        freed = self.bench.vacate(host, host.record.addresses[0])
        host.domain.pages += is_page
        host.head.clear()
        self.bench.move(host, HostState.IDLE)
        for other in freed:
            assert other.state is HostState.BLOCKED
            self.bench.make_ready(other)

    @invariant()
    def every_host_is_counted_where_it_is(self) -> None:
        assert Counter(host.state for host in self.hosts) == +Counter(dict(enumerate(self.bench.count)))
        assert self.bench.next_due() == min(self.due.values(), default=None)

    @invariant()
    def nobody_is_held_up_by_nothing(self) -> None:
        if not self.flying:
            assert not self.bench.count[HostState.BLOCKED]


WorkbenchModel.TestCase.settings = settings(max_examples=amount(15, 60), stateful_step_count=40)
TestWorkbenchModel = WorkbenchModel.TestCase


def test_the_table_of_states_names_each_state_once() -> None:
    table = [line.split("|")[1].strip() for line in (workbench.__doc__ or "").splitlines() if line.startswith("| ")]
    assert [name for name in table if name and name != "state"] == [
        "IDLE",
        "WAITING",
        "READY",
        "BUSY",
        "BLOCKED",
        "BUDGET_EXHAUSTED",
        "OPTED_OUT",
    ]
    assert set(table) - {"", "state"} == set(HostState.__members__)
