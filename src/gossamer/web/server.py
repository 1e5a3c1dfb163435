"""The page's process: listens, decides who may ask, and answers.

Two servers. The page's needs the token for everything (`web/access`); the one for metrics, if there is one, needs none
and has nothing but `/metrics`, `/healthz` and `/readyz`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib.resources import files
from typing import Any

from msgspec import Struct

from gossamer.model.commands import (
    AddSeeds,
    OperatorCommand,
    PauseCrawl,
    ReleasePattern,
    ResumeCrawl,
    RetryLetters,
    StopCrawl,
    UnblockNames,
)
from gossamer.model.errors import GossamerError, UsageError
from gossamer.runtime.session.control_socket import NotListeningError
from gossamer.settings.listening import Address
from gossamer.telemetry.metrics import CONTENT_TYPE, render
from gossamer.web.access import TOKEN_BYTES, Access, is_loopback
from gossamer.web.faults import fault
from gossamer.web.hosts import Hosts
from gossamer.web.http import Answer, Request, Response, failure, listening, served
from gossamer.web.live import Live
from gossamer.web.openapi import document
from gossamer.web.pages import Pages
from gossamer.web.routes import ApiError, Nothing, Route, Router
from gossamer.web.source import Source
from gossamer.web.status import Status

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
CONTROL = "/api/control"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}


# What a crawl that does not run cannot be told: the rest is kept for its next run.
_NEEDS_A_RUNNING_CRAWL = (PauseCrawl, ResumeCrawl, StopCrawl, RetryLetters, ReleasePattern)


_OF_A_STATE = (PauseCrawl, ResumeCrawl, StopCrawl, UnblockNames, ReleasePattern)  # if refused, another state allows it


class Done(Struct, frozen=True):
    """What a command did, in one line."""

    text: str


class Api:
    """Everything that is served for one crawl."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.is_read_only = source.is_read_only
        self._hosts = Hosts(source)
        self.status = Status(source, self._hosts)
        self.live = Live(source, self.status)
        self._pages = Pages(source)
        parts = (self.status, self._hosts, self._pages, self.live)
        self.routes = [*(route for part in parts for route in part.routes()), *self._own_routes()]
        self._document = document(self.routes)

    def _own_routes(self) -> list[Route]:
        described = Route(
            path="/api/openapi.json", summary="This document", handle=self._openapi, answer=dict[str, Any]
        )
        if self.is_read_only:
            return [described]
        return [
            Route(
                path=CONTROL,
                summary="Give the crawl a command",
                handle=self._control,
                answer=Done,
                method="POST",
                body=OperatorCommand,
                wants_request=True,
                statuses={409: "the crawl does not run, or is not in this state"},
            ),
            described,
        ]

    async def shown(self, answer: Any) -> Any:  # noqa: ANN401 - the answer of any route
        """Return what may be shown of an answer."""
        return answer if answer is self._document else await self._source.shown(answer)

    async def _openapi(self, _: Nothing) -> dict[str, Any]:
        return self._document

    async def _control(self, _: Nothing, command: OperatorCommand, request: Request) -> Done:
        """Give the crawl a command. Its answer decides: figures are up to a second old."""
        if isinstance(command, AddSeeds) and not any(seed.strip() for seed in command.seeds):
            raise ApiError(400, "seeds: expected at least one URL or domain")
        is_running, name = await self.status.place()
        if not is_running and isinstance(command, _NEEDS_A_RUNNING_CRAWL):
            raise ApiError(409, f"the crawl does not run; {_instead(command, shlex.quote(name))}")
        how = "over the API" if "authorization" in request.headers else "on the page"
        try:
            return Done(await self._source.obey(command, how))
        except NotListeningError as error:
            raise ApiError(409, str(error)) from error
        except UsageError as error:
            if isinstance(command, _OF_A_STATE):
                raise ApiError(409, str(error)) from error
            raise

    # -- for machines -----------------------------------------------------------------------------

    async def probe(self, request: Request) -> Response | None:
        """Answer what monitoring asks; None for anything else."""
        if request.path not in ("/metrics", "/healthz", "/readyz"):
            return None
        if request.method not in ("GET", "HEAD"):
            return failure(405, f"{request.method} is not possible here; expected GET", [("Allow", "GET")])
        if request.path == "/healthz":
            return Response(200, b"ok\n", "text/plain")
        try:
            figures = await self._source.figures()
        except GossamerError as error:
            return Response(503, f"{error}\n".encode(), "text/plain; charset=utf-8")
        if request.path == "/readyz":
            return Response(200, f"{figures.state.value}\n".encode(), "text/plain")
        return Response(200, render(figures).encode(), CONTENT_TYPE)


