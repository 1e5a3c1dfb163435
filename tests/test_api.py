"""The examples of docs/api.md, run as they stand there, and what they promise."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.model.errors import UsageError
from gossamer.sim.web.web import preset
from tests.servers.web import RunningWeb

DOCS = Path(__file__).resolve().parent.parent / "docs" / "api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


def options(web: RunningWeb, out: Path, **more: Any) -> dict[str, Any]:
    return {
        "out": out,
        "dns": web.dns_address,
        "allow_network": ("127.0.0.0/8",),
        "politeness_ms": 0,
        "max_wait": 3.0,
        "max_pages": 50,
        **more,
    }


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_run(web: RunningWeb, tmp_path: Path, number: int) -> None:
    seed = web.seeds()[0]
    example = EXAMPLES[number].replace("https://example.org/", seed)
    network = f"dns={web.dns_address!r}, allow_network=('127.0.0.0/8',), politeness_ms=0, max_wait=3.0"
    example = example.replace('contact="you@example.org"', f'contact="you@example.org", {network}')
    program = [sys.executable, "-c", example]
    done = subprocess.run(program, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(EXAMPLES) == 6
    assert ("exhausted" if number in (2, 5) else seed) in done.stdout


def test_pages_hold_what_was_fetched(web: RunningWeb, tmp_path: Path) -> None:
    async def run() -> list[gossamer.Page]:
        async with gossamer.crawl(web.seeds(), **options(web, tmp_path / "c")) as pages:
            found = [page async for page in pages]
            assert all(page.content and page.text for page in found)
            assert any(page.links for page in found)
            assert all("content-type" in dict(page.headers) for page in found)
        assert pages.summary is not None
        assert pages.summary.pages == len(found)
        assert (tmp_path / "c" / "report.html").is_file()
        return found

    found = asyncio.run(run())
    assert len({page.url for page in found}) == len(found) >= 40


def test_leaving_early_stops_cleanly_and_the_crawl_can_go_on(web: RunningWeb, tmp_path: Path) -> None:
    async def first() -> str:
        async with gossamer.crawl(web.seeds(), **options(web, tmp_path / "c")) as pages:
            async for page in pages:
                return page.url
        return ""

    async def again() -> tuple[list[str], int]:
        async with gossamer.crawl([], out=tmp_path / "c") as pages:
            urls = [page.url async for page in pages]
        assert pages.summary is not None
        return urls, pages.summary.pages

    url = asyncio.run(first())
    urls, total = asyncio.run(again())
    assert url
    assert url not in urls
    assert len(urls) < total == 50


def test_a_slow_program_holds_the_crawl_up(web: RunningWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.api.crawling.MAX_WAITING", 5)
    monkeypatch.setattr("gossamer.api.crawling.RESUME_BELOW", 2)

    async def run() -> int:
        most = 0
        async with gossamer.crawl(web.seeds(), **options(web, tmp_path / "c", connections=2)) as pages:
            async for _ in pages:
                await asyncio.sleep(0.005)
                most = max(most, len(pages._pages.waiting))
        assert pages.summary is not None
        assert pages.summary.pages == 50
        return most

    assert asyncio.run(run()) <= 5 + 2  # what was on its way when the crawl was held


def test_a_hook_that_fails_ends_the_crawl_with_its_error(web: RunningWeb, tmp_path: Path) -> None:
    def accept(link: gossamer.FoundLink) -> bool:
        raise ZeroDivisionError(link.url)

    async def run() -> None:
        async with gossamer.crawl(web.seeds(), **options(web, tmp_path / "c", accept_link=accept)) as pages:
            await pages.finish()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())
    assert (tmp_path / "c" / "report.json").is_file()


def test_a_score_that_is_no_number_is_the_hooks_error(web: RunningWeb, tmp_path: Path) -> None:
    async def run() -> None:
        hooks: dict[str, Any] = {"score_link": lambda _link: "high"}
        async with gossamer.crawl(web.seeds(), **options(web, tmp_path / "c", **hooks)) as pages:
            await pages.finish()

    with pytest.raises(ValueError, match="high"):
        asyncio.run(run())


def test_crawls_begun_in_the_same_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda *_: "now")
    for name in ("localhost-now", "localhost-now-2", "localhost-now-3"):
        folder = gossamer.crawl("http://localhost/").out
        assert folder == Path("crawls") / name
        folder.mkdir(parents=True)


def test_links_that_a_hook_leaves_out_are_not_asked_for(web: RunningWeb, tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with gossamer.crawl(
            web.seeds(), **options(web, tmp_path / "c", accept_link=lambda link: link.depth < 2)
        ) as pages:
            return [page.url async for page in pages if page.depth > 1]

    assert asyncio.run(run()) == []


@pytest.mark.parametrize(
    ("seeds", "settings", "words"),
    [
        ("https://example.org/", {}, "contact"),
        ([], {}, "no seeds"),
        ("http://localhost/", {"max_pagse": 1}, "no setting 'max_pagse'; did you mean 'max_pages'"),
        ("http://localhost/", {"max_pages": "many"}, "max"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: Any, settings: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        gossamer.crawl(seeds, **settings)
    assert list(tmp_path.iterdir()) == []
