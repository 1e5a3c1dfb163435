from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from gossamer.core.frontier.counts import Counts
from gossamer.core.frontier.effects import Effects
from gossamer.core.frontier.host_table import HostTable
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.task_end import PageEnd
from gossamer.core.frontier.workbench import HostSlot, HostState, OriginRules
from gossamer.core.politeness.retry import MAX_RETRY_AFTER_S, RETRY, attempts_after
from gossamer.core.robots.rules import parse_robots
from gossamer.model.records import ANSWERED, FetchKind, Outcome, QueuedUrl, Result, UrlState
from tests.core.slots import FOREVER, NOW, enter, queued_url, table_with

FAILURES = sorted(set(Outcome) - ANSWERED)


@dataclass
class Scene:
    """A host with one page in flight."""

    table: HostTable
    counts: Counts
    page_end: PageEnd
    host: HostSlot
    url: QueuedUrl

    def end(self, result: Result) -> Effects:
        effects = Effects()
        self.page_end.apply(self.host, self.url, result, effects, NOW)
        return effects


def scene(*, limits: FrontierLimits | None = None, attempt: int = 0, kind: FetchKind = FetchKind.PAGE) -> Scene:
    limits = limits or FrontierLimits()
    table, counts = table_with(limits), Counts()
    host = enter(table)
    url = replace(queued_url(host, "1"), attempt=attempt, kind=kind)
    counts.enqueue(host.record)
    counts.begin_page(host)
    host.out.add(url.id)
    return Scene(table, counts, PageEnd(table, limits, counts), host, url)


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_a_page_that_has_ended_is_in_flight_no_more(outcome: Outcome) -> None:
    bench = scene()
    effects = bench.end(Result(1, outcome))
    assert effects.url is bench.url
    assert (bench.counts.pages_in_flight, bench.host.pages_in_flight) == (0, 0)
    assert bench.counts.queued == bench.host.record.queued == (1 if effects.retry else 0)


@pytest.mark.parametrize("outcome", sorted(ANSWERED))
def test_what_was_answered_is_done(outcome: Outcome) -> None:
    bench = scene()
    effects = bench.end(Result(1, outcome))
    assert (effects.state, effects.retry) == (UrlState.DONE, None)
    assert bench.host.out == set()


@pytest.mark.parametrize("outcome", [outcome for outcome in FAILURES if outcome not in RETRY])
def test_a_failure_that_is_final_makes_a_url_dead(outcome: Outcome) -> None:
    effects = scene().end(Result(1, outcome))
    assert (effects.state, effects.retry, effects.is_page) == (UrlState.DEAD, None, False)


@pytest.mark.parametrize("outcome", [outcome for outcome in FAILURES if outcome in RETRY])
def test_other_failures_are_tried_again_up_to_their_limit(outcome: Outcome) -> None:
    effects = scene().end(Result(1, outcome))
    assert effects.state is UrlState.QUEUED
    if outcome is not Outcome.WORKER_LOST:
        effects = scene(attempt=int(attempts_after(outcome, 3))).end(Result(1, outcome))
        assert (effects.state, effects.retry) == (UrlState.DEAD, None)


# -- pages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_only_a_page_that_was_had_counts_as_one(outcome: Outcome) -> None:
    bench = scene()
    bench.host.domain.pages = 4
    effects = bench.end(Result(1, outcome))
    is_page = outcome is Outcome.OK
    assert effects.is_page is is_page
    assert (bench.counts.pages, bench.host.record.pages, bench.host.domain.pages) == (is_page, is_page, 4 + is_page)
    assert effects.domain_pages == (5 if is_page else 0)


def test_a_sitemap_is_no_page() -> None:
    bench = scene(kind=FetchKind.SITEMAP)
    effects = bench.end(Result(1, Outcome.OK))
    assert (effects.state, effects.is_page, bench.counts.pages) == (UrlState.DONE, False, 0)


def test_a_page_comes_with_the_wishes_of_the_robots_of_its_origin() -> None:
    bench = scene()
    rules = parse_robots(b"User-agent: *\nContent-Signal: search=yes\n", "gossamer")
    bench.host.origins["http://a.test"] = OriginRules(rules=rules, expires_at=FOREVER)
    bench.host.states_usage = True
    assert bench.end(Result(1, Outcome.OK)).usage == rules.usage != []


