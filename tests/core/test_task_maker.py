from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Resolve
from gossamer.core.frontier.host_table import HEAD_URLS, HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.outstanding import Outstanding
from gossamer.core.frontier.task_maker import MAX_SKIPPED, TaskMaker
from gossamer.core.frontier.visits import Visits
from gossamer.core.frontier.workbench import BEFORE_ALL, HostSlot, HostState, OriginRules, RobotsRequest
from gossamer.core.robots.cache import RobotsCache
from gossamer.core.robots.rules import ALLOW_ALL, parse_robots
from gossamer.model.records import FetchKind, FetchTask
from tests.core.slots import FOREVER, NOW, enter, queued_url, table_with

ORIGIN = "http://a.test"


@dataclass
class Scene:
    """A host whose turn it is, and what makes its tasks."""

    limits: FrontierLimits
    table: HostTable
    outstanding: Outstanding
    counts: Counts
    maker: TaskMaker
    host: HostSlot

    def task(self, now: float = NOW) -> FetchTask | None:
        return self.maker.task_for(self.host, now)


def scene(*paths: str, limits: FrontierLimits | None = None, connections: int = 1, delay_s: float = 0.0) -> Scene:
    limits = limits or FrontierLimits()
    table, outstanding, counts = table_with(limits), Outstanding(), Counts()
    host = enter(table, connections=connections)
    host.floor_s = delay_s
    for seq, path in enumerate(paths):
        host.push(queued_url(host, path, seq=seq))
        counts.enqueue(host.record)
    table.reschedule(host, NOW)
    cache, visits = RobotsCache(limits, "gossamer"), Visits(table, limits, counts)
    maker = TaskMaker(table, outstanding, limits, counts, cache=cache, visits=visits)
    return Scene(limits, table, outstanding, counts, maker, host)


# -- what comes first ----------------------------------------------------------------------------------


def test_the_first_url_of_the_queue_becomes_a_task() -> None:
    bench = scene("1", "2", connections=2)
    first, second = bench.task(), bench.task()
    assert first is not None
    assert second is not None
    assert [task.url for task in (first, second)] == [f"{ORIGIN}/1", f"{ORIGIN}/2"]
    assert (first.id, second.id, first.kind, first.addresses) == (1, 2, FetchKind.PAGE, ("10.0.0.1",))
    assert (bench.counts.pages_in_flight, bench.host.in_flight, bench.outstanding.count) == (2, 2, 2)
    assert bench.host.out == {first.url_id, second.url_id}
    assert bench.host.state is HostState.BUSY


def test_an_address_that_has_expired_is_looked_up_first() -> None:
    bench = scene("1")
    bench.host.record.addresses_until = NOW
    assert bench.task() is None
    assert bench.table.commands == [Resolve("a.test")]
    assert bench.host.is_resolving
    assert bench.host.state is HostState.BUSY
    assert bench.outstanding.count == 1, "a look-up takes a connection"


def test_a_name_is_not_looked_up_while_a_request_is_out() -> None:
    bench = scene("1", "2", connections=2)
    assert bench.task() is not None
    bench.host.record.addresses_until = NOW
    assert bench.task() is None
    assert bench.table.commands == []
    assert not bench.host.is_resolving
    assert bench.host.state is HostState.BUSY


def test_robots_is_asked_for_before_the_first_page_of_its_origin() -> None:
    bench = scene("1")
    bench.host.origins.clear()
    task = bench.task()
    assert task is not None
    assert (task.kind, task.url, task.needs_links) == (FetchKind.ROBOTS, f"{ORIGIN}/robots.txt", False)
    assert bench.host.origins[ORIGIN].is_pending
    assert bench.counts.pages_in_flight == 0
    assert len(bench.host.head) == 1, "the page is still queued"


def test_robots_that_has_expired_is_asked_for_on_condition() -> None:
    bench = scene("1")
    bench.host.origins[ORIGIN] = OriginRules(rules=ALLOW_ALL, expires_at=NOW, etag='"e"', last_modified="yesterday")
    task = bench.task()
    assert task is not None
    assert (task.kind, task.etag, task.last_modified) == (FetchKind.ROBOTS, '"e"', "yesterday")
    assert bench.host.origins[ORIGIN].rules is ALLOW_ALL, "they are known until the answer comes"


def test_a_request_for_robots_that_waits_at_a_host_goes_before_its_pages() -> None:
    bench = scene("1")
    bench.host.robots_requests.append(RobotsRequest("http://b.test", f"{ORIGIN}/robots.txt", 2))
    task = bench.task()
    assert task is not None
    assert (task.kind, task.hops) == (FetchKind.ROBOTS, 2)
    assert not bench.host.robots_requests


def test_a_page_waits_for_robots_that_were_asked_for() -> None:
    bench = scene("1")
    bench.host.origins[ORIGIN] = OriginRules(is_pending=True, expires_at=FOREVER)
    assert bench.task() is None
    assert bench.host.state is HostState.BUSY
    assert len(bench.host.head) == 1


# -- what is not ordered -------------------------------------------------------------------------------


def test_a_url_that_robots_forbids_leaves_the_queue_with_the_line_that_forbids_it() -> None:
    bench = scene("private/1", "public")
    rules = parse_robots(b"User-agent: *\nDisallow: /private/\n", "gossamer")
    bench.host.origins[ORIGIN] = OriginRules(rules=rules, expires_at=FOREVER)
    assert bench.task() is None
    (denied,) = bench.maker.take_denied()
    assert (denied.url.url, denied.decision.line) == (f"{ORIGIN}/private/1", "Disallow: /private/")
    assert bench.maker.take_denied() == [], "each is reported once"
    assert bench.host.record.queued == bench.counts.queued == 1
    assert bench.host.state is HostState.READY
    task = bench.task()
    assert task is not None
    assert task.url == f"{ORIGIN}/public"


