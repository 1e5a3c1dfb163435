"""With one connection and no delay a crawl makes the same requests in the same order, however long anything takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder
from gossamer.engine.crawl import Crawl
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.ports import Ledger
from gossamer.sim.driver import ImaginedAnswer, ImaginedWeb, VirtualDriver
from gossamer.sim.scenarios import START, ImaginedSites, Scenario, many_hosts

HOSTS = 40


class _UnevenTime(VirtualDriver):
    """Answers take any time, names expire at any time, and the crawl is asked and committed in between."""

    def __init__(self, crawl: Crawl, web: ImaginedWeb, started_at: float, ledger: Ledger, draw: Random) -> None:
        super().__init__(crawl, web, started_at)
        self._ledger = ledger
        self._draw = draw

    def _advance(self, until: float) -> bool:
        ends_at = self._pending[0][0] if self._pending else self.now
        for _ in range(self._draw.randrange(3)):
            self.now = self._draw.uniform(self.now, max(self.now, ends_at))
            self._place_tasks()
        if self._draw.randrange(20) == 0:
            self._ledger.commit()
        return super()._advance(until)

    def _happen(self, what: str, result: Result | None) -> None:
        if result is None and not what.startswith("sent "):
            until = self.now + self._draw.choice([0.5, 3.0, 100.0])
            self._crawl.learn_address(what, self._web.resolve(what)[0], until, self.now)
        else:
            super()._happen(what, result)


class _UnevenWeb:
    def __init__(self, sites: ImaginedSites, draw: Random) -> None:
        self._sites = sites
        self._draw = draw
        self.resolve = sites.resolve

    def answer(self, task: FetchTask, now: float) -> ImaginedAnswer:
        latency_s = self._draw.choice([0.001, 0.05, 2.0])
        return ImaginedAnswer(latency_s / 2, latency_s, self._sites.answer(task, now).result)


def _moved_robots(target: str) -> Callable[[FetchTask, float], Result | None]:
    """Return a server whose robots.txt is at another host: requests that rank before all pages, several at a time."""

    def says(task: FetchTask, _now: float) -> Result | None:
        is_first = task.kind is FetchKind.ROBOTS and not task.hops
        return Result(task.id, Outcome.REDIRECT, status=302, redirect_to=target) if is_first else None

    return says


def _sites() -> ImaginedSites:
    web = many_hosts(HOSTS, 18, fanout=6)
    for n, host in enumerate(web.hosts.values()):
        host.cross_links = tuple(f"http://h{(7 * n + k) % HOSTS}.test/" for k in (1, 3, 11))
        host.robots = b"User-agent: *\nDisallow: /3\n" if n % 4 == 0 else b""
        if n % 5 == 0:
            host.says = _moved_robots(f"http://h{(n + 20) % HOSTS}.test/robots.txt")
    return web


def _sequence(scenario: Scenario, seed: int) -> list[str]:
    """Return the requests of a crawl; `seed` decides how long everything takes. 0: always the same."""
    crawl, driver = scenario.prepare()
    if seed:
        draw = Random(seed)
        driver = _UnevenTime(crawl, _UnevenWeb(scenario.web, draw), scenario.started_at, scenario.ledger, draw)
    assert driver.run(max_wait_s=1000.0) == "exhausted"
    return [request.url for request in driver.requests]


def _scenario(order: QueueOrder, limits: FrontierLimits, target: int | None, ledger: Ledger, at: float) -> Scenario:
    return Scenario(
        _sites(),
        ["http://h0.test/", "http://h31.test/"],
        limits,
        delay_s=0.0,
        order=order,
        target_domains=target,
        rules=CrawlRules(
            continues_after_target=target is not None, host_ranks={f"h{n}.test": n % 10 / 10 for n in range(HOSTS)}
        ),
        ledger=ledger,
        started_at=at,
    )


@pytest.mark.parametrize("target", [None, 15])
@pytest.mark.parametrize("room", [(50_000, 10_000), (3, 1), (8, 2)], ids=["all", "three", "eight"])
@pytest.mark.parametrize("order", QueueOrder)
def test_how_long_anything_takes_does_not_change_the_order(
    order: QueueOrder, room: tuple[int, int], target: int | None, tmp_path: Path
) -> None:
    def limits() -> FrontierLimits:
        return FrontierLimits(
            connections=1, max_depth=50, max_hosts_in_memory=room[0], max_idle_hosts=room[1], max_urls_in_memory=1
        )

    expected = _sequence(_scenario(order, limits(), target, MemoryLedger(), START), 0)
    assert len({url for url in expected if not url.endswith("/robots.txt")}) > HOSTS * 16
    for seed in (1, 2):
        ledger = LocalLedger(tmp_path / str(seed))
        ledger.open()
        assert _sequence(_scenario(order, limits(), target, ledger, START + seed / 7), seed) == expected
        ledger.abandon()
