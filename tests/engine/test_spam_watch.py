"""Spam in the engine: counted per host, demoted, held back, released."""

from __future__ import annotations

import pytest

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import DEMOTION
from gossamer.core.ledger.tables import QUARANTINES, SPAM, spam_key
from gossamer.core.spam.hosts import MIN_CLEAR_SPAM, MIN_SPAM, MIN_TEMPLATE_PAGES, SpamUse
from gossamer.core.traps.quarantine import SPAM_PATTERN
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.results.evidence import release_quarantine
from gossamer.engine.rules import CrawlRules
from gossamer.model.events import EventName
from gossamer.model.records import FetchTask, SpamVerdict
from gossamer.model.state import HoldRule
from gossamer.ports import Ledger
from tests.engine.test_crawl import Bench

FARM = "http://farm.test"
VERDICT = SpamVerdict(0.8, ("keyword_stuffing",))


def rules(use: SpamUse) -> CrawlRules:
    return CrawlRules(spam=use, watches_traps=False)


def bench_of(use: SpamUse, *seeds: str, ledger: Ledger | None = None, now: float = 1e9) -> Bench:
    return Bench(*seeds, ledger=ledger, limits=FrontierLimits(max_depth=1000), rules=rules(use), now=now)


def spam(bench: Bench, task: FetchTask, *links: str) -> None:
    """End a task with a page that is spam."""
    bench.end(task, links=[link_to(link) for link in links], content_type="text/html", spam=VERDICT, spam_reason="why")


def crawl_farm(bench: Bench, pages: int, *elsewhere: str) -> list[FetchTask]:
    """Crawl pages of the farm, each of which leads to two more; all are spam. Return the tasks that follow."""
    tasks = bench.past_robots()
    for number in range(pages):
        (task,) = tasks
        spam(bench, task, f"{FARM}/{2 * number + 1}", f"{FARM}/{2 * number + 2}", *elsewhere)
        tasks = bench.tasks(after_s=1.5)
    return tasks


def test_a_page_has_its_verdict_in_its_row_and_in_an_event() -> None:
    bench = bench_of(SpamUse.DEMOTE, f"{FARM}/")
    crawl_farm(bench, 1)
    row = bench.ledger.look_up(link_to(f"{FARM}/").id)
    assert row is not None
    assert row.spam == VERDICT
    (event,) = bench.told(EventName.SPAM_PAGE)
    assert (event.url, event.rule, event.reason) == (f"{FARM}/", "keyword_stuffing", "why")
    assert bench.crawl.totals.spam_pages == 1


def test_a_host_with_spam_is_demoted_and_nothing_is_held() -> None:
    bench = bench_of(SpamUse.DEMOTE, f"{FARM}/")
    crawl_farm(bench, MIN_CLEAR_SPAM + 5)
    (event,) = bench.told(EventName.SPAM_HOST)
    assert (event.host, event.rule) == ("farm.test", "demoted")
    assert event.reason == f"{MIN_SPAM} of {MIN_SPAM} pages are spam (keyword_stuffing {MIN_SPAM})"
    assert bench.crawl.totals.held == {}
    assert bench.crawl.totals.spam_hosts == 1


@pytest.mark.parametrize(("use", "first"), [(SpamUse.DEMOTE, "good.test"), (SpamUse.OFF, "farm.test")])
def test_a_demoted_host_comes_after_all_others(use: SpamUse, first: str) -> None:
    bench = bench_of(use, *(f"http://good.test/{n}" for n in range(60)))
    tasks = bench.past_robots()
    for _ in range(20):  # so that the farm, which has fewer pages, would come first
        for task in tasks:
            bench.end(task, content_type="text/html")
        tasks = bench.tasks(after_s=1.5)
    bench.crawl.add_seeds([link_to(f"{FARM}/{n}") for n in range(60)], bench.now)
    spam_pages = 0
    while spam_pages < MIN_SPAM:
        for task in tasks:
            if task.host == "good.test" or task.url.endswith("/robots.txt"):
                bench.end(task)
            else:
                spam(bench, task)
                spam_pages += 1
        tasks = bench.tasks(after_s=1.5) if spam_pages < MIN_SPAM else []
    bench.crawl.frontier.change_limits(bench.now, connections=1)
    assert [task.host for task in bench.tasks(after_s=2.0)] == [first]