def test_a_url_whose_robots_cannot_be_reached_is_deferred_and_stays_queued() -> None:
    bench = scene("1")
    bench.host.origins[ORIGIN] = OriginRules(is_unreachable=True, expires_at=NOW + 60)
    assert bench.task() is None
    assert bench.host.state is HostState.WAITING
    assert bench.table.bench.next_due() == NOW + 60
    assert [entry[0] for entry in bench.host.deferred] == [NOW + 60]
    assert bench.counts.queued == 1


def test_many_urls_of_a_banned_origin_are_skipped_and_read_again_after_the_ban() -> None:
    bench = scene(*(str(number) for number in range(2 * HEAD_URLS + 7)))
    bench.host.origins[ORIGIN] = OriginRules(is_unreachable=True, expires_at=NOW + 60)
    for _ in range(2 * HEAD_URLS + 6):
        assert bench.task() is None
    assert bench.host.record.parked_until == 0.0
    assert bench.task() is None
    assert (len(bench.host.deferred), bench.host.skipped) == (2 * HEAD_URLS, 7)
    assert (bench.host.record.parked_until, bench.host.horizon) == (NOW + 60, None), "nothing else is queued"
    bench.host.recall(NOW + 60)
    assert (bench.host.skipped_until, bench.host.horizon) == (0.0, BEFORE_ALL)


def test_a_host_is_parked_if_too_many_of_its_urls_are_banned() -> None:
    bench = scene(*(str(number) for number in range(2 * HEAD_URLS + MAX_SKIPPED + 1)))
    bench.host.origins[ORIGIN] = OriginRules(is_unreachable=True, expires_at=NOW + 60)
    for _ in range(2 * HEAD_URLS + MAX_SKIPPED):
        assert bench.task() is None
    assert bench.host.record.parked_until == 0.0
    assert bench.task() is None
    assert bench.host.record.parked_until == NOW + 60


def test_a_budget_that_another_host_of_the_domain_used_up_is_respected() -> None:
    bench = scene("1", limits=FrontierLimits(max_pages_per_domain=1))
    bench.host.domain.pages_in_flight = 1
    assert bench.task() is None
    assert bench.host.state is HostState.BUDGET_EXHAUSTED
    assert len(bench.host.head) == 1


def test_a_host_whose_urls_are_gone_is_rescheduled() -> None:
    bench = scene("1")
    bench.host.head.clear()
    assert bench.task() is None
    assert bench.host.state is HostState.IDLE


def test_a_retry_whose_time_has_come_is_issued() -> None:
    bench = scene()
    bench.host.defer(replace(queued_url(bench.host, "1", not_before=NOW + 1), attempt=2))
    task = bench.task(NOW + 1)
    assert task is not None
    assert (task.url, task.attempt) == (f"{ORIGIN}/1", 2)


# -- pace and sending ----------------------------------------------------------------------------------


def test_a_host_is_left_alone_for_its_delay_from_the_task_on() -> None:
    bench = scene("1", "2", delay_s=3.0)
    task = bench.task()
    assert task is not None
    assert bench.host.record.next_at == NOW + 3.0
    assert bench.host.unsent == task.id


def test_a_task_brings_no_later_promise_forward() -> None:
    bench = scene("1", delay_s=3.0)
    bench.host.record.next_at = NOW + 50
    assert bench.task() is not None
    assert bench.host.record.next_at == NOW + 50


def test_without_a_delay_nobody_waits_for_a_task_to_be_sent() -> None:
    bench = scene("1", "2", connections=2)
    task = bench.task()
    assert task is not None
    assert not task.report_sent
    assert bench.host.unsent == 0
    assert bench.host.state is HostState.READY


def test_a_task_is_to_be_reported_as_sent_if_another_waits_for_that() -> None:
    alone = scene("1", delay_s=3.0).task()
    several = scene("1", delay_s=3.0, connections=2).task()
    at_a_gate = scene("1", limits=FrontierLimits(address_delay_s=1.0)).task()
    assert [task.report_sent for task in (alone, several, at_a_gate) if task] == [False, True, True]


def test_links_are_of_no_use_at_the_greatest_depth() -> None:
    bench = scene(limits=FrontierLimits(max_depth=2))
    tasks = [
        bench.maker.task_page(bench.host, replace(queued_url(bench.host, str(depth)), depth=depth), NOW)
        for depth in (1, 2)
    ]
    assert [task.needs_links for task in tasks] == [True, False]


def test_what_robots_txt_forbids_is_fetched_at_an_own_host_and_reported() -> None:
    forbidding = OriginRules(rules=parse_robots(b"User-agent: *\nDisallow: /", "gossamer"), expires_at=FOREVER)
    stranger, own = scene("1"), scene("1", limits=FrontierLimits(own_hosts=frozenset({"a.test"})))
    stranger.host.origins[ORIGIN] = own.host.origins[ORIGIN] = forbidding
    assert stranger.task() is None
    task = own.task()
    assert task is not None
    assert task.url == f"{ORIGIN}/1"
    assert [denied.is_overridden for denied in stranger.maker.take_denied()] == [False]
    assert [denied.is_overridden for denied in own.maker.take_denied()] == [True]
