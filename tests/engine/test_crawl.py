"""Single facts and what follows from them, where a whole crawl would hide the reason."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import pytest
from msgspec.structs import replace

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.cluster.regions import RegionRule, Regions
from gossamer.core.frontier import host_table as core
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.links.intake import Intake, IntakeRules
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.politeness.pace import Pace
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import divide
from gossamer.engine.crawl import Crawl
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.rules import CrawlRules
from gossamer.model.errors import damage_of
from gossamer.model.events import Event, EventName
from gossamer.model.records import (
    SITEMAP_INDEX,
    ArchiveSpan,
    FetchKind,
    FetchTask,
    Link,
    Outcome,
    Result,
    SpamVerdict,
    Truncation,
    UrlState,
)
from gossamer.ports import Ledger

NOW = 1_700_000_000.0


class ResultFields(TypedDict, total=False):
    """The fields of a Result that tests choose."""

    status: int
    content_type: str
    content_hash: bytes
    etag: str
    redirect_to: str
    retry_after_s: float
    links: list[Link]
    robots: bytes
    archived: ArchiveSpan
    archive_end: int
    text_hash: bytes
    signature: bytes
    truncated: Truncation
    spam: SpamVerdict
    spam_reason: str
    template: bytes


class Bench:
    """A crawl with its ledger and events, and the steps of a driver."""

    def __init__(
        self,
        *seeds: str,
        ledger: Ledger | None = None,
        limits: FrontierLimits | None = None,
        rules: CrawlRules | None = None,
        host_connections: int = 1,
        delay_s: float = 1.0,
        now: float = NOW,
        was_clean: bool = True,
    ) -> None:
        how = ordering(QueueOrder.BREADTH)
        limits = limits or FrontierLimits()
        self.ledger = ledger or MemoryLedger()
        self.events: list[Event] = []
        self.crawl = Crawl(
            rules or CrawlRules(),
            Frontier(limits, Pace(delay_s, host_connections), how, "gossamer"),
            Intake(Scope(Reach.ANY, excludes=()), how, limits, IntakeRules()),
            self.ledger,
            EventEmitter(self.events.append, now),
        )
        self.now = now
        self.crawl.restore(now, was_clean=was_clean)
        self.crawl.add_seeds([link_to(seed) for seed in seeds], now)

    def tasks(self, after_s: float = 0.0) -> list[FetchTask]:
        """Return the tasks after a while; names resolve at once."""
        self.now += after_s
        tasks = self.crawl.tasks(self.now)
        while names := self.crawl.take_resolves():
            for name in names:
                self.crawl.learn_address(name, ("10.0.0.1",), self.now + 3600.0, self.now)
            tasks += self.crawl.tasks(self.now)
        return tasks

    def end(self, task: FetchTask, outcome: Outcome = Outcome.OK, **fields: Unpack[ResultFields]) -> None:
        """End a task."""
        fields.setdefault("status", 200)
        result = Result(task.id, outcome, sent_at=self.now, finished_at=self.now, **fields)
        before = replace(result)
        self.crawl.complete(result, self.now)
        assert result == before, "the engine changed a result"

    def past_robots(self, body: bytes = b"") -> list[FetchTask]:
        """Answer robots.txt of all hosts; return the tasks that follow."""
        for task in self.tasks():
            assert task.kind is FetchKind.ROBOTS
            self.end(task, robots=body)
        return self.tasks(after_s=1.0)

    def told(self, name: EventName) -> list[Event]:
        """Return the events of a kind."""
        return [event for event in self.events if event.event is name]

    def state_of(self, url: str) -> tuple[UrlState, str]:
        """Return state and outcome of a URL in the catalog."""
        record = self.ledger.look_up(link_to(url).id)
        assert record is not None
        return record.state, record.outcome


def test_the_task_before_must_be_on_the_wire_even_when_an_earlier_one_ends() -> None:
    bench = Bench(*(f"http://a.test/{n}" for n in range(5)), host_connections=2)
    (first,) = bench.past_robots()
    assert first.report_sent
    bench.crawl.mark_sent(first.id, bench.now, bench.now)
    (second,) = bench.tasks(after_s=1.2)
    bench.end(first)
    assert bench.tasks(after_s=5.0) == [], "the second is not on the wire yet"
    bench.crawl.mark_sent(second.id, bench.now, bench.now)
    assert bench.tasks(after_s=0.9) == []
    assert len(bench.tasks(after_s=0.3)) == 1


def test_an_answer_tells_when_its_request_had_arrived() -> None:
    bench = Bench(*(f"http://a.test/{n}" for n in range(5)), host_connections=2)
    (first,) = bench.past_robots()
    bench.crawl.mark_sent(first.id, bench.now, bench.now)
    bench.now += 0.01
    bench.end(first)
    assert bench.tasks(after_s=0.98) == []
    assert len(bench.tasks(after_s=0.02)) == 1, "a second after the answer, not after the longest way it could have had"


def test_without_a_delay_all_connections_of_a_host_are_used_at_once() -> None:
    bench = Bench(*(f"http://a.test/{n}" for n in range(8)), host_connections=4, delay_s=0.0)
    tasks = bench.past_robots()
    assert len(tasks) == 4
    bench.end(tasks[0])
    assert len(bench.tasks()) == 1


def test_links_to_a_host_with_a_free_connection_become_tasks_at_once() -> None:
    bench = Bench("http://a.test/0", "http://b.test/0", host_connections=2)
    first, other = bench.past_robots()
    bench.crawl.mark_sent(first.id, bench.now, bench.now)
    bench.now += 2.0
    bench.end(other, links=[link_to("http://a.test/1")])
    assert [task.url for task in bench.tasks()] == ["http://a.test/1"]


def test_a_host_that_was_buried_and_is_found_again_starts_anew() -> None:
    bench = Bench("http://a.test/0")
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.REDIRECT, redirect_to="http://a.test/robots2.txt")
    bench.now += 7200.0  # the address is forgotten
    assert bench.crawl.tasks(bench.now) == []
    assert bench.crawl.take_resolves() == ["a.test"]
    bench.crawl.fail_address("a.test", Outcome.DNS_NOT_FOUND, "gone", bench.now)
    assert bench.state_of("http://a.test/0") == (UrlState.DEAD, "dns_not_found")
    assert bench.crawl.why_over(bench.now, 300.0) == "exhausted"
    bench.crawl.add_seeds([link_to("http://a.test/1")], bench.now)
    (again,) = bench.tasks(after_s=5.0)
    assert again.url == "http://a.test/robots.txt"


def test_a_name_is_not_looked_up_again_while_a_request_is_out() -> None:
    bench = Bench(*(f"http://a.test/{n}" for n in range(5)), host_connections=2)
    (first,) = bench.past_robots()
    bench.crawl.mark_sent(first.id, bench.now, bench.now)
    bench.now += 7200.0
    assert bench.crawl.tasks(bench.now) == []
    assert bench.crawl.take_resolves() == []
    bench.end(first)
    bench.now += 2.0
    assert bench.crawl.tasks(bench.now) == []
    assert bench.crawl.take_resolves() == ["a.test"]
    bench.crawl.fail_address("a.test", Outcome.DNS_NOT_FOUND, "gone", bench.now)
    assert bench.crawl.frontier.counts.queued == 0
    assert bench.crawl.why_over(bench.now, 300.0) == "exhausted"


def test_a_domain_budget_is_kept_by_all_its_hosts_together() -> None:
    bench = Bench("http://x.a.test/", "http://y.a.test/", limits=FrontierLimits(max_pages_per_domain=1))
    (page,) = bench.past_robots()
    bench.end(page, Outcome.CLIENT_ERROR)
    (other,) = bench.tasks(after_s=1.0)
    bench.end(other)
    assert bench.crawl.totals.pages == 1


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_host_that_woke_up_is_not_lost_by_a_crash(tmp_path: Path, restarts: int) -> None:
    limits = FrontierLimits(max_hosts_in_memory=1)
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    bench = Bench("http://a.test/0", "http://b.test/0", ledger=ledger, limits=limits)
    ledger.commit()
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.RATE_LIMITED, retry_after_s=900.0)
    (other,) = bench.tasks()
    assert other.host == "b.test"
    for _ in range(restarts):
        bench.crawl.save_state(0.0, 0.0, bench.now)
        ledger.close()
        ledger = LocalLedger(tmp_path / "state")
        ledger.open()
        bench = Bench(ledger=ledger, limits=limits, now=bench.now + 1.0, was_clean=False)
        bench.tasks(after_s=2.0)
    for _ in range(10):
        for task_id in bench.crawl.tasks_out():
            bench.crawl.complete(Result(task_id, Outcome.OK, status=200), bench.now)
        bench.tasks(after_s=500.0)
    assert bench.crawl.why_over(bench.now, 300.0) == "exhausted"
    assert bench.crawl.totals.pages == 2
    ledger.close()


def test_a_link_to_a_host_on_its_way_to_sleep_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "LONG_WAIT_S", 3.0)
    bench = Bench("http://a.test/0", "http://b.test/0", limits=FrontierLimits(max_hosts_in_memory=2))
    pages = bench.past_robots(b"User-agent: *\nCrawl-delay: 9\n")
    pages += bench.tasks(after_s=20.0)
    for page in pages:
        bench.end(page)
    bench.crawl.add_seeds([link_to("http://a.test/1")], bench.now)
    record = bench.ledger.host("a.test")
    assert record is not None
    assert (record.queued, bench.crawl.frontier.counts.queued) == (1, 1)


def _reopened(ledger: LocalLedger, folder: Path) -> LocalLedger:
    ledger.close()
    again = LocalLedger(folder)
    again.open()
    return again


def test_a_sleeping_host_that_robots_of_another_lead_to_is_awake_for_good(tmp_path: Path) -> None:
    ledger = LocalLedger(tmp_path)
    ledger.open()
    bench = Bench("http://a.test/0", "http://b.test/0", ledger=ledger, limits=FrontierLimits(max_hosts_in_memory=1))
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.REDIRECT, redirect_to="http://b.test/robots.txt")
    (moved,) = bench.tasks(after_s=1.0)
    assert (moved.url, ledger.swapped_out()[0]) == ("http://b.test/robots.txt", 1)
    bench.end(moved, robots=b"User-agent: *\nDisallow: /\n")
    (own,) = bench.tasks(after_s=1.0)
    bench.end(own)
    (page,) = bench.tasks(after_s=1.0)
    assert page.url == "http://b.test/0"
    bench.end(page)
    ledger.commit()
    bench.tasks(after_s=1.0)
    awake = bench.crawl.frontier.record_of("b.test")
    assert awake is not None
    assert (awake.swapped_out_until, ledger.swapped_out()[0]) == (0.0, 0)
    ledger.close()


def test_a_host_that_is_needed_again_before_it_sleeps_stays_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "LONG_WAIT_S", 3.0)
    bench = Bench("http://a.test/0", "http://a.test/1", limits=FrontierLimits(max_hosts_in_memory=1))
    for task in bench.tasks():
        bench.end(task, robots=b"User-agent: *\nCrawl-delay: 9\n")
    (page,) = bench.tasks(after_s=20.0)
    bench.end(page, links=[link_to("http://a.test/2")])
    bench.crawl.tasks(bench.now)
    is_resident = bench.crawl.frontier.has_host("a.test")
    assert is_resident is (bench.ledger.swapped_out()[0] == 0), "in one place or the other"
    urls = []
    while tasks := bench.tasks(after_s=20.0):
        urls += [task.url for task in tasks]
        for task in tasks:
            bench.end(task)
    assert urls == ["http://a.test/1", "http://a.test/2"]


def test_a_commit_before_urls_are_denied_does_not_keep_them_queued(tmp_path: Path) -> None:
    ledger = LocalLedger(tmp_path)
    ledger.open()
    bench = Bench("http://a.test/0", "http://a.test/1", ledger=ledger)
    (robots,) = bench.tasks()
    bench.end(robots, robots=b"User-agent: *\nDisallow: /\n")
    ledger.commit()
    assert bench.tasks(after_s=2.0) == []
    bench.crawl.save_state(0.0, 0.0, bench.now)
    again = Bench(ledger=_reopened(ledger, tmp_path), now=bench.now)
    assert again.crawl.frontier.counts.queued == 0
    assert again.crawl.why_over(again.now, 300.0) == "exhausted"
    again.ledger.close()


def test_arrival_goes_on_after_a_redirect_to_another_spelling() -> None:
    bench = Bench("http://a.test/0?utm_source=x")
    (page,) = bench.past_robots()
    bench.end(page, Outcome.REDIRECT, redirect_to="http://a.test/0")
    bench.crawl.save_state(0.0, 0.0, bench.now)
    again = Bench("http://a.test/1", ledger=bench.ledger, now=bench.now)
    places = [(url.priority, url.seq) for url in again.ledger.read_queue(link_to("http://a.test/").id[:8], None, 9)]
    assert len(places) == len(set(places)) == 2


def test_a_url_given_back_while_the_queue_is_being_read_stands_in_it_once() -> None:
    bench = Bench("http://a.test/", host_connections=2, limits=FrontierLimits(max_urls_in_memory=1))
    (start,) = bench.past_robots()
    bench.end(start, links=[link_to("http://a.test/u"), link_to("http://a.test/w")])
    (kept,) = bench.tasks(after_s=1.2)
    bench.crawl.mark_sent(kept.id, bench.now, bench.now)
    bench.crawl.add_seeds([link_to(f"http://a.test/{n}") for n in range(9)], bench.now)
    for n in range(8):
        bench.now += 2.0
        (task,) = bench.crawl.tasks(bench.now, 1)
        assert task.url == f"http://a.test/{n}", "what is nearer to a seed goes first"
        if n < 7:
            bench.end(task)
    bench.crawl.give_back([kept.id], bench.now)
    bench.end(task)
    urls = []
    while tasks := bench.tasks(after_s=2.0):
        urls += [task.url for task in tasks]
        for task in tasks:
            bench.end(task)
    assert urls == ["http://a.test/8", "http://a.test/u", "http://a.test/w"]


def test_denied_urls_are_done_with_the_line_that_forbids_them() -> None:
    bench = Bench("http://a.test/x", "http://a.test/y")
    (page,) = bench.past_robots(b"User-agent: *\nDisallow: /x\n")
    assert page.url == "http://a.test/y"
    assert bench.state_of("http://a.test/x") == (UrlState.DONE, "robots_denied")
    record = bench.ledger.host("a.test")
    assert record is not None
    assert record.queued == 1
    assert [event.rule for event in bench.told(EventName.ROBOTS_DISALLOW)] == ["Disallow: /x"]


def test_sitemaps_that_robots_list_are_read_and_their_pages_followed() -> None:
    bench = Bench("http://a.test/")
    tasks = bench.past_robots(b"Sitemap: http://a.test/index.xml\nSitemap: /rel.xml\n")
    urls = []
    while tasks:
        for task in tasks:
            urls.append((task.url, task.kind))
            if task.url.endswith("/index.xml"):
                links = [link_to("http://a.test/one.xml")]
                bench.end(task, links=links, content_type=SITEMAP_INDEX)
            elif task.url.endswith(".xml"):
                bench.end(task, links=[link_to("http://a.test" + task.url[13:-4] + "/page")])
            else:
                bench.end(task)
        tasks = bench.tasks(after_s=1.0)
    assert set(urls[:3]) == {
        ("http://a.test/", FetchKind.PAGE),
        ("http://a.test/index.xml", FetchKind.SITEMAP),
        ("http://a.test/rel.xml", FetchKind.SITEMAP),
    }
    assert set(urls[3:]) == {
        ("http://a.test/one.xml", FetchKind.SITEMAP),
        ("http://a.test/one/page", FetchKind.PAGE),
        ("http://a.test/rel/page", FetchKind.PAGE),
    }
    assert bench.crawl.totals.pages == 3, "a sitemap is no page"


def test_the_second_page_with_a_content_points_to_the_first() -> None:
    bench = Bench("http://a.test/0", "http://b.test/0")
    first, second = bench.past_robots()
    bench.end(first, content_hash=b"h" * 16)
    bench.end(second, content_hash=b"h" * 16, links=[link_to("http://c.test/")])
    record = bench.ledger.look_up(second.url_id)
    assert record is not None
    assert record.duplicate_of == first.url_id
    assert bench.crawl.totals.duplicates == 1
    assert bench.ledger.is_seen(link_to("http://c.test/").id), "its links are followed all the same"


def test_links_of_copies_are_not_followed_if_requested() -> None:
    bench = Bench("http://a.test/0", "http://b.test/0", rules=CrawlRules(follows_duplicates=False))
    first, second = bench.past_robots()
    bench.end(first, content_hash=b"h" * 16)
    bench.end(second, content_hash=b"h" * 16, links=[link_to("http://c.test/")])
    assert not bench.ledger.is_seen(link_to("http://c.test/").id)


def test_a_full_queue_evicts_its_last_urls() -> None:
    bench = Bench("http://a.test/", rules=CrawlRules(max_queued=50))
    (page,) = bench.past_robots()
    bench.end(page, links=[link_to(f"http://a.test/{n}") for n in range(200)])
    assert bench.crawl.frontier.counts.queued <= 50
    assert bench.state_of("http://a.test/0") == (UrlState.QUEUED, "")
    assert bench.state_of("http://a.test/199") == (UrlState.DEAD, "evicted")
    record = bench.ledger.host("a.test")
    assert record is not None
    assert record.queued == bench.crawl.frontier.counts.queued
    fetched = 0
    while tasks := bench.tasks(after_s=1.0):
        for task in tasks:
            bench.end(task)
            fetched += 1
    assert fetched == record.pages - 1
    assert bench.crawl.why_over(bench.now, 300.0) == "exhausted"


def test_dead_letters_can_be_queued_again() -> None:
    bench = Bench("http://a.test/0", "http://a.test/1")
    (page,) = bench.past_robots()
    bench.end(page, Outcome.CLIENT_ERROR)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    second = Bench(ledger=bench.ledger, now=bench.now + 10.0)
    fresh = Crawl(
        CrawlRules(),
        Frontier(FrontierLimits(), Pace(1.0, 1), ordering(QueueOrder.BREADTH), "gossamer"),
        second.crawl._admission._intake,
        bench.ledger,
        EventEmitter(second.events.append, second.now),
    )
    assert fresh.retry_dead(lambda row: row.outcome == "timeout", second.now) == 0
    assert fresh.retry_dead(lambda row: row.outcome == "client_error", second.now) == 1
    fresh.restore(second.now, was_clean=True)
    second.crawl = fresh
    urls = []
    for _ in range(5):
        for task in second.tasks(after_s=1.0):
            urls.append(task.url)
            second.end(task)
    assert sorted(urls) == ["http://a.test/0", "http://a.test/1"]


def test_a_state_that_makes_no_sense_is_a_damaged_ledger() -> None:
    bench = Bench("http://a.test/0")
    bench.crawl.save_state(0.0, 0.0, bench.now)
    state = bench.ledger.crawl_state()
    assert state is not None
    state.scope.append("htt\x80:no host")
    bench.ledger.put_crawl_state(state)
    with pytest.raises(ValueError, match="substring") as caught:
        Bench(ledger=bench.ledger)
    assert "the ledger is damaged" in str(damage_of(caught.value))


def test_an_answer_read_back_from_the_archive_counts_like_one_that_just_came() -> None:
    bench = Bench("http://a.test/0", "http://a.test/1")
    again = Bench(ledger=bench.ledger, was_clean=False, now=NOW + 5.0)
    task = again.crawl.adopt(link_to("http://a.test/0"), again.now)
    assert task is not None
    again.end(task, archived=ArchiveSpan("x.warc.gz", 0, 10), archive_end=10, links=[link_to("http://a.test/2")])
    assert again.state_of("http://a.test/0") == (UrlState.DONE, "ok")
    assert again.ledger.archive_ends() == {"x.warc.gz": 10}
    assert again.crawl.adopt(link_to("http://a.test/0"), again.now) is None, "done is done"
    assert again.crawl.adopt(link_to("http://other.test/"), again.now) is None
    for _ in range(5):
        for request in again.tasks(after_s=1.0):
            again.end(request)
    assert again.crawl.why_over(again.now, 300.0) == "exhausted"
    assert again.crawl.totals.pages == 3


def test_tasks_that_nobody_will_finish_go_back_to_the_queue() -> None:
    bench = Bench("http://a.test/0")
    (page,) = bench.past_robots()
    bench.crawl.give_back(bench.crawl.tasks_out(), bench.now)
    assert bench.crawl.tasks_out() == []
    assert bench.state_of(page.url) == (UrlState.QUEUED, "")
    (again,) = bench.tasks(after_s=1.0)
    assert (again.url, again.attempt) == (page.url, 0)
    bench.crawl.complete(Result(page.id, Outcome.OK, status=200), bench.now)
    assert bench.crawl.totals.pages == 0, "a late answer to a task that was given back counts for nothing"


def test_after_a_kill_a_host_is_left_alone_for_what_it_may_have_asked_for() -> None:
    first = Bench("http://a.test/0", delay_s=0.04)
    (robots,) = first.tasks()
    assert robots.url.endswith("/robots.txt")  # its answer, with a Crawl-delay perhaps, was never stored
    again = Bench(ledger=first.ledger, delay_s=0.04, now=first.now + 0.1, was_clean=False)
    assert again.tasks(after_s=0.9) == []
    (robots,) = again.tasks(after_s=0.2)
    again.end(robots)


def test_after_a_kill_a_host_whose_rules_are_known_waits_its_delay_and_what_is_on_the_way() -> None:
    first = Bench("http://a.test/0", "http://a.test/1", delay_s=0.2)
    (robots,) = first.tasks()
    first.end(robots)
    again = Bench(ledger=first.ledger, delay_s=0.2, now=first.now + 0.01, was_clean=False)
    assert again.tasks(after_s=0.25) == []
    (page,) = again.tasks(after_s=0.1)
    assert page.url == "http://a.test/0"


def test_a_robots_txt_that_was_lost_with_its_worker_is_asked_for_again_a_second_later() -> None:
    bench = Bench("http://a.test/0", delay_s=0.04)
    (robots,) = bench.tasks()
    bench.end(robots, Outcome.WORKER_LOST)
    assert bench.tasks(after_s=0.9) == []
    (again,) = bench.tasks(after_s=0.2)
    assert again.url == robots.url


def test_robots_of_other_domains_that_redirect_to_a_host_get_a_tenth_of_its_turns() -> None:
    crowd = [f"http://a.crowd{number}.test/" for number in range(40)]
    bench = Bench(*crowd, *(f"http://victim.test/{number}" for number in range(30)))
    asked = []
    for _ in range(300):
        for task in bench.tasks(after_s=2.0):
            is_crowd = "crowd" in task.url and task.url.endswith("/robots.txt")
            if is_crowd:
                bench.end(task, Outcome.REDIRECT, redirect_to="http://victim.test/robots.txt")
            else:
                bench.end(task)
            if "victim" in task.url:
                asked.append(task.url.removeprefix("http://victim.test/"))
    pages = [number for number, path in enumerate(asked) if path != "robots.txt"]
    assert len(pages) == 30
    assert pages[-1] <= 30 + 30 // 9 + 1, "nine pages, then one robots.txt for others"
    assert asked.count("robots.txt") == 41, "all of them are requested in the end"


def test_a_robots_txt_is_not_requested_at_a_path_of_another_host() -> None:
    bench = Bench("http://forger.test/", "http://victim.test/")
    urls = []
    for _ in range(10):
        for task in bench.tasks(after_s=2.0):
            urls.append(task.url)
            if task.url == "http://forger.test/robots.txt":
                bench.end(task, Outcome.REDIRECT, redirect_to="http://victim.test/secret")
            else:
                bench.end(task)
    assert sorted(urls) == [
        "http://forger.test/",
        "http://forger.test/robots.txt",
        "http://victim.test/",
        "http://victim.test/robots.txt",
    ]


def test_a_host_that_is_to_move_to_another_node_stays_blocked_whatever_opts_out() -> None:
    regions = Regions([RegionRule("", "us", ("US",))])
    divide(regions)
    bench = Bench("http://a.test/0", "http://other.test/0")
    bench.crawl.shards.learn_countries(regions, lambda _address: "US", bench.crawl.state)
    bench.tasks()
    record = bench.crawl.frontier.record_of("a.test")
    assert record is not None
    assert record.is_blocked, "its domain belongs to nodes with the label"
    bench.crawl.opt_out(frozenset({"other.test"}), bench.now)
    bench.crawl.opt_out(frozenset(), bench.now)
    assert record.is_blocked
    assert record.queued == 1
    assert bench.tasks(after_s=10.0) == []
