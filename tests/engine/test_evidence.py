"""What pages show about their host, and what the engine does about it."""

from __future__ import annotations

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.traps.quarantine import Quarantine
from gossamer.core.url.forms import link_to
from gossamer.engine.results.evidence import release_quarantine
from gossamer.engine.revisit.due_urls import FULL_FETCH_EVERY
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import ArchiveSpan, FetchTask, Outcome, Truncation
from gossamer.model.state import ALL_PATTERNS
from tests.engine.test_crawl import Bench

LIMITS = FrontierLimits(max_depth=1000)


def page(
    bench: Bench, task: FetchTask, hrefs: list[str], *, text: bytes, truncated: Truncation = Truncation.NONE
) -> None:
    """End a task with a page that says `text` and leads to `hrefs`."""
    links = [link_to(f"http://a.test{href}") for href in hrefs]
    bench.end(
        task,
        links=links,
        text_hash=text,
        content_type="text/html",
        content_hash=task.url_id,
        truncated=truncated,
    )


def trap() -> Bench:
    """Crawl a host whose shop says the same whatever is asked; return where that ends."""
    bench = Bench("http://a.test/", limits=LIMITS)
    tasks = bench.past_robots()
    number = 0
    while tasks:
        for task in tasks:
            number += 1
            is_shop = "/shop" in task.url
            page(bench, task, [f"/shop?x={number}", f"/shop?y={number}"], text=b"shop" if is_shop else b"home")
        tasks = bench.tasks(after_s=1.0)
        assert number < 1000
    return bench


def test_a_pattern_in_quarantine_is_reported_and_held() -> None:
    bench = trap()
    (event,) = bench.told(EventName.TRAP_QUARANTINED)
    assert event.rule.startswith("a.test/shop?")
    assert bench.crawl.frontier.counts.queued == 0
    assert bench.crawl.totals.held == {"quarantine": event.links}
    assert event.links > 0
    (quarantine,) = bench.ledger.records(QUARANTINES)
    assert quarantine.held == event.links


def test_what_is_released_is_queued_again() -> None:
    bench = trap()
    name = next(bench.ledger.records(QUARANTINES)).name
    held = next(bench.ledger.records(QUARANTINES)).held
    bench.crawl.save_state(0.0, 0.0, bench.now)
    assert release_quarantine(bench.ledger, "no.such/pattern") == []
    assert [each.held for each in release_quarantine(bench.ledger, name)] == [held]
    assert release_quarantine(bench.ledger, name) == []
    again = Bench(ledger=bench.ledger, limits=LIMITS, now=bench.now)
    tasks = [task for _ in range(10) for task in again.crawl.tasks(again.now)]  # a slice per turn
    assert again.crawl.frontier.counts.queued == held
    assert again.crawl.totals.held == {}
    assert tasks


def test_all_patterns_are_released_together() -> None:
    bench = trap()
    (first,) = bench.ledger.records(QUARANTINES)
    bench.ledger.put_record(QUARANTINES, Quarantine("b.test", "/cal/#", 1.0, 50, 0, [], held=7))
    bench.ledger.put_record(QUARANTINES, Quarantine("c.test", "/old/#", 1.0, 50, 0, [], is_released=True))
    bench.crawl.save_state(0.0, 0.0, bench.now)
    ended = release_quarantine(bench.ledger, ALL_PATTERNS)
    assert {each.name: each.held for each in ended} == {first.name: first.held, "b.test/cal/#": 7}
    state = bench.ledger.crawl_state()
    assert state is not None
    assert (state.released, state.totals.dead) == (first.held + 7, 0)
    assert release_quarantine(bench.ledger, ALL_PATTERNS) == []


def test_nothing_is_held_if_the_evidence_is_off() -> None:
    bench = Bench("http://a.test/", limits=LIMITS, rules=CrawlRules(watches_traps=False))
    tasks = bench.past_robots()
    for number in range(300):
        page(bench, tasks[0], [f"/shop?x={number}"], text=b"same")
        tasks = bench.tasks(after_s=1.0)
    assert not bench.told(EventName.TRAP_QUARANTINED)
    assert tasks


def test_links_of_a_page_that_is_none_are_not_followed() -> None:
    bench = Bench("http://a.test/", limits=LIMITS)
    (task,) = bench.past_robots()
    page(bench, task, [f"/gone{letter}" for letter in "abcdefghijklmn"], text=b"home")
    seen = []
    while tasks := bench.tasks(after_s=1.0):
        seen.append(tasks[0].url)
        page(bench, tasks[0], [f"{tasks[0].url[13:]}more"] if len(seen) > 11 else [], text=b"sorry")
    probes = [url for url in seen if url.endswith("-no-such-page")]
    assert len(probes) == 1
    assert bench.told(EventName.SOFT_404)
    assert not any(url.endswith("moremore") for url in seen)