@pytest.mark.parametrize(("use", "demotion"), [(SpamUse.DEMOTE, DEMOTION), (SpamUse.OFF, 0)])
def test_what_a_demoted_host_links_to_elsewhere_comes_late(use: SpamUse, demotion: int) -> None:
    bench = bench_of(use, f"{FARM}/")
    (task,) = crawl_farm(bench, MIN_SPAM)
    spam(bench, task, "http://other.test/a", f"{FARM}/last")
    rows = [bench.ledger.look_up(link_to(url).id) for url in ("http://other.test/a", f"{FARM}/last")]
    depth = task.depth + 1
    assert [row.priority for row in rows if row is not None] == [demotion + depth, depth]


def held_farm(ledger: Ledger) -> Bench:
    """Return a crawl whose farm is in quarantine, with links held back."""
    bench = bench_of(SpamUse.QUARANTINE, f"{FARM}/", ledger=ledger)
    (task,) = crawl_farm(bench, MIN_CLEAR_SPAM)  # the links of the last page are held already
    spam(bench, task, f"{FARM}/held/1", f"{FARM}/held/2", "http://other.test/")
    return bench


def test_links_to_a_host_that_is_clearly_spam_are_held(ledger: Ledger) -> None:
    bench = held_farm(ledger)
    assert [event.rule for event in bench.told(EventName.SPAM_HOST)] == ["demoted", "quarantined"]
    assert bench.crawl.totals.held == {"spam": 4}
    assert bench.ledger.look_up(link_to(f"{FARM}/held/1").id) is None
    assert bench.ledger.look_up(link_to("http://other.test/").id) is not None
    (decided,) = bench.ledger.records(QUARANTINES)
    assert (decided.name, decided.held, decided.demotes_only) == ("farm.test:spam", 4, False)
    assert [event.reason for event in bench.told(EventName.EXCLUDED_BY_RULE)] == [HoldRule.SPAM] * 4


def test_what_is_released_is_queued_and_never_held_again(ledger: Ledger) -> None:
    bench = held_farm(ledger)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    assert [each.name for each in release_quarantine(ledger, "farm.test:spam")] == ["farm.test:spam"]
    again = bench_of(SpamUse.QUARANTINE, ledger=ledger, now=bench.now)
    again.crawl.tasks(again.now)
    again.crawl.tasks(again.now)  # a slice of what was held back is offered in the turn after
    assert again.crawl.totals.held == {}
    assert again.ledger.look_up(link_to(f"{FARM}/held/1").id) is not None
    assert again.crawl.frontier.limits.demoted_hosts == set()
    page = next(task for task in again.tasks(after_s=5.0) if task.host == "farm.test")
    spam(again, page, f"{FARM}/new")
    assert again.told(EventName.SPAM_HOST) == []
    assert again.crawl.totals.held == {}


@pytest.mark.parametrize("use", [SpamUse.DEMOTE, SpamUse.OFF])
def test_what_was_held_is_queued_if_spam_has_other_consequences_in_the_next_run(ledger: Ledger, use: SpamUse) -> None:
    bench = held_farm(ledger)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    again = bench_of(use, ledger=ledger, now=bench.now)
    again.crawl.tasks(again.now)
    again.crawl.tasks(again.now)  # a slice of what was held back is offered in the turn after
    assert again.crawl.totals.held == {}
    assert again.ledger.look_up(link_to(f"{FARM}/held/1").id) is not None
    assert again.crawl.frontier.limits.demoted_hosts == ({"farm.test"} if use is SpamUse.DEMOTE else set())