def test_a_page_whose_robots_was_forgotten_comes_without_wishes() -> None:
    bench = scene()
    bench.host.states_usage = True
    bench.host.origins.clear()
    assert bench.end(Result(1, Outcome.OK)).usage == []


# -- retries -------------------------------------------------------------------------------------------


def test_a_retry_waits_longer_each_time() -> None:
    waits = []
    for attempt in range(3):
        bench = scene(limits=FrontierLimits(retry_wait_s=2.0), attempt=attempt)
        retry = bench.end(Result(1, Outcome.SERVER_ERROR)).retry
        assert retry is not None
        assert retry.attempt == attempt + 1
        waits.append(retry.not_before - NOW)
    assert waits == [2.0, 8.0, 32.0]


def test_a_retry_waits_at_least_twice_the_delay_of_its_host() -> None:
    bench = scene(limits=FrontierLimits(retry_wait_s=2.0))
    bench.host.floor_s = 10.0
    retry = bench.end(Result(1, Outcome.TIMEOUT)).retry
    assert retry is not None
    assert retry.not_before == NOW + 20.0


@pytest.mark.parametrize(("asked_s", "waited_s"), [(600.0, 600.0), (1.0, 2.0), (1e9, MAX_RETRY_AFTER_S), (-1.0, 2.0)])
def test_a_retry_waits_as_long_as_the_server_asks_within_a_day(asked_s: float, waited_s: float) -> None:
    bench = scene(limits=FrontierLimits(retry_wait_s=2.0))
    retry = bench.end(Result(1, Outcome.RATE_LIMITED, retry_after_s=asked_s)).retry
    assert retry is not None
    assert retry.not_before == NOW + waited_s


def test_a_retry_is_deferred_and_not_to_be_read_from_the_ledger_meanwhile() -> None:
    bench = scene()
    retry = bench.end(Result(1, Outcome.TIMEOUT)).retry
    assert [entry[3] for entry in bench.host.deferred] == [retry]
    assert bench.host.out == {bench.url.id}
    assert bench.host.head == []


def test_what_a_dead_worker_had_is_queued_as_it_was() -> None:
    bench = scene(attempt=2)
    assert bench.end(Result(1, Outcome.WORKER_LOST)).retry is bench.url
    assert [entry[3] for entry in bench.host.head] == [bench.url]
    assert bench.host.out == set()


def test_what_a_dead_worker_had_from_behind_the_horizon_is_read_from_the_ledger_again() -> None:
    bench = scene()
    bench.host.horizon = (-1, 0, b"")
    assert bench.end(Result(1, Outcome.WORKER_LOST)).retry is bench.url
    assert bench.host.head == []
    assert bench.host.out == set(), "or the ledger's answer would be dropped"


# -- budgets -------------------------------------------------------------------------------------------


def exhausted_by(bench: Scene) -> HostSlot:
    """Return another host of the domain, without budget because of the page in flight."""
    other = enter(bench.table, "b.test", domain="a.test")
    other.push(queued_url(other, "1"))
    bench.table.reschedule(other, NOW)
    assert other.state is HostState.BUDGET_EXHAUSTED
    return other


@pytest.mark.parametrize("outcome", [Outcome.CLIENT_ERROR, Outcome.TIMEOUT, Outcome.REDIRECT, Outcome.WORKER_LOST])
def test_a_page_that_was_counted_on_and_failed_gives_others_their_turn(outcome: Outcome) -> None:
    bench = scene(limits=FrontierLimits(max_pages_per_domain=1))
    other = exhausted_by(bench)
    bench.end(Result(1, outcome))
    assert other.state is HostState.READY


def test_a_page_that_was_had_uses_up_the_budget() -> None:
    bench = scene(limits=FrontierLimits(max_pages_per_domain=1))
    other = exhausted_by(bench)
    bench.end(Result(1, Outcome.OK))
    assert other.state is HostState.BUDGET_EXHAUSTED
    assert "b.test" in bench.table.hosts


def test_hosts_without_budget_leave_crowded_memory_with_the_last_page_of_their_domain() -> None:
    bench = scene(limits=FrontierLimits(max_pages_per_domain=1, max_hosts_in_memory=0))
    exhausted_by(bench)
    bench.end(Result(1, Outcome.OK))
    assert list(bench.table.hosts) == ["a.test"]