def test_a_host_whose_probe_fails_honestly_is_left_as_it_is() -> None:
    bench = Bench("http://a.test/", limits=LIMITS)
    (task,) = bench.past_robots()
    page(bench, task, [f"/copy{letter}" for letter in "abcdefghijklmn"], text=b"home")
    while tasks := bench.tasks(after_s=1.0):
        if tasks[0].url.endswith("-no-such-page"):
            bench.end(tasks[0], Outcome.CLIENT_ERROR)
        else:
            page(bench, tasks[0], [], text=b"one text")
    assert not bench.told(EventName.SOFT_404)


def test_deep_links_of_a_heavy_host_are_refused() -> None:
    bench = Bench("http://a.test/", limits=LIMITS)
    tasks = bench.past_robots()
    for number in range(6):
        text = f"t{number}".encode()
        page(bench, tasks[0], [f"/{number}"], text=text, truncated=Truncation.LENGTH)
        tasks = bench.tasks(after_s=1.0)
        if not tasks:
            break
    assert number == 2
    assert [event.reason for event in bench.told(EventName.EXCLUDED_BY_RULE)] == ["oversize_host"]


@pytest.mark.parametrize(("max_oversize", "last"), [(1, 2), (2, 4), (None, 4)])
def test_an_option_says_after_how_many_over_size_answers_deep_links_are_refused(
    max_oversize: int | None, last: int
) -> None:
    bench = Bench("http://a.test/", limits=LIMITS, rules=CrawlRules(max_oversize=max_oversize))
    tasks = bench.past_robots()
    for number in range(5):
        truncated = Truncation.LENGTH if number == 0 else Truncation.NONE
        page(bench, tasks[0], [f"/{number}"], text=f"t{number}".encode(), truncated=truncated)
        tasks = bench.tasks(after_s=1.0)
        if not tasks:
            break
    assert number == last


def test_hosts_of_a_domain_have_a_budget_and_seeds_none() -> None:
    bench = Bench("http://a.test/", limits=LIMITS, rules=CrawlRules(max_hosts_per_domain=3))
    (task,) = bench.past_robots()
    links = [link_to(f"http://h{number}.a.test/{number}") for number in range(10)]
    bench.end(task, links=[*links, link_to("http://h0.a.test/again")])
    refused = [event.host for event in bench.told(EventName.EXCLUDED_BY_RULE)]
    assert refused == [f"h{number}.a.test" for number in range(2, 10)]
    assert bench.ledger.look_up(link_to("http://h0.a.test/again").id) is not None
    assert bench.crawl.add_seeds([link_to("http://h9.a.test/")], bench.now) == 1


@pytest.mark.parametrize(("visits", "is_conditional"), [(1, True), (8, True), (FULL_FETCH_EVERY - 1, False)])
def test_every_tenth_visit_asks_for_the_whole_page(visits: int, is_conditional: bool) -> None:
    bench = Bench("http://a.test/", limits=LIMITS, rules=CrawlRules(cooldown_s=1.0))
    bench.crawl._admission._intake._remembers = False  # as with every cooldown
    bench.crawl._admission._intake._memo.clear()
    (task,) = bench.past_robots()
    links = [link_to("http://a.test/other")]
    span = ArchiveSpan("a.warc.gz", 10, 20)
    bench.end(task, etag='"x"', links=links, content_hash=b"c" * 16, archived=span)
    row = bench.ledger.look_up(task.url_id)
    assert row is not None
    row.visits = visits
    bench.ledger.finish(queued_from(task.url_id, "a.test", row), row)
    (other,) = bench.tasks(after_s=5.0)
    bench.now += 5.0
    bench.end(other, links=[link_to("http://a.test/")])
    (again,) = bench.tasks(after_s=5.0)
    assert again.url == task.url
    assert bool(again.etag) is is_conditional


def test_a_sitemap_speaks_for_its_domain_and_for_those_that_list_it() -> None:
    bench = Bench("http://a.test/", "http://b.test/", limits=LIMITS)
    for task in bench.tasks():
        bench.end(task, robots=b"Sitemap: http://a.test/map.xml\n")
    sitemaps = []
    for _ in range(4):
        for task in bench.tasks(after_s=1.0):
            if task.url.endswith("map.xml"):
                sitemaps.append(task)
                hosts = ("a.test", "www.a.test", "b.test", "c.test")
                links = [link_to(f"http://{host}/x") for host in hosts]
                bench.end(task, content_type="application/x-sitemap", links=links)
            else:
                bench.end(task)
    assert len(sitemaps) == 1
    refused = [(event.host, event.reason) for event in bench.told(EventName.EXCLUDED_BY_RULE)]
    assert refused == [("c.test", "sitemap_of_another")]