def test_the_counts_of_a_host_survive_a_restart_and_move_with_its_shard(ledger: Ledger) -> None:
    bench = bench_of(SpamUse.DEMOTE, f"{FARM}/", ledger=ledger)
    (task,) = crawl_farm(bench, MIN_SPAM - 1)
    spam_shard = shard_of(host_id("farm.test"))
    bench.end(task, content_type="text/html")  # an honest page: 9 of 10
    bench.crawl.release({spam_shard}, bench.now)
    tally = ledger.record(SPAM, spam_key("farm.test", is_domain=False))
    assert tally is not None
    assert (tally.spam, tally.pages) == (MIN_SPAM - 1, MIN_SPAM)
    bench.crawl.take(spam_shard, bench.now)
    (task,) = bench.tasks(after_s=5.0)
    assert bench.told(EventName.SPAM_HOST) == []
    spam(bench, task)
    assert [event.reason for event in bench.told(EventName.SPAM_HOST)] == [
        f"{MIN_SPAM} of {MIN_SPAM + 1} pages are spam (keyword_stuffing {MIN_SPAM})"
    ]
    bench.crawl.release({spam_shard}, bench.now)
    assert bench.crawl.frontier.limits.demoted_hosts == set()
    bench.crawl.take(spam_shard, bench.now)
    assert bench.crawl.frontier.limits.demoted_hosts == {"farm.test"}


def test_pages_with_one_template_become_doorways() -> None:
    bench = bench_of(SpamUse.DEMOTE, *(f"{FARM}/{n}" for n in range(MIN_TEMPLATE_PAGES + 1)))
    tasks = bench.past_robots()
    while tasks:
        bench.end(tasks[0], content_type="text/html", template=b"template")
        tasks = bench.tasks(after_s=1.5)
    (event,) = bench.told(EventName.SPAM_PAGE)
    assert event.rule == "doorway"
    assert f"that of {MIN_TEMPLATE_PAGES} other pages" in event.reason
    row = bench.ledger.look_up(link_to(event.url).id)
    assert row is not None
    assert row.spam is not None
    assert row.spam.signals == ("doorway",)


def test_a_page_that_is_fetched_again_and_again_is_one_page() -> None:
    rules = CrawlRules(cooldown_s=10.0, watches_traps=False)
    bench = Bench(f"{FARM}/", rules=rules)
    tasks = bench.past_robots()
    for _ in range(2 * MIN_TEMPLATE_PAGES):
        (task,) = tasks
        bench.end(task, content_type="text/html", template=b"template")
        bench.now += 15.0
        bench.crawl.add_seeds([link_to(f"{FARM}/")], bench.now)
        tasks = bench.tasks()
    assert len(bench.told(EventName.FETCH_OK)) == 2 * MIN_TEMPLATE_PAGES
    assert bench.told(EventName.SPAM_PAGE) == []
    bench.crawl.save_state(0.0, 0.0, bench.now)
    (tally,) = bench.ledger.records(SPAM)
    assert tally.templates == {b"template": 1}


def test_all_hosts_of_a_farm_are_demoted_once_it_is_known_to_be_one(ledger: Ledger) -> None:
    names = [f"best-cheap-hotel{letter}.farm.test" for letter in "abcdefghijklmno"]
    pages = [f"http://{name}/{n}" for name in names for n in range(2)]
    bench = bench_of(SpamUse.DEMOTE, *pages, "http://clean.farm.test/", ledger=ledger)
    tasks = bench.past_robots()
    decided: list[int] = []
    while tasks:
        for task in tasks:
            if task.host in names:
                spam(bench, task)
                decided.append(len(bench.told(EventName.SPAM_HOST)))
            else:
                bench.end(task, content_type="text/html")
        tasks = bench.tasks(after_s=1.5)
    assert decided[MIN_CLEAR_SPAM - 2 :] == [0, len(names)], "with the last page, and all at once"
    assert {event.host for event in bench.told(EventName.SPAM_HOST)} == set(names)
    assert all(
        "on 15 hosts, 15 of them with machine-made names" in each.reason for each in bench.told(EventName.SPAM_HOST)
    )


def test_nothing_is_counted_for_honest_hosts() -> None:
    bench = bench_of(SpamUse.DEMOTE, *(f"http://good.test/{n}" for n in range(5)))
    tasks = bench.past_robots()
    while tasks:
        bench.end(tasks[0], content_type="text/html")
        tasks = bench.tasks(after_s=1.5)
    bench.crawl.save_state(0.0, 0.0, bench.now)
    assert list(bench.ledger.records(SPAM)) == []
    assert [each for each in bench.ledger.records(QUARANTINES) if each.pattern == SPAM_PATTERN] == []
