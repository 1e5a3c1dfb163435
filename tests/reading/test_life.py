"""The life of a URL is told whole: from the seed that led to it to what it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import BACKLOG
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.url.forms import link_to
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, HostRecord, QueuedUrl, RobotsRecord, Source, UrlState
from gossamer.model.state import LinkBatch
from gossamer.reading.why.life import Life, LifeSource, life_of
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario
from tests.reading.folders import event, write_events

NOW = 1000.0


@pytest.fixture
def ledger() -> MemoryLedger:
    """A host with a seed, two pages below it, and a robots.txt."""
    ledger = MemoryLedger()
    seed, child, grandchild = (link_to(f"http://a.test/{path}") for path in ("", "child", "child/grandchild"))
    ledger.admit(
        [
            QueuedUrl(seed.url, seed.id, "a.test", 0, 1, 0, source=Source.SEED, found_at=1.0),
            QueuedUrl(child.url, child.id, "a.test", 1, 2, 1, parent=seed.id, found_at=2.0),
            QueuedUrl(grandchild.url, grandchild.id, "a.test", 2, 3, 2, parent=child.id, found_at=3.0),
        ]
    )
    ledger.put_host(HostRecord("a.test", "a.test", queued=3, delay_s=5.0, next_at=NOW + 2))
    body = b"User-agent: *\nDisallow: /secret\nCrawl-delay: 5\n"
    ledger.put_robots(RobotsRecord("http://a.test", 200, "ok", body, 900.0, 90_000.0))
    ledger.commit()
    return ledger


def _life(ledger: MemoryLedger, url: str, events: Path, *, is_masked: bool = False, is_running: bool = True) -> Life:
    scope = Scope(Reach.HOST)
    scope.join("http://a.test/", "a.test")
    return life_of(url, url, LifeSource(ledger, [events], scope, "gossamer", is_masked, is_running, NOW))


def test_the_parents_lead_back_to_the_seed(ledger: MemoryLedger, tmp_path: Path) -> None:
    life = _life(ledger, "http://a.test/child/grandchild", tmp_path)
    assert [ancestor.url for ancestor in life.ancestors] == ["http://a.test/child", "http://a.test/"]
    assert life.ancestors[-1].source == "seed"


def test_parents_in_a_circle_end(ledger: MemoryLedger, tmp_path: Path) -> None:
    child = link_to("http://a.test/child")
    row = ledger.look_up(child.id)
    assert row is not None
    row.parent = link_to("http://a.test/child/grandchild").id
    ledger.requeue(QueuedUrl(child.url, child.id, "a.test", 1, 2, 1), row)
    assert len(_life(ledger, "http://a.test/child/grandchild", tmp_path).ancestors) == 2


def test_a_queued_url_has_a_place_and_waits_for_its_host(ledger: MemoryLedger, tmp_path: Path) -> None:
    life = _life(ledger, "http://a.test/child/grandchild", tmp_path)
    assert life.queue is not None
    assert (life.queue.priority, life.queue.seq, life.queue.ahead, life.queue.queued) == (2, 3, 2, 3)
    assert life.waits_for == ["its host's delay of 5 s, over in 2.0 s"]


def test_it_waits_for_a_parked_host_and_for_the_crawl(ledger: MemoryLedger, tmp_path: Path) -> None:
    parked = HostRecord("a.test", "a.test", queued=3, parked_until=NOW + 60, park_reason="429 Retry-After")
    parked.next_at = NOW + 60  # the longer of the two waits is the park, and says why
    ledger.put_host(parked)
    life = _life(ledger, "http://a.test/child", tmp_path, is_running=False)
    assert life.waits_for == ["the crawl is not running", "its host, parked for 60.0 s: 429 Retry-After"]


def test_a_link_in_the_backlog_of_a_long_page_is_found(ledger: MemoryLedger, tmp_path: Path) -> None:
    waiting, seed = link_to("http://a.test/waits"), link_to("http://a.test/")
    batch = LinkBatch(seed.id, 0, [link_to("http://a.test/other"), waiting], 1, Source.LINK, FetchKind.PAGE, seed.url)
    ledger.put_record(BACKLOG, batch)
    ledger.commit()
    life = _life(ledger, waiting.url, tmp_path)
    assert life.has_trace
    assert life.held_back == (
        "by the link backlog rule: until those found before it on http://a.test/ are queued, some per turn"
    )
    assert life.refusals == []
    assert not _life(ledger, "http://a.test/never-seen", tmp_path).has_trace
    assert not _life(ledger, "http://a.test/child", tmp_path).held_back


def test_a_link_that_waits_because_its_page_s_address_led_to_many_hosts_is_found(tmp_path: Path) -> None:
    hub = ImaginedHost(pages=50, cross_links=[f"http://new{n}.test/" for n in range(20)])
    scenario = Scenario(ImaginedSites({"hub.test": hub}), ["http://hub.test/"], FrontierLimits(max_hosts_per_address=5))
    _, driver = scenario.prepare()
    driver.run(until=START + 2)
    assert isinstance(scenario.ledger, MemoryLedger)
    assert _life(scenario.ledger, "http://new19.test/", tmp_path).held_back == (
        "by the max hosts per address rule: pages of one domain at the address of http://hub.test/ led to very "
        "many new hosts; until more of these have answered, or nothing else is to be done"
    )
    assert not _life(scenario.ledger, "http://new20.test/", tmp_path).held_back


def test_robots_is_reported_with_its_line(ledger: MemoryLedger, tmp_path: Path) -> None:
    robots = _life(ledger, "http://a.test/secret/x", tmp_path).robots
    assert (robots.is_allowed, robots.line_number, robots.line) == (False, 2, "Disallow: /secret")
    assert robots.crawl_delay_s == 5


def test_robots_of_another_origin_is_not_known(ledger: MemoryLedger, tmp_path: Path) -> None:
    assert not _life(ledger, "http://a.test:8080/", tmp_path).robots.is_known


def test_attempts_and_refusals_come_from_events(ledger: MemoryLedger, tmp_path: Path) -> None:
    write_events(
        tmp_path,
        "a",
        [
            event(EventName.RETRY, url="http://a.test/child", host="a.test", order=1, reason="timeout: slow", wait_s=2),
            event(EventName.FETCH_OK, url="http://a.test/child?utm_source=x", host="a.test", order=2, status=200),
            event(EventName.ERROR, url="http://a.test/other", host="a.test", order=3, status=404),
            event(EventName.EXCLUDED_BY_RULE, url="http://a.test/x.png", host="a.test", reason="extension"),
        ],
    )
    child = _life(ledger, "http://a.test/child", tmp_path)
    assert [(one.outcome, one.status) for one in child.attempts] == [("timeout", 0), ("ok", 200)]
    picture = _life(ledger, "http://a.test/x.png", tmp_path)
    assert [one.rule for one in picture.refusals] == ["extension"]
    assert picture.has_trace
    assert not picture.is_known


def test_masked_events_are_recognised(ledger: MemoryLedger, tmp_path: Path) -> None:
    write_events(
        tmp_path, "a", [event(EventName.EXCLUDED_BY_RULE, url="http://a.test/?q=*&*", host="a.test", reason="calendar")]
    )
    assert _life(ledger, "http://a.test/?q=secret&b", tmp_path, is_masked=True).refusals[0].rule == "calendar"


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://b.test/", "out_of_scope"),
        ("http://a.test/x.zip", "extension"),
        ("http://a.test/login", "exclude_pattern"),
        ("http://a.test/a/a/a/a/a", "repeated_segment"),
        ("http://a.test/2024/05/", "calendar"),
        ("http://a.test/secret/1", "robots.txt"),
    ],
)
def test_a_url_without_trace_is_judged_anew(ledger: MemoryLedger, tmp_path: Path, url: str, rule: str) -> None:
    life = _life(ledger, url, tmp_path)
    assert [refusal.rule for refusal in life.refusals] == [rule]
    assert not life.has_trace


def test_the_pattern_that_excludes_is_named(ledger: MemoryLedger, tmp_path: Path) -> None:
    refused = event(
        EventName.EXCLUDED_BY_RULE, url="http://a.test/x", host="a.test", reason="exclude_pattern", rule="/x$"
    )
    write_events(tmp_path, "a", [refused])
    assert "/x$" in _life(ledger, "http://a.test/x", tmp_path).refusals[0].detail
    assert "/(?:login|" in _life(ledger, "http://a.test/login", tmp_path).refusals[0].detail


def test_nothing_refuses_an_ordinary_url_that_was_never_found(ledger: MemoryLedger, tmp_path: Path) -> None:
    life = _life(ledger, "http://a.test/nowhere", tmp_path)
    assert life.refusals == []
    assert not life.has_trace


def test_a_duplicate_names_the_first(ledger: MemoryLedger, tmp_path: Path) -> None:
    child = link_to("http://a.test/child")
    row = ledger.look_up(child.id)
    assert row is not None
    row.state, row.duplicate_of = UrlState.DONE, link_to("http://a.test/").id
    ledger.finish(QueuedUrl(child.url, child.id, "a.test", 1, 2, 1), row)
    assert _life(ledger, "http://a.test/child", tmp_path).duplicate_of == "http://a.test/"


def test_a_near_duplicate_names_the_page_it_repeats(ledger: MemoryLedger, tmp_path: Path) -> None:
    child = link_to("http://a.test/child")
    row = ledger.look_up(child.id)
    assert row is not None
    row.state, row.near_duplicate_of, row.similarity = UrlState.DONE, link_to("http://a.test/").id, 0.95
    ledger.finish(QueuedUrl(child.url, child.id, "a.test", 1, 2, 1), row)
    assert _life(ledger, "http://a.test/child", tmp_path).near_duplicate_of == "http://a.test/"
