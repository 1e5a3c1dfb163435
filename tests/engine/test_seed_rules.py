"""What is found from a seed with rules of its own obeys these, and knows its seed, whatever happens to the crawl."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.ledger.tables import HELD, SEEDS
from gossamer.core.links.scope import Reach
from gossamer.core.url.forms import link_to, links_from
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.crawl import Crawl
from gossamer.engine.rules import CrawlRules
from gossamer.model.errors import UsageError
from gossamer.model.events import EventName
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result, Source, UrlRecord, UrlState
from gossamer.model.state import SeedRecord
from gossamer.ports import Ledger
from gossamer.sim.driver import VirtualDriver
from gossamer.sim.scenarios import START, ImaginedHost, ImaginedSites, Scenario, many_hosts

A, B = "http://h0.test/", "http://h1.test/"


def rows(ledger: Ledger) -> dict[str, UrlRecord]:
    ledger.commit()
    return {row.url: row for _, row in ledger.urls() if row.kind is FetchKind.PAGE}


def fetched(driver: VirtualDriver) -> set[str]:
    return {request.url for request in driver.requests if not request.url.endswith("robots.txt")}


def chain(length: int, *, hosts: int = 1) -> ImaginedSites:
    """Return hosts whose page n links to page n + 1 only, and page 0 to the next host."""
    return many_hosts(hosts, length, fanout=1)


def seeded(
    web: ImaginedSites,
    ledger: Ledger,
    *seeds: SeedRecord,
    max_depth: int = 3,
    reach: Reach = Reach.HOST,
    rules: CrawlRules | None = None,
    target_domains: int | None = None,
    started_at: float = START,
) -> tuple[Crawl, VirtualDriver, Scenario]:
    scenario = Scenario(
        web,
        [seed.url for seed in seeds],
        FrontierLimits(max_depth=max_depth),
        delay_s=0.0,
        reach=reach,
        rules=rules or CrawlRules(),
        target_domains=target_domains,
        seed_rules=[seed for seed in seeds if seed.stated],
        ledger=ledger,
        started_at=started_at,
    )
    return *scenario.prepare(), scenario


def finish(crawl: Crawl, driver: VirtualDriver, ledger: Ledger) -> None:
    """Run a crawl to its end, and store its state."""
    driver.run()
    crawl.save_state(0.0, 0.0, driver.now)
    ledger.commit()


def hosts_of(urls: set[str]) -> set[str]:
    return {url.split("/")[2] for url in urls}


def test_each_seed_is_followed_to_its_own_depth(ledger: Ledger) -> None:
    web = chain(20, hosts=3)
    _, driver, _ = seeded(
        web, ledger, SeedRecord(A, depth=1), SeedRecord(B, depth=7), SeedRecord("http://h2.test/"), max_depth=3
    )
    driver.run()
    depths = {host: max(row.depth for url, row in rows(ledger).items() if host in url) for host in ("h0", "h1", "h2")}
    assert depths == {"h0": 1, "h1": 7, "h2": 3}


@pytest.mark.parametrize(
    ("scope", "found"),
    [("page", {"h0.test"}), ("host", {"h0.test"}), ("any", {"h0.test", "h1.test", "h2.test"}), ("", {"h0.test"})],
)
def test_each_seed_is_followed_within_its_own_scope(ledger: Ledger, scope: str, found: set[str]) -> None:
    _, driver, _ = seeded(many_hosts(3, 5), ledger, SeedRecord(A, scope=scope, metadata={"x": "y"}), max_depth=9)
    driver.run()
    assert hosts_of(fetched(driver)) == found
    assert (len(fetched(driver)) == 1) is (scope == "page")


def test_the_scope_of_one_seed_is_not_the_scope_of_another(ledger: Ledger) -> None:
    web = many_hosts(4, 5)
    _, driver, _ = seeded(web, ledger, SeedRecord(A), SeedRecord("http://h2.test/", scope="page"), reach=Reach.DOMAIN)
    driver.run()
    assert {url for url in fetched(driver) if "h2.test" in url} == {"http://h2.test/"}
    assert len(fetched(driver)) == 6
    mixed, second = MemoryLedger(), many_hosts(4, 5)
    _, driver, scenario = seeded(second, mixed, SeedRecord(A, scope="any", depth=9), SeedRecord("http://h2.test/"))
    driver.run()
    assert hosts_of(fetched(driver)) == {"h0.test", "h1.test", "h2.test"}, "h3 is found on a page of the second seed"
    assert not [event for event in scenario.events if event.reason == "out_of_scope" and "h0.test" in event.url]


def test_every_page_knows_the_seed_that_it_descends_from(ledger: Ledger) -> None:
    web = many_hosts(4, 5)
    _, driver, _ = seeded(
        web,
        ledger,
        SeedRecord(A, scope="host", metadata={"team": "news"}),
        SeedRecord(B, scope="any", metadata={"team": "sport"}),
        SeedRecord("http://h3.test/"),
        max_depth=9,
    )
    driver.run()
    numbers = {record.url: record.number for record in ledger.records(SEEDS)}
    assert numbers == {A: 1, B: 2}
    by_host = {
        host: {row.seed for url, row in rows(ledger).items() if host in url} for host in ("h0", "h1", "h2", "h3")
    }
    assert by_host == {"h0": {1}, "h1": {2}, "h2": {2}, "h3": {0}}


def redirecting(target: str) -> ImaginedHost:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        return Result(task.id, Outcome.REDIRECT, status=301, redirect_to=target)

    return ImaginedHost(says=says)


def test_the_target_of_a_redirect_extends_the_scope_of_its_seed_and_no_other(ledger: Ledger) -> None:
    web = many_hosts(3, 5)
    web.hosts["moved.test"] = redirecting(B)
    web.hosts["h2.test"].cross_links = (B + "4",)
    seeds = SeedRecord("http://moved.test/", scope="host", metadata={"k": "v"}), SeedRecord("http://h2.test/")
    crawl, driver, _ = seeded(web, ledger, *seeds, reach=Reach.HOST)
    driver.run()
    assert {url for url in fetched(driver) if "h1" in url} == {B, *(f"{B}{n}" for n in range(1, 5))}
    assert {row.seed for url, row in rows(ledger).items() if "h1" in url or "moved" in url} == {1}
    assert crawl.state.scope == ["http://h2.test/"]
    web.hosts["h1.test"].pages = 9
    _, driver, _ = seeded(web, ledger, SeedRecord("http://h1.test/7"), started_at=driver.now, reach=Reach.PAGE)
    (record,) = ledger.records(SEEDS)
    assert record.joined == [B]


def test_a_bare_domain_without_https_has_its_rules_over_http(ledger: Ledger) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        is_https = task.url.startswith("https:")
        return Result(task.id, Outcome.CONNECT_FAILED, error="refused") if is_https else None

    web = many_hosts(2, 9, says=says, fanout=1)
    scenario = Scenario(
        web,
        ["https://h0.test/"],
        FrontierLimits(max_depth=1),
        reach=Reach.PAGE,
        is_https_first=True,
        seed_rules=[SeedRecord("https://h0.test/", scope="prefix", depth=4, metadata={"k": "v"})],
        ledger=ledger,
    )
    _, crawl, _ = scenario.run()
    dead = [url for url, row in rows(ledger).items() if row.state is UrlState.DEAD]
    assert (dead, crawl.totals.dead) == ([], 0)
    found = {url: row.seed for url, row in rows(ledger).items() if url.startswith("http:")}
    assert found == {A: 1, **{f"{A}{n}": 1 for n in range(1, 5)}}


def with_sitemap(web: ImaginedSites, host: str, *entries: str) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is not FetchKind.SITEMAP:
            return None
        return Result(
            task.id,
            Outcome.OK,
            status=200,
            content_type="application/x-sitemap",
            links=links_from(task.url, list(entries)),
        )

    web.hosts[host].robots = f"Sitemap: http://{host}/sitemap.xml\n".encode()
    web.hosts[host].says = says


@pytest.mark.parametrize(("scope", "depth", "found"), [("host", 1, 1), ("host", 0, 0), ("page", 5, 0), ("", 1, 1)])
def test_a_sitemap_belongs_to_the_seed_of_its_host(ledger: Ledger, scope: str, depth: int, found: int) -> None:
    web = many_hosts(2, 1)
    with_sitemap(web, "h0.test", "/900")
    seeds = SeedRecord(A, scope=scope, depth=depth, metadata={"team": "news"}), SeedRecord(B)
    _, driver, _ = seeded(web, ledger, *seeds, max_depth=0, reach=Reach.HOST)
    driver.run()
    listed = [row for url, row in rows(ledger).items() if url.endswith("/900")]
    assert [row.seed for row in listed] == [1] * found


def test_a_sitemap_is_read_for_the_seed_that_reaches_it(ledger: Ledger) -> None:
    web = many_hosts(1, 1)
    with_sitemap(web, "h0.test", "/900")
    _, driver, _ = seeded(web, ledger, SeedRecord(A, scope="page"), SeedRecord(f"{A}0", scope="host", depth=2))
    driver.run()
    assert rows(ledger)[f"{A}900"].seed == 2


# -- whatever happens to the crawl ------------------------------------------------------------------


def test_rules_and_seeds_survive_a_restart(ledger: Ledger) -> None:
    web = many_hosts(3, 30)
    first = SeedRecord(A, scope="host", depth=9, metadata={"team": "news"})
    _, driver, _ = seeded(web, ledger, first, max_depth=1, reach=Reach.PAGE)
    driver.run(until=START + 0.3)
    assert 1 < len(fetched(driver)) < 30
    ledger.commit()
    _, again, _ = seeded(web, ledger, max_depth=1, reach=Reach.PAGE, started_at=driver.now + 1)
    again.run()
    assert {url: row.seed for url, row in rows(ledger).items()} == {A: 1, **{f"{A}{n}": 1 for n in range(1, 30)}}


def test_pages_of_a_shard_that_was_away_keep_their_seed(ledger: Ledger) -> None:
    web = many_hosts(6, 6)
    crawl, driver, _ = seeded(web, ledger, SeedRecord(A, scope="any", depth=20), reach=Reach.PAGE)
    driver.run(until=START + 0.3)
    for host in ("h0.test", "h2.test"):
        crawl.release([shard_of(host_id(host))], driver.now)
    ledger.commit()
    driver.run(until=driver.now + 5)
    for host in ("h0.test", "h2.test"):
        crawl.take(shard_of(host_id(host)), driver.now)
    assert driver.run() == "exhausted"
    assert len(rows(ledger)) == 36
    assert {row.seed for row in rows(ledger).values()} == {1}


def test_links_that_are_held_back_keep_their_seed(ledger: Ledger) -> None:
    web = many_hosts(6, 5)
    seed = SeedRecord(A, scope="any", depth=20, metadata={"k": "v"})
    continues = CrawlRules(continues_after_target=True)
    crawl, driver, _ = seeded(web, ledger, seed, reach=Reach.PAGE, rules=continues, target_domains=4)
    driver.run(until=START + 0.3)
    crawl.save_state(0.0, 0.0, driver.now)
    ledger.commit()
    assert {held.seed for held in ledger.records(HELD)} == {1}
    _, again, _ = seeded(web, ledger, reach=Reach.PAGE, rules=continues, target_domains=4, started_at=driver.now + 1)
    again.run()
    assert len(rows(ledger)) == 30
    assert {row.seed for row in rows(ledger).values()} == {1}


def test_a_reserve_of_the_first_pass_keeps_its_seed(ledger: Ledger) -> None:
    web = many_hosts(1, 1, cross_links=("http://h1.test/0", "http://h1.test/1"))
    web.hosts["h1.test"] = ImaginedHost(pages=1, status=lambda url, _now: 404 if url.endswith("/0") else 200)
    seed = SeedRecord(A, scope="any", metadata={"k": "v"})
    _, driver, _ = seeded(web, ledger, seed, reach=Reach.PAGE, target_domains=2)
    driver.run()
    assert rows(ledger)["http://h1.test/1"].seed == 1


# -- seeds that are added to a crawl ----------------------------------------------------------------


def add(crawl: Crawl, now: float, *seeds: SeedRecord) -> int:
    rules: Mapping[bytes, SeedRecord] = {link_to(seed.url).id: seed for seed in seeds if seed.stated}
    return crawl.add_seeds([link_to(seed.url) for seed in seeds], now, rules=rules)


def test_seeds_with_rules_can_be_added_to_a_finished_crawl(ledger: Ledger) -> None:
    web = chain(20, hosts=3)
    _, driver, _ = seeded(web, ledger, SeedRecord(A, metadata={"k": "v"}), max_depth=2)
    driver.run()
    ledger.commit()
    _, again, _ = seeded(web, ledger, SeedRecord(B, scope="host", depth=5), max_depth=2, started_at=driver.now + 1)
    again.run()
    assert {url: row.seed for url, row in rows(ledger).items() if "h1" in url} == {
        B: 2,
        **{f"{B}{n}": 2 for n in range(1, 6)},
    }


def test_a_url_belongs_to_the_seed_by_which_it_was_first_found(ledger: Ledger) -> None:
    web = chain(20)
    _, driver, _ = seeded(web, ledger, SeedRecord(A), max_depth=2)
    driver.run()
    ledger.commit()
    late = SeedRecord(f"{A}1", depth=9, metadata={"team": "news"})
    crawl, again, _ = seeded(web, ledger, late, max_depth=2, started_at=driver.now + 1)
    again.run()
    assert {row.seed for row in rows(ledger).values()} == {0}
    text = "was found before as a link, so its rules and metadata (depth=9 team=news) do not apply"
    assert list(crawl.seeds.without_effect([late, SeedRecord(B, depth=1)])) == [(late, text)]
    assert list(ledger.records(SEEDS)) == []


def test_the_same_seeds_again_change_nothing(ledger: Ledger) -> None:
    web, seed = chain(9), SeedRecord(A, scope="host", depth=2, metadata={"team": "news"})
    _, driver, _ = seeded(web, ledger, seed)
    driver.run()
    ledger.commit()
    crawl, again, scenario = seeded(web, ledger, SeedRecord(A, scope="host", depth=2, metadata={"team": "news"}))
    assert not crawl.rereading.is_pending
    add(crawl, again.now, SeedRecord(A))
    again.run()
    (record,) = ledger.records(SEEDS)
    assert (record.number, record.stated) == (1, "scope=host depth=2 team=news")
    assert fetched(again) == set()
    assert not [event for event in scenario.events if event.event is EventName.WARNING]


def test_metadata_of_a_seed_can_be_changed_and_its_scope_cannot(ledger: Ledger) -> None:
    web = chain(9)
    _, driver, _ = seeded(web, ledger, SeedRecord(A, scope="host", metadata={"team": "news"}))
    driver.run()
    ledger.commit()
    seeded(web, ledger, SeedRecord(A, scope="host", metadata={"team": "sport"}))
    (record,) = ledger.records(SEEDS)
    assert record.metadata == {"team": "sport"}
    with pytest.raises(
        UsageError, match=r"http://h0\.test/ is a seed of this crawl with scope=host; it cannot change to scope=any"
    ):
        seeded(web, ledger, SeedRecord(A, scope="any"))
    seeded(web, ledger, SeedRecord(A, depth=9, metadata={"desk": "x"}))
    (record,) = ledger.records(SEEDS)
    assert record.stated == "scope=host depth=9 team=sport desk=x", "what is not given stays"


def reread(crawl: Crawl, ledger: Ledger, web: ImaginedSites, now: float) -> list[str]:
    """Read again what the crawl wants to, as the runtime does from the archive; return the URLs."""
    ledger.commit()
    read = list(crawl.rereading.pages(b""))
    for url_id, row in read:
        task = FetchTask(0, row.kind, row.url, url_id, row.url.split("/")[2], (), row.depth, 0, 0, now)
        crawl.rereading.follow(url_id, row, web.answer(task, now).result, now)
    crawl.rereading.finish(now)
    return sorted(row.url for _, row in read)


def test_a_raised_limit_of_the_crawl_does_not_concern_seeds_with_their_own(ledger: Ledger) -> None:
    web = chain(20, hosts=3)
    seeds = (SeedRecord(A, depth=1), SeedRecord(B, depth=4), SeedRecord("http://h2.test/", metadata={"k": "v"}))
    first, driver, _ = seeded(web, ledger, *seeds, max_depth=2)
    finish(first, driver, ledger)
    crawl, again, _ = seeded(web, ledger, max_depth=6, started_at=driver.now + 1)
    assert reread(crawl, ledger, web, again.now) == ["http://h2.test/2"]
    again.run()
    depths = {host: max(row.depth for url, row in rows(ledger).items() if host in url) for host in ("h0", "h1", "h2")}
    assert depths == {"h0": 1, "h1": 4, "h2": 6}


def test_the_depth_of_a_seed_can_be_raised(ledger: Ledger) -> None:
    web = chain(20, hosts=2)
    first, driver, _ = seeded(web, ledger, SeedRecord(A, depth=1), SeedRecord(B, depth=1), max_depth=2)
    finish(first, driver, ledger)
    crawl, again, _ = seeded(web, ledger, SeedRecord(A, depth=5), max_depth=2, started_at=driver.now + 1)
    assert crawl.rereading.is_pending
    assert reread(crawl, ledger, web, again.now) == [f"{A}1"]
    again.run()
    depths = {host: max(row.depth for url, row in rows(ledger).items() if host in url) for host in ("h0", "h1")}
    assert depths == {"h0": 5, "h1": 1}


def test_a_first_pass_that_stopped_goes_on_with_the_depths_of_its_seeds(ledger: Ledger) -> None:
    web = many_hosts(3, 5)
    seed = SeedRecord(A, scope="any", depth=2)
    first, driver, _ = seeded(web, ledger, seed, max_depth=0, target_domains=2)
    finish(first, driver, ledger)
    crawl, again, _ = seeded(
        web,
        ledger,
        max_depth=0,
        rules=CrawlRules(continues_after_target=True),
        target_domains=2,
        started_at=driver.now + 1,
    )
    reread(crawl, ledger, web, again.now)
    again.run()
    assert {url for url, row in rows(ledger).items() if row.depth <= 2 and "h0" in url} == {
        A,
        *(f"{A}{n}" for n in range(1, 5)),
    }


def test_a_page_that_is_fetched_again_keeps_its_seed(ledger: Ledger) -> None:
    web = chain(3)
    rules = CrawlRules(cooldown_s=10.0)
    _, driver, _ = seeded(web, ledger, SeedRecord(A, metadata={"k": "v"}), rules=rules)
    driver.run()
    ledger.commit()
    later = driver.now + 100
    _, again, _ = seeded(web, ledger, SeedRecord(f"{A}0"), rules=rules, started_at=later)
    again.run()
    assert rows(ledger)[f"{A}1"].visits == 2
    assert rows(ledger)[f"{A}1"].seed == 1


def test_a_probe_is_sent_within_the_scope_of_its_seed(ledger: Ledger) -> None:
    def says(task: FetchTask, _now: float) -> Result | None:
        if task.kind is FetchKind.ROBOTS:
            return None
        links = links_from(task.url, [f"/x{n}" for n in range(12)]) if task.url == A else []
        result = Result(task.id, Outcome.OK, status=200, content_type="text/html", content_hash=task.url_id)
        result.text_hash, result.links = b"nothing.", links
        return result

    web = many_hosts(1, 1, says=says)
    _, driver, _ = seeded(web, ledger, SeedRecord(A, scope="host"), reach=Reach.PAGE)
    driver.run()
    assert [row.source for row in rows(ledger).values()].count(Source.PROBE) == 1