class PageServer:
    """Answers requests to the page's server."""

    def __init__(self, api: Api, access: Access) -> None:
        self._api = api
        self._access = access
        self._router = Router(api.routes, api.shown)
        folder = files("gossamer.web") / "static"
        self._files = {f"/static/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        entry = self._access.entry(request)
        if entry is not None:
            return entry
        refused = self._access.refusal(request)
        if refused is not None:
            return refused
        if request.path == CONTROL and self._api.is_read_only:
            return failure(405, "the page is read-only: it was started with --read-only", [("Allow", "")])
        return await self._api.probe(request) or await self._router.answer(request) or self._file(request)

    def _file(self, request: Request) -> Response:
        path = "/static/index.html" if request.path == "/" else request.path
        content = self._files.get(path)
        if content is None:
            return failure(404, "there is nothing at this address")
        if request.method not in ("GET", "HEAD"):
            return failure(405, f"{request.method} is not possible here; expected GET", [("Allow", "GET")])
        kind = _TYPES[path.rpartition(".")[2]]
        return Response(200, content, f"{kind}; charset=utf-8", policy=PAGE_POLICY)


def _instead(command: OperatorCommand, name: str) -> str:
    """Return what to do instead of a command that a crawl that does not run cannot obey."""
    match command:
        case RetryLetters():
            return f"'gossamer retry {name}' queues its dead letters again and continues it"
        case ReleasePattern():
            return f"'gossamer traps {name} --release PATTERN' releases a pattern, without PATTERN all"
        case _:
            return f"'gossamer resume {name}' continues it"


def _guarded(answer: Answer) -> Answer:
    """Return a function that answers the same, and reports errors of ours: each concerns one answer."""

    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:
            return failure(500, fault(f"{request.method} {request.path}", error))

    return guarded


async def _nothing_else(api: Api, request: Request) -> Response:
    found = await api.probe(request)
    return found if found is not None else failure(404, "there are /metrics, /healthz and /readyz")


class Plan(Struct, frozen=True):
    """Where the page's process listens."""

    page: Address | None
    metrics: Address | None


async def serve(source: Source, plan: Plan, announce: Callable[[str], None], ended: asyncio.Event) -> None:
    """Serve until `ended` is set."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(source)
        api = Api(source)
        lines = await _listen(stack, api, plan)
        for line in lines:
            announce(line)
        async with asyncio.TaskGroup() as tasks:
            live = tasks.create_task(api.live.run())
            await ended.wait()
            live.cancel()
            await api.live.end()


async def _listen(stack: AsyncExitStack, api: Api, plan: Plan) -> Sequence[str]:
    lines = []
    if plan.page is not None:
        listener = await stack.enter_async_context(listening(plan.page, "--ui-listen"))
        where = Address(plan.page.host, listener.getsockname()[1])
        token = secrets.token_urlsafe(TOKEN_BYTES)
        names = [socket.gethostname()]
        server = PageServer(api, Access(token, where, names))
        await stack.enter_async_context(served(listener, _guarded(server.answer)))
        lines.append(f"live page  http://{where.text}/?token={token}")
        if not is_loopback(plan.page.host):
            lines.append("the live page is open to the network, and not encrypted: who reads the traffic has the token")
    if plan.metrics is not None:
        listener = await stack.enter_async_context(listening(plan.metrics, "--metrics-listen"))
        where = Address(plan.metrics.host, listener.getsockname()[1])
        await stack.enter_async_context(served(listener, _guarded(lambda request: _nothing_else(api, request))))
        lines.append(f"metrics    http://{where.text}/metrics")
    return lines


def run(source: Source, plan: Plan, announce: Callable[[str], None], *, follows_stdin: bool) -> None:
    """Serve until a signal comes; with `follows_stdin` also until standard input ends."""

    async def main() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            ended.set()
            for number in _SIGNALS:  # a second one does not wait for threads that read
                loop.remove_signal_handler(number)

        for number in _SIGNALS:
            loop.add_signal_handler(number, end)
        if follows_stdin:
            loop.add_reader(sys.stdin.fileno(), lambda: _read_stdin(ended))
        await serve(source, plan, announce, ended)

    asyncio.run(main())


def _read_stdin(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        ended.set()
