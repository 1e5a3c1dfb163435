"""What counts as a fetch and as an error: totals, host records and the report from events agree."""

from __future__ import annotations

import pytest

from gossamer.model.events import EventName
from gossamer.model.records import Outcome
from gossamer.report.events import EventFigures

from .test_crawl import Bench


def counted(bench: Bench) -> tuple[int, int]:
    """Return fetches and errors, after checking that totals, host records and events say the same."""
    totals, hosts = bench.crawl.totals, list(bench.ledger.hosts())
    figures = EventFigures()
    for event in bench.events:
        figures.add(0, event)
    by_hosts = sum(host.fetches for host in hosts), sum(host.errors for host in hosts)
    by_events = figures.outcomes.total, figures.errors.total
    assert by_hosts == (totals.fetches, totals.errors)
    assert by_events == (totals.fetches, totals.errors)
    assert figures.timeline(totals, 0)[-1].errors == totals.errors
    return totals.fetches, totals.errors


@pytest.mark.parametrize("outcome", [Outcome.DNS_NOT_FOUND, Outcome.DNS_FAILED, Outcome.BLOCKED_ADDRESS])
def test_a_name_look_up_that_failed_is_a_fetch_and_an_error(outcome: Outcome) -> None:
    bench = Bench("http://a.test/")
    bench.crawl.tasks(bench.now)
    assert bench.crawl.take_resolves() == ["a.test"]
    bench.crawl.fail_address("a.test", outcome, "no such name", bench.now)
    assert counted(bench) == (1, 1)
    (event,) = bench.told(EventName.ERROR)
    assert (event.host, event.kind, event.reason) == ("a.test", "dns", f"{outcome}: no such name")


def test_a_robots_txt_that_is_missing_is_an_answer_and_no_error() -> None:
    bench = Bench("http://a.test/")
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.CLIENT_ERROR)
    assert counted(bench) == (1, 0)


def test_a_page_that_is_missing_is_an_error() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    bench.end(page, Outcome.CLIENT_ERROR)
    assert counted(bench) == (2, 1)


def test_every_attempt_that_ended_is_a_fetch() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    bench.end(page, Outcome.TIMEOUT)
    (again,) = bench.tasks(after_s=600.0)
    bench.end(again)
    assert counted(bench) == (3, 1)


def test_a_task_that_was_given_back_is_no_fetch() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    bench.crawl.give_back([page.id], bench.now)
    assert counted(bench) == (1, 0)


def test_a_robots_txt_whose_task_was_given_back_is_no_fetch_and_not_unreachable() -> None:
    bench = Bench("http://a.test/")
    (robots,) = bench.tasks()
    bench.crawl.give_back([robots.id], bench.now)
    assert counted(bench) == (0, 0)
    assert bench.told(EventName.ROBOTS_UNREACHABLE) == []


def test_a_redirect_to_itself_is_an_answer_and_no_error() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    bench.end(page, Outcome.REDIRECT, redirect_to="http://a.test/")
    assert counted(bench) == (2, 0)
