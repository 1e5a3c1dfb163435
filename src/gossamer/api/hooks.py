"""A program's functions that a crawl calls: plain ones at once, `async def` ones are awaited.

`on_page` and `on_error` are called one after the other, in order. `accept_link` and `score_link` decide while an answer
is completed, and the engine waits for nothing: if one of them is asynchronous, both are asked before
(`runtime/hub/reviewing`), and the engine finds their decisions here. Only recovery completes answers without a review:
it runs in a thread then, which waits for the hook.

The first hook that raises ends the crawl.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from gossamer.api.page import Page
from gossamer.core.links.intake import FoundLink, LinkHooks
from gossamer.engine.admission.link_backlog import FIRST_LINKS
from gossamer.engine.admission.link_review import LinkReview
from gossamer.model.records import FetchTask, Result

MAX_META_BYTES = 4096
MAX_DECISIONS = 200_000
AVERAGE_SCORE = 50.0
Meta: TypeAlias = Mapping[str, Any]
Accept: TypeAlias = Callable[[FoundLink], bool | Meta | Awaitable[bool | Meta]]
Score: TypeAlias = Callable[[FoundLink], float | Awaitable[float]]
OnFailure: TypeAlias = Callable[[Exception], None]
WithPageMeta: TypeAlias = Callable[[FoundLink], FoundLink]  # a link with the metadata of its page
_Argument = TypeVar("_Argument")
_Answer = TypeVar("_Answer")


class Failure(Struct, frozen=True, kw_only=True):
    """A URL that was not fetched, or what was queued at a host that cannot be contacted."""

    url: str  # empty if it is about a whole host
    host: str
    outcome: str  # one word: client_error, timeout, dns_not_found, robots_denied, …
    error: str = ""  # for people
    status: int = 0
    depth: int = 0
    attempts: int = 0  # requests that were made
    urls: int = 1  # that are lost with it


class Hooks(Struct, frozen=True):
    """A program's functions."""

    accept_link: Accept | None = None
    score_link: Score | None = None
    on_page: Callable[[Page], object] | None = None
    on_error: Callable[[Failure], object] | None = None

    @property
    def waits_for_links(self) -> bool:
        """Whether decisions about links may take time."""
        return _is_async(self.accept_link) or _is_async(self.score_link)


def _is_async(hook: object) -> bool:
    return inspect.iscoroutinefunction(hook) or (callable(hook) and inspect.iscoroutinefunction(type(hook).__call__))


def encoded_meta(meta: Meta, url: str) -> bytes:
    """Return metadata as it is stored; raise if it is not a small dict of JSON values."""
    try:
        encoded = msgspec.json.encode(dict(meta))
        is_object = all(isinstance(key, str) for key in meta)
    except TypeError as error:
        raise TypeError(f"metadata of {url}: {error}; expected a dict of JSON values") from error
    if not is_object:
        raise TypeError(f"metadata of {url}: its keys are not all texts; expected a dict of JSON values")
    if len(encoded) > MAX_META_BYTES:
        raise ValueError(f"metadata of {url}: {len(encoded):,} bytes as JSON; expected {MAX_META_BYTES:,} at most")
    return encoded


