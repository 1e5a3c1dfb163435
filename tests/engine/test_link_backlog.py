"""Pages and sitemaps with very many links: offered in slices, and none is lost."""

from __future__ import annotations

import time
from pathlib import Path
from shutil import copytree

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.domain_rooms import MAX_WAITING
from gossamer.engine.admission.link_backlog import BATCH_LINKS, FIRST_LINKS, LINK_BACKLOG, MAX_BATCHES
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, FetchTask, Link
from gossamer.ports import Ledger
from tests.engine.test_crawl import Bench

CPU_LIMIT_S = 2.0  # for what takes half a second, and took 12


def _sitemap(bench: Bench) -> FetchTask:
    """Crawl up to the task for the sitemap of a.test."""
    (robots,) = bench.tasks()
    bench.end(robots, robots=b"Sitemap: http://a.test/sitemap.xml\n")
    for _ in range(3):
        for task in bench.tasks(after_s=1.0):
            if task.kind is FetchKind.SITEMAP:
                return task
            bench.end(task)
    raise AssertionError("no task for the sitemap")


def _links(count: int, form: str = "http://a.test/{n}") -> list[Link]:
    return [link_to(form.format(n=n)) for n in range(count)]


def _drain(bench: Bench) -> list[int]:
    """Make turns without ending a request, as long as there is something to do at once; return URLs queued in each."""
    added = []
    while bench.crawl.next_wakeup() == 0.0:
        before = bench.crawl.totals.urls_seen
        bench.tasks()
        added.append(bench.crawl.totals.urls_seen - before)
    return added


def test_a_sitemap_of_25000_subdomains_takes_linear_time(tmp_path: Path) -> None:
    ledger = LocalLedger(tmp_path / "state")
    ledger.open()
    bench = Bench("http://a.test/", ledger=ledger)
    links = _links(25_000) + _links(25_000, "http://h{n}.a.test/")
    sitemap = _sitemap(bench)
    started = time.process_time()
    bench.end(sitemap, links=links)
    bench.tasks()
    _drain(bench)
    assert time.process_time() - started < CPU_LIMIT_S
    totals = bench.crawl.totals
    assert totals.held == {"hosts_per_domain": MAX_WAITING // 2}
    assert totals.held_dropped == 24_001 - MAX_WAITING // 2
    assert len(bench.told(EventName.EXCLUDED_BY_RULE)) == 24_001
    assert bench.crawl.totals.urls_seen == 2 + 25_000 + 999, "a domain has 1,000 hosts at most"
    ledger.close()


def test_the_links_of_a_long_sitemap_are_queued_in_slices(ledger: Ledger) -> None:
    count = FIRST_LINKS + 3 * BATCH_LINKS + 7
    bench = Bench("http://a.test/", ledger=ledger)
    bench.end(_sitemap(bench), links=_links(count))
    assert bench.crawl.totals.urls_seen == 2 + FIRST_LINKS
    assert bench.crawl.totals.held == {LINK_BACKLOG: count - FIRST_LINKS}, "what waits is counted"
    assert bench.crawl.why_over(bench.now, 300.0) is None
    bench.tasks()
    assert [n for n in _drain(bench) if n] == [BATCH_LINKS] * 3 + [7]
    assert bench.crawl.totals.urls_seen == 2 + count
    assert bench.crawl.totals.held == {}


def test_links_that_wait_survive_a_kill(tmp_path: Path) -> None:
    count = FIRST_LINKS + 5 * BATCH_LINKS
    with_links = LocalLedger(tmp_path / "state")
    with_links.open()
    bench = Bench("http://a.test/", ledger=with_links)
    bench.end(_sitemap(bench), links=_links(count))
    bench.tasks()
    bench.crawl.save_state(1.0, 1.0, bench.now)
    with_links.commit()
    bench.tasks()  # not committed
    copytree(tmp_path / "state", tmp_path / "killed")
    with_links.close()
    again = LocalLedger(tmp_path / "killed")
    again.open()
    bench = Bench(ledger=again, now=bench.now + 5, was_clean=False)
    bench.tasks()
    _drain(bench)
    assert sum(host.queued for host in again.hosts()) == count
    assert bench.crawl.totals.urls_seen == 2 + count, "none is lost, none is counted twice"
    assert bench.crawl.totals.held == {}
    again.close()


def test_a_long_page_adds_no_more_links_than_a_page_may() -> None:
    bench = Bench("http://a.test/")
    (page,) = bench.past_robots()
    known = _links(FIRST_LINKS - 400, "http://a.test/known/{n}")
    bench.crawl.add_seeds(known, bench.now)
    bench.end(page, links=known + _links(1600))
    bench.tasks()
    _drain(bench)
    assert bench.crawl.totals.urls_seen == 1 + len(known) + 1000
    assert [event.links for event in bench.told(EventName.LINKS_CAPPED)] == [600], "announced once"


def test_no_requests_are_made_while_very_many_links_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.engine.admission.link_backlog.FIRST_LINKS", 10)
    monkeypatch.setattr("gossamer.engine.admission.link_backlog.BATCH_LINKS", 10)
    bench = Bench("http://a.test/")
    bench.end(_sitemap(bench), links=_links(10 * (MAX_BATCHES + 4)))
    bench.now += 5.0
    turns = 0
    while not bench.tasks():
        assert bench.crawl.next_wakeup() == 0.0
        turns += 1
    assert turns == 3
    assert bench.crawl.totals.held[LINK_BACKLOG] == 10 * MAX_BATCHES
