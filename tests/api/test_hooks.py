"""Hooks: plain and asynchronous ones, what they see, what they attach, and what happens if they raise."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.api.hooks import AwaitedLinkHooks, HookCalls, Hooks
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.links.intake import Intake, IntakeRules
from gossamer.core.links.scope import Reach, Scope
from gossamer.core.url.forms import link_to
from gossamer.engine.admission.link_backlog import FIRST_LINKS
from gossamer.engine.admission.link_review import LinkReview
from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from tests.e2e.program import run
from tests.servers.plain_site import Answer, PlainSite


async def _crawled(site: PlainSite, options: dict[str, Any], **hooks: Any) -> dict[str, gossamer.Page]:
    async with gossamer.crawl(site.url, **options, **hooks) as pages:
        return {page.url.removeprefix(site.url): page async for page in pages}


def awaited(hook: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    async def call(argument: Any) -> Any:
        await asyncio.sleep(0)
        return hook(argument)

    return call


def plain(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return hook


BOTH = pytest.mark.parametrize("form", [plain, awaited])


@BOTH
def test_links_are_shown_with_text_and_may_be_refused(site: PlainSite, options: dict[str, Any], form: Any) -> None:
    seen: dict[str, gossamer.FoundLink] = {}

    def accept(link: gossamer.FoundLink) -> bool:
        seen[link.url.removeprefix(site.url)] = link
        return not link.url.endswith("/a")

    pages = asyncio.run(_crawled(site, options, accept_link=form(accept)))
    assert sorted(pages) == ["", "target"]
    assert "/a" not in site.requests
    assert (seen["a"].text, seen["a"].rel, seen["a"].depth, seen["a"].found_on) == ("Page A", "next", 1, site.url)
    assert seen["target"].text == ""  # a redirect's


@BOTH
def test_what_a_hook_attaches_to_a_link_arrives_with_its_page(
    site: PlainSite, options: dict[str, Any], form: Any
) -> None:
    def accept(link: gossamer.FoundLink) -> bool | dict[str, Any]:
        return {"text": link.text, "n": [1, None]} if link.text else True

    pages = asyncio.run(_crawled(site, options, accept_link=form(accept)))
    assert pages["a"].meta == {"text": "Page A", "n": [1, None]}
    assert pages["target"].meta["text"] == "Moved"  # over a redirect
    assert pages[""].meta == {}


@BOTH
def test_a_link_shows_what_was_attached_to_its_page(site: PlainSite, options: dict[str, Any], form: Any) -> None:
    site.answers["/target"] = Answer('<p>Here <a href="/below">below</a>')
    site.answers["/below"] = Answer("<p>below")

    def accept(link: gossamer.FoundLink) -> dict[str, Any]:
        return {"path": [*link.page_meta.get("path", []), link.text]}

    pages = asyncio.run(_crawled(site, options, accept_link=form(accept)))
    assert pages["below"].meta == {"path": ["Moved", "", "below"]}  # over a redirect


@BOTH
def test_an_empty_dict_accepts_a_link(site: PlainSite, options: dict[str, Any], form: Any) -> None:
    assert "a" in asyncio.run(_crawled(site, options, accept_link=form(lambda _link: {})))


@BOTH
def test_scores_decide_what_comes_first(site: PlainSite, options: dict[str, Any], form: Any) -> None:
    site.answers["/"] = Answer("".join(f'<a href="/{n}">{n}</a>' for n in range(5)))
    site.answers |= {f"/{n}": Answer(f"<p>page {n}") for n in range(5)}
    asyncio.run(_crawled(site, options, score_link=form(lambda link: 10 * int(link.url[-1]))))
    assert site.requests == ["/robots.txt", "/", "/4", "/3", "/2", "/1", "/0"]


@BOTH
def test_pages_and_failures_are_called_back_in_order(site: PlainSite, options: dict[str, Any], form: Any) -> None:
    pages: list[str] = []
    failures: dict[str, gossamer.Failure] = {}

    async def run() -> gossamer.Crawling:
        async with gossamer.crawl(
            site.url,
            **options,
            on_page=form(lambda page: pages.append(page.url)),
            on_error=form(lambda failure: failures.update({failure.url.removeprefix(site.url): failure})),
        ) as crawl:
            await crawl.finish()
        return crawl

    crawl = asyncio.run(run())
    assert pages == [site.url, f"{site.url}a", f"{site.url}target"]
    assert crawl.summary is not None
    assert {path: (each.outcome, each.status) for path, each in failures.items()} == {
        "gone": ("client_error", 404),
        "private/x": ("robots_denied", 0),
    }
    assert failures["private/x"].error == "line 2: Disallow: /private"


@pytest.mark.parametrize("hook", ["accept_link", "score_link", "on_page", "on_error"])
@BOTH
def test_a_hook_that_raises_ends_the_crawl_with_its_error(
    site: PlainSite, options: dict[str, Any], form: Any, hook: str
) -> None:
    def fail(_: Any) -> Any:
        raise ZeroDivisionError("hook")

    async def run() -> None:
        async with gossamer.crawl(site.url, **options, **{hook: form(fail)}) as pages:
            await pages.finish()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(asyncio.wait_for(run(), 20))
    assert (options["out"] / "report.json").is_file()


def test_links_about_which_an_async_hook_could_not_decide_are_not_lost(
    site: PlainSite, options: dict[str, Any]
) -> None:
    async def fail(link: gossamer.FoundLink) -> bool:
        raise ZeroDivisionError(link.url)

    async def accept(_link: gossamer.FoundLink) -> bool:
        return True

    with pytest.raises(ZeroDivisionError):
        asyncio.run(_crawled(site, options, accept_link=fail))
    pages = asyncio.run(_crawled(site, options, accept_link=accept))
    assert {"a", "target"} <= set(pages)
    assert site.requests.count("/") == 1  # it was finished from the archive, and the hook was asked again
    assert run("verify", str(options["out"])).returncode == 0


@pytest.mark.parametrize(
    ("meta", "error", "words"),
    [
        ({"x": object()}, TypeError, "expected a dict of JSON values"),
        ({1: "x"}, TypeError, "keys are not all texts"),
        ({"x": "y" * 5000}, ValueError, "expected 4,096 at most"),
    ],
)
def test_metadata_that_cannot_be_stored_is_the_hooks_error(
    site: PlainSite, options: dict[str, Any], meta: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        asyncio.run(_crawled(site, options, accept_link=lambda _link: meta))


def test_a_plain_hook_that_returns_a_coroutine_is_told_what_to_do(site: PlainSite, options: dict[str, Any]) -> None:
    async def accept(_link: gossamer.FoundLink) -> bool:
        return True

    with pytest.raises(TypeError, match="expected 'async def'"):
        asyncio.run(_crawled(site, options, accept_link=lambda link: accept(link)))  # noqa: PLW0108


def test_async_link_hooks_need_one_process(tmp_path: Path) -> None:
    async def accept(_link: gossamer.FoundLink) -> bool:
        return True

    with pytest.raises(gossamer.UsageError, match="needs workers=1"):
        gossamer.crawl("http://localhost/", out=tmp_path / "c", workers=2, accept_link=accept)


def test_refused_links_that_would_be_stored_for_later_are_dropped() -> None:
    """Of a page with more links than are offered at once, and of links that a rule holds back."""
    how, limits = ordering(QueueOrder.BREADTH), FrontierLimits()
    intake = Intake(Scope(Reach.ANY), how, limits, IntakeRules())
    links = [link_to(f"http://h.test/{number}") for number in range(FIRST_LINKS + 3)]
    task = FetchTask(1, FetchKind.PAGE, "http://h.test/", b"", "h.test", (), 0, 0, 0, 0.0)
    result = Result(1, Outcome.OK, links=list(links))

    async def accept(link: gossamer.FoundLink) -> bool:
        return link.url.endswith(("0", "1"))

    hooks = AwaitedLinkHooks(Hooks(accept_link=accept), lambda link: link, lambda _: None)
    hooks.asks = LinkReview(intake)
    assert asyncio.run(hooks.review(task, result))
    assert result.links == links[: FIRST_LINKS + 2]  # the last one ends with 2
    decide = hooks.of_engine().accept
    assert decide is not None
    found = [gossamer.FoundLink(link.url, link.host, 1, task.url) for link in links[:3]]
    assert [decide(link) for link in found] == [True, True, False]


def test_calls_that_wait_are_dropped_after_one_has_failed() -> None:
    failures: list[Exception] = []
    called: list[int] = []

    async def hook(number: int) -> None:
        called.append(number)
        raise ValueError(number)

    async def run() -> None:
        calls = HookCalls(failures.append, lambda _: None)
        for number in range(3):
            calls.call(hook, number)
        assert calls.is_busy
        await calls.finish()
        assert not calls.is_busy

    asyncio.run(run())
    assert called == [0]
    assert [str(error) for error in failures] == ["0"]
    assert inspect.iscoroutinefunction(hook)
