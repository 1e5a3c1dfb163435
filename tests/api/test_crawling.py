"""A crawl in a program: events, adding URLs, seeds that fail, wrong use."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.reading.folder import CrawlReader
from tests.e2e.program import run
from tests.e2e.program import run as run_verb
from tests.servers.plain_site import Answer, PlainSite, plain_site
from tests.support.sites.trap_server import TrapServer
from tests.support.sites.trap_sites import TRAPS

SLACK_S = 0.05  # the server's threads may be late by that, and then early


def test_events_say_what_happened(site: PlainSite, options: dict[str, Any]) -> None:
    async def run() -> tuple[list[gossamer.Event], gossamer.Crawling]:
        async with gossamer.crawl(site.url, **options) as crawl:
            return [event async for event in crawl.events()], crawl

    events, crawl = asyncio.run(asyncio.wait_for(run(), 30))
    names = [event.event.value for event in events]
    assert {"robots_fetched", "fetch_ok", "error", "redirect", "robots_disallow"} <= set(names)
    assert names[-1] == "stopped"
    assert crawl.summary is not None
    assert (crawl.summary.pages, crawl.summary.finished) == (3, "exhausted")


def test_a_crawl_that_holds_urls_back_says_so(options: dict[str, Any]) -> None:
    async def run(seed: str) -> tuple[list[gossamer.Event], gossamer.Crawling]:
        more = {"traps": True, "trap_budget": 0, "max_pages": 2000, "max_depth": 2000}
        async with gossamer.crawl(seed, **options | more) as crawl:
            return [event async for event in crawl.events()], crawl

    with TrapServer(TRAPS["a counter"], None) as server, pytest.warns(gossamer.IncompleteCrawlWarning, match="held"):
        events, crawl = asyncio.run(asyncio.wait_for(run(server.seed), 30))
    assert crawl.summary is not None
    assert crawl.summary.finished == "held"
    (warning,) = [event for event in events if event.reason == "held_back"]
    assert {warning.rule: warning.links} == crawl.summary.held
    assert {"trap_suspected", "trap_quarantined"} <= {event.event.value for event in events}


@pytest.mark.parametrize("delays_ms", [(200, 200), (200, 400)])
def test_crawls_that_run_at_once_share_the_pace_of_a_host(tmp_path: Path, delays_ms: tuple[int, int]) -> None:
    names = ("one", "two")

    async def crawl(name: str, delay_ms: int) -> None:
        agent = f"{name}/1.0 (+me@example.org)"
        async with gossamer.crawl(
            site.url, out=tmp_path / name, politeness_ms=delay_ms, user_agent=agent, near_dup="off"
        ) as crawl:
            await crawl.finish()
        assert crawl.summary is not None
        assert (crawl.summary.pages, crawl.summary.finished) == (9, "exhausted")

    async def both() -> None:
        await asyncio.gather(*map(crawl, names, delays_ms))

    with plain_site() as site:
        links = "".join(f"<a href=/{number}>{number}</a> " for number in range(8))
        site.answers = {"/": Answer(links), **{f"/{number}": Answer(f"<p>page {number}") for number in range(8)}}
        asyncio.run(asyncio.wait_for(both(), 60))
    times = [at for at, _ in site.arrivals]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    first_s, second_s = (delay / 1000 for delay in delays_ms)
    assert len(times) == 2 * 10
    assert min(gaps) > first_s - SLACK_S
    by_name = [agent.partition("/")[0] for _, agent in site.arrivals]
    # While both run, each of them has its turn, and the longer delay counts before and after its requests.
    shared = min(len(by_name) - 1 - by_name[::-1].index(name) for name in names)
    assert by_name[:shared].count("one") == pytest.approx(by_name[:shared].count("two"), abs=1)
    slow = [gap for gap, pair in zip(gaps, itertools.pairwise(by_name), strict=True) if "two" in pair]
    assert min(slow) > second_s - SLACK_S
    for name in names:
        assert run_verb("audit", str(tmp_path / name)).returncode == 0


def test_events_and_pages_can_be_read_side_by_side(site: PlainSite, options: dict[str, Any]) -> None:
    async def run() -> tuple[int, int]:
        async with gossamer.crawl(site.url, **options) as crawl:

            async def count_pages() -> int:
                return len([page async for page in crawl])

            async def count_events() -> int:
                return len([event async for event in crawl.events() if event.event.value == "fetch_ok"])

            pages, events = await asyncio.gather(count_pages(), count_events())
            return pages, events

    assert asyncio.run(asyncio.wait_for(run(), 30)) == (3, 3)


def test_a_reader_of_events_that_leaves_does_not_stop_the_crawl(site: PlainSite, options: dict[str, Any]) -> None:
    async def run() -> gossamer.Crawling:
        async with gossamer.crawl(site.url, **options) as crawl:
            events = crawl.events()
            async for _ in events:
                break
            await events.aclose()  # type: ignore[attr-defined]
            await crawl.finish()
        return crawl

    summary = asyncio.run(asyncio.wait_for(run(), 30)).summary
    assert summary is not None
    assert summary.pages == 3


def test_urls_may_be_added_until_the_last_page_is_handled(site: PlainSite, options: dict[str, Any]) -> None:
    site.answers["/"] = Answer("<p>No links here")
    site.answers["/extra"] = Answer("<p>Added by the program")

    async def run() -> tuple[list[tuple[str, dict[str, Any]]], list[int]]:
        found, new = [], []
        async with gossamer.crawl(site.url, **options) as crawl:
            async for page in crawl:
                found.append((page.url.removeprefix(site.url), page.meta))
                if page.url == site.url:
                    new.append(await crawl.add(f"{site.url}extra", meta={"why": "because"}))
                    new.append(await crawl.add([site.url]))
            with pytest.raises(gossamer.GossamerError, match="has ended"):
                await crawl.add(f"{site.url}late")
        return found, new

    found, new = asyncio.run(asyncio.wait_for(run(), 30))
    assert found == [("", {}), ("extra", {"why": "because"})]
    assert new == [1, 0]


@pytest.mark.parametrize(
    ("url", "words"), [("https://example.org/", "needs contact"), ("ftp://localhost/", "cannot be crawled")]
)
def test_what_cannot_be_added_is_said(site: PlainSite, options: dict[str, Any], url: str, words: str) -> None:
    async def run() -> None:
        async with gossamer.crawl(site.url, **options) as crawl:
            await crawl.add(url)

    with pytest.raises(gossamer.UsageError, match=words):
        asyncio.run(asyncio.wait_for(run(), 30))


def test_metadata_and_added_urls_survive_a_kill(site: PlainSite, options: dict[str, Any]) -> None:
    """The first program is killed when metadata are committed, and before a page has them."""
    site.answers["/extra"] = Answer("<p>Added by the program")
    program = f"""
