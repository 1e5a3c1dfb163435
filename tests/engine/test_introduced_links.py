"""Links to more new hosts than an address may lead to: they wait, and none is lost."""

from __future__ import annotations

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import INTRODUCED
from gossamer.core.links.introductions import EARNED_HOSTS
from gossamer.core.politeness.address_crowds import CROWDED
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.introduced_links import BATCH_LINKS, links_of
from gossamer.model.records import FetchKind, FetchTask, Link
from tests.engine.test_crawl import Bench

FREE = 10
SEED = "http://a.test/"


def _limits() -> FrontierLimits:
    return FrontierLimits(max_hosts_per_address=FREE, max_depth=2)


def _bench() -> tuple[Bench, FetchTask]:
    """Return a crawl up to the task for the seed."""
    bench = Bench(SEED, limits=_limits())
    (page,) = bench.past_robots()
    return bench, page


def _links(count: int, form: str = "http://n{n}.test/") -> list[Link]:
    return [link_to(form.format(n=n)) for n in range(count)]


def _waiting(bench: Bench) -> int:
    stored = sum(len(links_of(batch)) for batch in bench.ledger.records(INTRODUCED))
    assert stored == bench.crawl.totals.held.get(CROWDED, 0), "what waits is counted"
    return stored


def test_links_to_more_new_hosts_than_allowed_become_no_hosts() -> None:
    bench, page = _bench()
    bench.end(page, links=_links(30))
    assert bench.crawl.totals.urls_seen == 1 + FREE
    assert _waiting(bench) == 30 - FREE
    assert bench.ledger.host("n9.test") is not None
    assert bench.ledger.host("n10.test") is None


def test_links_to_known_hosts_are_queued_however_many_hosts_were_found() -> None:
    bench, page = _bench()
    bench.end(page, links=[*_links(30), *_links(50, "http://a.test/{n}"), *_links(FREE, "http://n{n}.test/more")])
    assert bench.crawl.totals.urls_seen == 1 + FREE + 50 + FREE


def test_a_link_that_waits_is_stored_once_however_often_it_is_found() -> None:
    bench, page = _bench()
    bench.end(page, links=[*_links(30), link_to("http://a.test/more")])
    for _ in range(3):
        for task in bench.tasks(after_s=1.0):
            if task.url == "http://a.test/more":
                bench.end(task, links=[*_links(30), link_to("http://n30.test/")])
    assert _waiting(bench) == 31 - FREE


def test_waiting_links_are_queued_when_hosts_that_were_found_before_have_answered() -> None:
    bench, page = _bench()
    bench.end(page, links=_links(2 * BATCH_LINKS + FREE))
    robots = [task for task in bench.tasks() if task.kind is FetchKind.ROBOTS]
    bench.end(robots[0])
    bench.tasks()
    assert _waiting(bench) == BATCH_LINKS, "a whole batch"
    needed = -(-(BATCH_LINKS + 1) // EARNED_HOSTS)
    for task in robots[1:needed]:
        bench.end(task)
        bench.tasks()
        assert _waiting(bench) == BATCH_LINKS, "until the whole batch is earned"


def test_all_that_waits_is_queued_in_the_end() -> None:
    bench, page = _bench()
    bench.end(page, links=_links(3 * BATCH_LINKS))
    for _ in range(50):
        tasks = bench.tasks(after_s=2.0)
        for task in tasks:
            bench.end(task)
        if not tasks and bench.crawl.why_over(bench.now, 300.0) is not None:
            break
    assert _waiting(bench) == 0
    assert bench.crawl.totals.urls_seen == 1 + 3 * BATCH_LINKS


def test_links_beyond_the_depth_and_those_that_a_rule_refuses_do_not_wait() -> None:
    bench, page = _bench()
    bench.end(page, links=[*_links(30), link_to("http://a.test/deep")])
    trapped = _links(5, "http://t{n}.test/x.zip")
    for _ in range(3):
        for task in bench.tasks(after_s=1.0):
            if task.url == "http://a.test/deep":
                bench.end(task, links=[*trapped, link_to("http://a.test/deeper")])
            elif task.url == "http://a.test/deeper":
                bench.end(task, links=_links(5, "http://d{n}.test/"))
    assert _waiting(bench) == 30 - FREE
    assert bench.crawl.totals.excluded == len(trapped)


def test_sitemaps_that_a_robots_txt_lists_at_new_hosts_wait_too() -> None:
    bench = Bench(SEED, limits=_limits())
    (robots,) = bench.tasks()
    lines = "".join(f"Sitemap: http://n{n}.test/sitemap.xml\n" for n in range(30))
    bench.end(robots, robots=lines.encode())
    assert _waiting(bench) == 30 - FREE


def test_what_waits_survives_a_restart_and_a_change_of_owner() -> None:
    bench, page = _bench()
    bench.end(page, links=_links(3 * BATCH_LINKS))
    before = _waiting(bench)
    bench.crawl.save_state(1.0, 1.0, bench.now)
    bench.ledger.commit()
    again = Bench(ledger=bench.ledger, limits=_limits(), now=bench.now + 10, was_clean=False)
    shard = shard_of(host_id("a.test"))
    again.crawl.release([shard], again.now)
    again.tasks()
    again.tasks(after_s=1.0)
    assert again.crawl.totals.held[CROWDED] == before, "the next owner offers them"
    again.crawl.take(shard, again.now)
    again.tasks(after_s=1.0)
    again.tasks(after_s=1.0)
    assert _waiting(again) == before - BATCH_LINKS, "a new run begins with what an address may lead to at first"


def test_hosts_of_the_page_s_own_domain_are_bounded_by_the_limit_of_the_domain_alone() -> None:
    bench, page = _bench()
    bench.end(page, links=[*_links(30), *_links(30, "http://n{n}.a.test/"), link_to("http://a.test/more")])
    assert bench.crawl.totals.urls_seen == 1 + FREE + 30 + 1
    for _ in range(3):
        for task in bench.tasks(after_s=1.0):
            if task.url == "http://a.test/more":
                bench.end(task, links=_links(30, "http://m{n}.a.test/"))
    assert bench.crawl.totals.urls_seen == 1 + FREE + 30 + 1 + 30
    assert _waiting(bench) == 30 - FREE