class HookCalls:
    """Calls `on_page` and `on_error`."""

    def __init__(self, on_failure: OnFailure, on_length: Callable[[int], None]) -> None:
        self._on_failure = on_failure
        self._on_length = on_length  # gets the number of waiting calls
        self._waiting: deque[Awaitable[object]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a call has not ended."""
        return self._task is not None

    def call(self, hook: Callable[[_Argument], object], argument: _Argument) -> None:
        """Call a hook; if it is asynchronous, after those before it."""
        try:
            answer = hook(argument)
        except Exception as error:  # a user's code may raise anything
            self._on_failure(error)
            return
        if inspect.isawaitable(answer):
            self._waiting.append(answer)
            self._on_length(len(self._waiting))
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._waiting.popleft()
                self._on_length(len(self._waiting))
        except Exception as error:
            self._on_failure(error)
            self._drop()
        finally:
            self._task = None
            self._on_length(0)

    async def finish(self) -> None:
        """Wait for the calls that are left."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def _drop(self) -> None:
        for call in self._waiting:
            if inspect.iscoroutine(call):
                call.close()
        self._waiting.clear()


class DirectLinkHooks:
    """Hooks about links that decide at once."""

    def __init__(self, hooks: Hooks, with_page_meta: WithPageMeta, on_failure: OnFailure) -> None:
        self._hooks = hooks
        self._with_page_meta = with_page_meta
        self._on_failure = on_failure
        self._has_failed = False

    def of_engine(self) -> LinkHooks:
        """Return the hooks in the form of the engine."""
        accept = self._accept if self._hooks.accept_link is not None else None
        return LinkHooks(accept, self._score if self._hooks.score_link is not None else None)

    def _accept(self, link: FoundLink) -> bool | bytes:
        refused: bool | bytes = False
        return self._guarded(self._decide, link, refused)

    def _score(self, link: FoundLink) -> float:
        return self._guarded(self._rate, link, 0.0)

    def _decide(self, link: FoundLink) -> bool | bytes:
        assert self._hooks.accept_link is not None
        return decision_of(self._hooks.accept_link(link), link)

    def _rate(self, link: FoundLink) -> float:
        assert self._hooks.score_link is not None
        return score_of(self._hooks.score_link(link))

    def _guarded(self, hook: Callable[[FoundLink], _Answer], link: FoundLink, default: _Answer) -> _Answer:
        if self._has_failed:
            return default
        try:
            return hook(self._with_page_meta(link))
        except Exception as error:  # a user's code may raise anything
            self._has_failed = True
            self._on_failure(error)
            return default


def decision_of(answer: object, link: FoundLink) -> bool | bytes:
    """Return a hook's answer in the form of the engine: a dict means yes, with this metadata."""
    if isinstance(answer, Mapping):
        return encoded_meta(answer, link.url)
    _refuse_awaitable(answer, "accept_link")
    return bool(answer)


def score_of(answer: object) -> float:
    """Return a hook's score as a number."""
    _refuse_awaitable(answer, "score_link")
    return float(answer)  # type: ignore[arg-type]  # what is no number is the hook's error


def _refuse_awaitable(answer: object, hook: str) -> None:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(f"{hook} returned something to be awaited; expected 'async def' for that")


class AwaitedLinkHooks:
    """Hooks about links at least one of which is asynchronous: asked before an answer is completed."""

    def __init__(self, hooks: Hooks, with_page_meta: WithPageMeta, on_failure: OnFailure) -> None:
        self._hooks = hooks
        self._with_page_meta = with_page_meta
        self._on_failure = on_failure
        self._decisions: dict[str, bool | bytes] = {}
        self._scores: dict[str, float] = {}
        self._has_failed = False
        self._reviews: set[asyncio.Task[Any]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None  # the program's
        self.asks: LinkReview | None = None

    def of_engine(self) -> LinkHooks:
        """Return the hooks in the form of the engine."""
        return LinkHooks(self._accept, self._score if self._hooks.score_link is not None else None)

    async def review(self, task: FetchTask, result: Result) -> bool:
        """Ask the hooks about the links of an answer; return whether it may be completed."""
        assert self.asks is not None
        review = asyncio.current_task()
        if review is not None:
            self._reviews.add(review)
            review.add_done_callback(self._reviews.discard)
        asked = self.asks.asked(task, result)
        try:
            for link in (*asked.links, *asked.held):
                if self._has_failed:
                    break
                await self._ask(link)
        except Exception as error:
            self._has_failed = True
            self._on_failure(error)
        self._drop_refused(result, {link.url for link in asked.held})
        return not self._has_failed

    def _drop_refused(self, result: Result, held: set[str]) -> None:
        """Drop refused links that would be stored and offered later, maybe by the next run, which cannot ask then."""
        later = {link.url for link in result.links[FIRST_LINKS:]} | held
        if later:
            refused = {url for url in later if self._decisions.get(url) is False}
            result.links = [link for link in result.links if link.url not in refused]

    def cancel(self) -> None:
        """Give up what is not decided: those answers return to the queue."""
        for review in self._reviews:
            review.cancel()

    async def _ask(self, link: FoundLink) -> None:
        accept = self._hooks.accept_link
        score = self._hooks.score_link
        link = self._with_page_meta(link)
        decision: bool | bytes = True
        if accept is not None:
            answer = accept(link)
            decision = decision_of(await answer if inspect.isawaitable(answer) else answer, link)
        if decision is not False and score is not None:
            rating = score(link)
            _remember(self._scores, link.url, score_of(await rating if inspect.isawaitable(rating) else rating))
        _remember(self._decisions, link.url, decision)

    def _accept(self, link: FoundLink) -> bool | bytes:
        if link.url not in self._decisions:
            self._ask_from_thread(link)
        return self._decisions.get(link.url, True)

    def _score(self, link: FoundLink) -> float:
        return self._scores.get(link.url, AVERAGE_SCORE)

    def _ask_from_thread(self, link: FoundLink) -> None:
        """Ask and wait, in the thread of recovery. In the loop nobody can wait: what comes late was accepted before."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self.loop is not None and not self._has_failed:
                self._wait_for(self._ask(link))

    def _wait_for(self, asking: Coroutine[Any, Any, None]) -> None:
        assert self.loop is not None
        try:
            asyncio.run_coroutine_threadsafe(asking, self.loop).result()
        except Exception as error:
            self._has_failed = True
            self._on_failure(error)


def _remember(known: dict[str, _Answer], url: str, answer: _Answer) -> None:
    if len(known) >= MAX_DECISIONS:
        del known[next(iter(known))]
    known[url] = answer