import asyncio, os, signal, gossamer

async def main():
    hold = lambda link: {{"from": link.text}}
    async with gossamer.crawl({site.url!r}, out={str(options["out"])!r}, accept_link=hold) as crawl:
        async for page in crawl:
            await crawl.add({site.url + "extra"!r}, meta={{"by": "hand"}})
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr

    async def resume() -> dict[str, dict[str, Any]]:
        async with gossamer.crawl([], **options) as crawl:
            return {page.url.removeprefix(site.url): page.meta async for page in crawl}

    assert '{"by":"hand"}, attached to its link' in run("why", str(options["out"]), f"{site.url}extra").stdout
    metas = asyncio.run(asyncio.wait_for(resume(), 60))
    assert metas == {"a": {"from": "Page A"}, "target": {"from": "Moved"}, "extra": {"by": "hand"}}


# -- seeds that fail ----------------------------------------------------------------------------------


def test_a_seed_that_fails_is_listed(site: PlainSite, options: dict[str, Any]) -> None:
    async def run() -> list[gossamer.Failure]:
        async with gossamer.crawl([site.url, f"{site.url}none", f"{site.url}private/y"], **options) as crawl:
            await crawl.finish()
        return crawl.failed_seeds

    failed = {failure.url.removeprefix(site.url): failure.outcome for failure in asyncio.run(run())}
    assert failed == {"none": "client_error", "private/y": "robots_denied"}


