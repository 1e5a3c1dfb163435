"""Answers that would take very long if all that follows from them were done at once."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.frontier import MAX_SWAPPED_IN
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.catalog import MAX_TEXT_CHARS
from gossamer.core.ledger.rows import encode
from gossamer.core.robots.rules import LINES_PER_SLICE
from gossamer.core.traps.calendar import MAX_UNPROVEN
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.holding import MAX_OFFER_BYTES
from gossamer.engine.crawl import MAX_TURN_WORK
from gossamer.engine.frontier_commands import DENIED_WORK
from gossamer.engine.shards.host_directory import MAX_SLICE_WORK
from gossamer.model.events import EventName
from gossamer.model.figures import MAX_TYPES, Totals
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result, UrlState
from gossamer.ports import Ledger
from tests.engine.test_crawl import NOW, Bench

MAX_DENIED_PER_TURN = MAX_TURN_WORK // DENIED_WORK + 64
LONG = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d\n" % n for n in range(2000))


def _ordered_robots(bench: Bench) -> FetchTask:
    (task,) = bench.tasks()
    assert task.kind is FetchKind.ROBOTS
    return task


def _resumed_after_a_page(ledger: Ledger, robots: bytes) -> tuple[FetchTask, Bench]:
    """Return the first page of a host with this robots.txt, and the crawl, resumed a minute later."""
    bench = Bench("http://a.test/private/1", "http://a.test/2", "http://a.test/3", ledger=ledger)
    bench.end(_ordered_robots(bench), robots=robots)
    (page,) = bench.tasks(after_s=10.0)
    bench.end(page)
    bench.crawl.save_state(1.0, 1.0, bench.now)
    return page, Bench(ledger=ledger, now=bench.now + 60)


def test_a_new_robots_txt_for_a_long_queue_is_applied_in_slices() -> None:
    count = 3000
    bench = Bench(*(f"http://a.test/private/{n}" for n in range(count)))
    bench.end(_ordered_robots(bench), robots=b"User-agent: *\nDisallow: /private/\n")
    bench.now += 1.0
    denied, turns = 0, 0
    while denied < count:
        assert bench.tasks() == []
        slice_ = len(bench.told(EventName.ROBOTS_DISALLOW)) - denied
        assert 0 < slice_ <= MAX_DENIED_PER_TURN
        denied, turns = denied + slice_, turns + 1
        if denied < count:
            assert bench.crawl.next_wakeup() == 0.0, "the rest is done in the next turns, at once"
            assert bench.crawl.why_over(bench.now, 300.0) is None
    assert turns > count // MAX_DENIED_PER_TURN
    assert bench.crawl.totals.robots_disallowed == count


def test_rules_that_were_shed_are_read_from_the_ledger_before_the_next_page(ledger: Ledger) -> None:
    bench = Bench(
        "http://a.test/private/1",
        "http://a.test/public",
        "http://b.test/1",
        ledger=ledger,
        limits=FrontierLimits(max_rules_bytes=1),
    )
    for task in bench.tasks():
        bench.end(task, robots=LONG + f"# {task.host}\n".encode())
    rules = bench.crawl.frontier.robots_cache
    assert rules.large_bytes < 1_000_000, "there is room for one of them"
    assert sorted(task.url for task in bench.tasks(after_s=1.0)) == ["http://a.test/public", "http://b.test/1"]
    assert bench.state_of("http://a.test/private/1") == (UrlState.DONE, "robots_denied")


def test_a_text_that_does_not_fit_is_not_read_again_for_every_page() -> None:
    urls = [f"http://{host}.test/{n}" for host in "ab" for n in range(3)]
    bench = Bench(*urls, limits=FrontierLimits(max_rules_bytes=1))
    for task in bench.tasks():
        bench.end(task, robots=LONG + f"# {task.host}\n".encode())
    first = bench.tasks(after_s=1.0)
    assert len(first) == 2
    for task in first:
        bench.end(task)
    # One of the two has its rules in memory, the other one waits for 120 s per MB of its text.
    assert len(bench.tasks(after_s=1.5)) == 1
    assert len(bench.tasks(after_s=120e-6 * len(LONG))) >= 1


def test_a_long_robots_txt_is_not_read_before_a_page_of_its_host_is_due(ledger: Ledger) -> None:
    text = b"User-agent: *\nCrawl-delay: 9\n" + LONG.removeprefix(b"User-agent: *\n")
    page, again = _resumed_after_a_page(ledger, text)
    assert again.crawl.frontier.robots_cache.large_bytes == 0
    (next_page,) = again.tasks()
    assert next_page.url != page.url
    again.end(next_page)
    assert again.tasks(after_s=8.0) == [], "the Crawl-delay is in force"


def test_rules_and_sitemaps_beyond_the_limits_are_announced() -> None:
    bench = Bench("http://a.test/")
    text = "User-agent: *\n" + "".join(f"Disallow: /x{n}*y\n" for n in range(2010))
    text += "".join(f"Sitemap: http://a.test/{n}.xml\n" for n in range(103))
    bench.end(_ordered_robots(bench), robots=text.encode())
    warnings = {(event.reason, event.links) for event in bench.told(EventName.WARNING)}
    assert warnings == {("robots_rules_capped", 10), ("robots_sitemaps_capped", 3)}
    assert bench.crawl.totals.robots_cut == 1


def test_a_robots_txt_that_is_only_renewed_is_not_announced_again() -> None:
    bench = Bench("http://a.test/1", "http://a.test/2", now=NOW)
    text = "User-agent: *\n" + "".join(f"Disallow: /x{n}*y\n" for n in range(2010))
    bench.end(_ordered_robots(bench), robots=text.encode(), etag='"e"')
    (page,) = bench.tasks(after_s=1.0)
    bench.end(page)
    bench.now += 25 * 3600
    bench.end(_ordered_robots(bench), Outcome.NOT_MODIFIED, status=304)
    assert bench.crawl.totals.robots_cut == 1


def _written_bytes(bench: Bench, urls: list[str]) -> int:
    """Return the size of all events, and of the rows of URLs."""
    rows = [bench.ledger.look_up(link_to(url).id) for url in urls]
    return sum(len(msgspec.json.encode(event)) for event in bench.events) + sum(len(encode(row)) for row in rows)


def test_a_long_line_of_robots_txt_is_not_copied_into_every_row_and_event() -> None:
    urls = [f"http://a.test/private/{n}" for n in range(300)]
    bench = Bench(*urls)
    text = b"User-agent: *\nDisallow: /private/ #" + b"x" * 490_000 + b"\n"
    bench.end(_ordered_robots(bench), robots=text)
    bench.now += 1.0
    while bench.crawl.totals.robots_disallowed < len(urls):
        bench.tasks()
    assert _written_bytes(bench, urls) < 2_000 * len(urls) < 2 * len(text)


def test_what_an_answer_says_about_itself_is_cut_in_rows_and_events() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    bench.crawl.complete(
        Result(
            page.id,
            Outcome.OK,
            status=200,
            finished_at=bench.now,
            title="t" * 100_000,
            error="e" * 100_000,
            content_type="text/" + "c" * 60_000,
            last_modified="m" * 60_000,
        ),
        bench.now,
    )
    assert _written_bytes(bench, [page.url]) < 10_000
    row = bench.ledger.look_up(page.url_id)
    assert row is not None
    assert row.title == "t" * (MAX_TEXT_CHARS - 1) + "…"


def test_types_that_servers_invent_are_counted_together() -> None:
    totals = Totals()
    for n in range(MAX_TYPES + 50):
        totals.count_page(Result(n, Outcome.OK, content_type=f"text/x-{n}"))
    assert len(totals.types) == MAX_TYPES + 1
    assert totals.types["other"] == 50


def test_one_answer_adds_a_bounded_amount_of_held_links_and_the_rest_is_counted() -> None:
    bench = Bench("http://a.test/2020/01/")
    (page,) = bench.past_robots()
    links = [link_to(f"http://a.test/{'x' * 3000}?date=2020-01&n={n}") for n in range(1000)]
    bench.end(page, links=links)
    totals = bench.crawl.totals
    assert 0 < totals.held["calendar"] * 3000 < MAX_OFFER_BYTES
    assert totals.held["calendar"] + totals.held_dropped == 1000 - MAX_UNPROVEN


def _turns_until_a_page(bench: Bench) -> tuple[int, list[FetchTask]]:
    """Return after how many turns without a task there is one."""
    for turn in range(1000):
        if tasks := bench.tasks():
            return turn, tasks
        assert bench.crawl.next_wakeup() == 0.0, "the rest is done in the next turns, at once"
        assert bench.crawl.why_over(bench.now, 300.0) is None
    raise AssertionError("no task in 1,000 turns")


def test_long_rules_that_were_shed_are_read_again_in_slices(ledger: Ledger) -> None:
    text = LONG + b"".join(b"Allow: /%x\n" % n for n in range(25_000))
    _, again = _resumed_after_a_page(ledger, text)
    turns, _ = _turns_until_a_page(again)
    assert turns >= 27_000 // LINES_PER_SLICE // (MAX_TURN_WORK // MAX_SLICE_WORK) - 1


def test_hosts_that_become_due_together_are_loaded_in_slices() -> None:
    limits = FrontierLimits(max_hosts_in_memory=1, connections=1)
    bench = Bench(*(f"http://h{number}.test/" for number in range(350)), limits=limits)
    waiting = [bench.ledger.swapped_out()[0]]
    assert waiting[0] > 3 * MAX_SWAPPED_IN
    limits.max_hosts_in_memory = 1000
    while waiting[-1]:
        bench.crawl.tasks(bench.now)
        waiting.append(bench.ledger.swapped_out()[0])
        assert 0 < waiting[-2] - waiting[-1] <= MAX_SWAPPED_IN
        assert not waiting[-1] or bench.crawl.next_wakeup() == 0.0, "the rest follows at once"


def test_hosts_that_are_due_are_not_loaded_because_a_look_up_failed() -> None:
    limits = FrontierLimits(max_hosts_in_memory=1, connections=1)
    bench = Bench(*(f"http://h{number}.test/" for number in range(350)), limits=limits)
    bench.crawl.tasks(bench.now)
    (asked,) = bench.crawl.take_resolves()
    limits.max_hosts_in_memory = 1000
    waiting = bench.ledger.swapped_out()[0]
    bench.crawl.fail_address(asked, Outcome.DNS_NOT_FOUND, "", bench.now)
    assert bench.ledger.swapped_out()[0] == waiting


@pytest.mark.parametrize("hosts", [2, 4, 5])
@pytest.mark.parametrize("room", [1, 400_000])
def test_long_rules_of_many_hosts_are_all_read_again_though_memory_has_no_room_for_them(hosts: int, room: int) -> None:
    ledger = MemoryLedger()
    names = [f"h{number}.test" for number in range(hosts)]
    limits = FrontierLimits(max_rules_bytes=room)
    bench = Bench(*(f"http://{name}/{page}" for name in names for page in range(2)), ledger=ledger, limits=limits)
    for task in bench.tasks():
        bench.end(task, robots=LONG + f"# {task.host}\n".encode())
    bench.crawl.save_state(1.0, 1.0, bench.now)
    again = Bench(ledger=ledger, limits=limits, now=bench.now + 60)
    fetched = set()
    for _ in range(50 * hosts):
        for task in again.tasks(after_s=0.05):
            fetched.add(task.url)
            again.end(task)
    assert {url.split("/")[2] for url in fetched} == set(names)
