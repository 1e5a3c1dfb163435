"""Limits that change while a crawl runs, and what the frontier assumes of a request on its way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.core.frontier.effects import KillQueue
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.frontier.workbench import OriginRules
from gossamer.core.politeness.arrival import MAX_TRANSIT_S
from gossamer.core.politeness.pace import Pace
from gossamer.core.robots.rules import ALLOW_ALL
from gossamer.core.url.forms import link_to
from gossamer.model.records import DomainRecord, FetchTask, HostRecord, Outcome, QueuedUrl, Result
from tests.core.slots import FOREVER, NOW


def frontier_of(
    hosts: int, urls_per_host: int, *, limits: FrontierLimits, delay_s: float = 0.0, connections: int = 1
) -> Frontier:
    """Return a frontier of hosts at one address, all in one domain, that may be asked at once."""
    frontier = Frontier(limits, Pace(delay_s, connections), ordering(QueueOrder.BREADTH), "gossamer")
    for number in range(hosts):
        name = f"h{number}.a.test"
        record = HostRecord(name, "a.test", addresses=("10.0.0.1",), addresses_until=FOREVER)
        robots = {f"http://{name}": OriginRules(rules=ALLOW_ALL, expires_at=FOREVER)}
        frontier.load_host(record, DomainRecord("a.test"), robots, NOW)
        links = [link_to(f"http://{name}/{page}") for page in range(urls_per_host)]
        frontier.add([QueuedUrl(link.url, link.id, name, 0, seq, 0) for seq, link in enumerate(links)], NOW)
    return frontier


def tasks(frontier: Frontier, now: float = NOW) -> list[FetchTask]:
    """Return all tasks that may be made now."""
    found = []
    while (task := frontier.next_task(now)) is not None:
        found.append(task)
    return found


def end(frontier: Frontier, task: FetchTask, outcome: Outcome = Outcome.OK, now: float = NOW) -> None:
    frontier.complete(Result(task.id, outcome, sent_at=now, finished_at=now), now)


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["address_delay_s", "domain_delay_s", "no_such_limit", "has_budgets"])
def test_delays_and_unknown_names_cannot_be_changed(name: str) -> None:
    frontier = frontier_of(1, 1, limits=FrontierLimits())
    with pytest.raises(ValueError, match=name):
        frontier.change_limits(NOW, **{name: 1.0})


def test_more_connections_are_used_at_once() -> None:
    frontier = frontier_of(10, 1, limits=FrontierLimits(connections=2, address_connections=0))
    assert len(tasks(frontier)) == 2
    frontier.change_limits(NOW, connections=7)
    assert frontier.limits.connections == 7
    assert len(tasks(frontier)) == 5


def test_fewer_connections_stop_no_request_but_allow_no_other() -> None:
    frontier = frontier_of(10, 1, limits=FrontierLimits(connections=5, address_connections=0))
    out = tasks(frontier)
    frontier.change_limits(NOW, connections=2)
    for task in out[:3]:
        end(frontier, task)
        assert tasks(frontier) == []
    end(frontier, out[3])
    assert len(tasks(frontier)) == 1


def test_the_page_limit_can_be_raised_and_lifted() -> None:
    frontier = frontier_of(10, 1, limits=FrontierLimits(max_pages=3, address_connections=0))
    assert len(tasks(frontier)) == 3
    frontier.change_limits(NOW, max_pages=5)
    assert len(tasks(frontier)) == 2
    frontier.change_limits(NOW, max_pages=None)
    assert len(tasks(frontier)) == 5


@pytest.mark.parametrize("name", ["max_pages_per_host", "max_pages_per_domain"])
@pytest.mark.parametrize("budget", [2, None])
def test_hosts_whose_budget_was_used_up_go_on_with_a_larger_one(name: str, budget: int | None) -> None:
    frontier = frontier_of(1, 2, limits=replace(FrontierLimits(), **{name: 1}))
    (task,) = tasks(frontier)
    end(frontier, task)
    assert tasks(frontier) == []
    assert frontier.why_over(NOW, 0.0) == "budgets"
    frontier.change_limits(NOW, **{name: budget})
    (task,) = tasks(frontier)
    end(frontier, task)
    assert frontier.why_over(NOW, 0.0) == "exhausted"


def test_a_smaller_budget_holds_for_hosts_that_are_ready_already() -> None:
    frontier = frontier_of(3, 2, limits=FrontierLimits(address_connections=0))
    frontier.change_limits(NOW, max_pages_per_domain=1)
    (task,) = tasks(frontier)
    end(frontier, task)
    assert tasks(frontier) == []
    assert frontier.why_over(NOW, 0.0) == "budgets"


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 0)])
@pytest.mark.parametrize("name", ["address_connections", "domain_connections"])
def test_no_host_waits_for_ever_if_the_limit_it_waits_for_changes(name: str, before: int, after: int) -> None:
    frontier = frontier_of(12, 2, limits=replace(FrontierLimits(address_connections=0), **{name: before}))
    out = tasks(frontier)
    assert len(out) == before
    frontier.change_limits(NOW, **{name: after})
    ended = 0
    while out:
        end(frontier, out.pop())
        ended += 1
        out += tasks(frontier)
        assert not after or len(out) <= max(after, before - ended)
    assert ended == 24
    assert frontier.why_over(NOW, 0.0) == "exhausted"


# -- a request on its way ------------------------------------------------------------------------------


def test_the_longest_transit_is_assumed_until_the_answer_says_more() -> None:
    frontier = frontier_of(1, 3, limits=FrontierLimits(), delay_s=1.0, connections=2)
    (task,) = tasks(frontier)
    record = frontier.record_of("h0.a.test")
    assert record is not None
    frontier.mark_sent(task.id, NOW + 0.5, NOW + 0.5)
    assert record.next_at == NOW + 0.5 + MAX_TRANSIT_S + 1.0
    result = Result(task.id, Outcome.OK, sent_at=NOW + 0.5, first_byte_at=NOW + 0.52, finished_at=NOW + 0.53)
    frontier.complete(result, NOW + 0.6)
    assert record.next_at == NOW + 0.53 + 1.0


def test_what_was_assumed_stands_if_another_request_was_sent_since() -> None:
    frontier = frontier_of(1, 3, limits=FrontierLimits(), delay_s=1.0, connections=2)
    (first,) = tasks(frontier)
    record = frontier.record_of("h0.a.test")
    assert record is not None
    frontier.mark_sent(first.id, NOW, NOW)
    (second,) = tasks(frontier, NOW + 2)
    frontier.mark_sent(second.id, NOW + 2, NOW + 2)
    frontier.complete(Result(first.id, Outcome.OK, sent_at=NOW, finished_at=NOW + 2.05), NOW + 2.05)
    assert record.next_at == NOW + 2 + MAX_TRANSIT_S + 1.0


def test_a_name_that_does_not_exist_leaves_nothing_of_a_queue_that_was_about_to_be_read() -> None:
    frontier = frontier_of(0, 0, limits=FrontierLimits())
    frontier.load_host(HostRecord("a.test", "a.test", queued=1), DomainRecord("a.test"), {}, NOW)
    frontier.fail_address("a.test", Outcome.DNS_NOT_FOUND, "no such name", NOW)
    (command,) = frontier.take_commands(NOW)
    assert isinstance(command, KillQueue)