@pytest.mark.parametrize("answers", [{"/robots.txt": Answer("", 503)}, {"/": Answer("gone", 410)}])
def test_a_crawl_without_any_seed_is_an_error(
    site: PlainSite, options: dict[str, Any], answers: dict[str, Answer]
) -> None:
    site.answers |= answers

    async def run(statuses: Any) -> None:
        async with gossamer.crawl(site.url, **(options | {"max_wait": 0.0}), statuses=statuses) as crawl:
            async for _ in crawl:
                pass

    with pytest.raises(gossamer.SeedsFailedError, match=f"no seed could be fetched: {site.url}"):
        asyncio.run(asyncio.wait_for(run("pages"), 30))
    assert (options["out"] / "report.json").is_file()


def test_a_name_that_does_not_exist_is_told(options: dict[str, Any]) -> None:
    failures: list[gossamer.Failure] = []

    async def run() -> None:
        async with gossamer.crawl("http://nowhere.test/", **options, on_error=failures.append) as crawl:
            await crawl.finish()

    with pytest.raises(gossamer.SeedsFailedError, match=r"nowhere\.test/: dns"):
        asyncio.run(asyncio.wait_for(run(), 60))
    assert [(each.host, each.url, each.urls) for each in failures] == [("nowhere.test", "", 1)]


# -- wrong use ----------------------------------------------------------------------------------------


def test_a_crawl_that_was_not_started_says_how() -> None:
    async def iterate() -> None:
        async for _ in gossamer.crawl("http://localhost/"):
            pass

    async def read_events() -> None:
        async for _ in gossamer.crawl("http://localhost/").events():
            pass

    crawl = gossamer.crawl("http://localhost/")
    for use in (iterate(), read_events(), crawl.finish(), crawl.add("http://localhost/x")):
        with pytest.raises(gossamer.UsageError, match=r"expected 'async with gossamer\.crawl"):
            asyncio.run(use)


def test_a_crawl_is_started_once(site: PlainSite, options: dict[str, Any]) -> None:
    async def run() -> None:
        async with gossamer.crawl(site.url, **options) as crawl:
            await crawl.finish()
        async with crawl:
            pass

    with pytest.raises(gossamer.UsageError, match="started once"):
        asyncio.run(run())


def test_the_remembered_contact_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(gossamer.UsageError, match="contact"):
        gossamer.crawl("https://example.org/")
    (tmp_path / "gossamer").mkdir()
    (tmp_path / "gossamer" / "contact").write_text("me@example.org\n")
    assert gossamer.crawl("https://example.org/")._settings.contact == "me@example.org"
    assert gossamer.crawl("https://example.org/", contact="you@example.org")._settings.contact == "you@example.org"
    assert os.listdir(tmp_path) == ["gossamer"]


def test_two_crawls_at_once_have_keys_of_their_own(site: PlainSite, options: dict[str, Any], tmp_path: Path) -> None:
    def key_of(out: Path) -> bytes:
        with CrawlReader(out) as crawl:
            return crawl.ledger.identity.record.key

    outs = [tmp_path / "first", tmp_path / "second"]

    async def run() -> list[set[str]]:
        async with (
            gossamer.crawl(site.url, **options | {"out": outs[0]}) as first,
            gossamer.crawl(site.url, **options | {"out": outs[1]}) as second,
        ):
            found: list[set[str]] = [set(), set()]
            async for page in first:  # by turns: each page is looked up while the other crawl goes on
                found[0].add(page.url)
                async for other in second:
                    found[1].add(other.url)
                    break
            async for other in second:
                found[1].add(other.url)
            return found

    one, other = asyncio.run(asyncio.wait_for(run(), 30))
    assert one == other
    assert len(one) == 3
    assert key_of(outs[0]) != key_of(outs[1])
    for out in outs:
        checked = run_verb("verify", str(out))
        assert checked.returncode == 0, checked.stdout
