"""The dashboard's process: listens, decides who may ask, and answers.

Two servers. The dashboard's needs the token for everything but its own files (`web/access`); the one for metrics, if
there is one, needs none and has nothing but `/metrics`, `/healthz` and `/readyz`.
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
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.control.target import operator
from gossamer.fetch.names.guard import AddressPolicy
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
from gossamer.model.errors import GossamerError, NotListeningError, UsageError
from gossamer.reading.view import CrawlView
from gossamer.settings.listening import Address, PublicUrl
from gossamer.settings.seeds import opened_addresses, seeds_in
from gossamer.telemetry.metrics import CONTENT_TYPE, render
from gossamer.web.access import TOKEN_BYTES, AccessRules, Tickets, is_loopback
from gossamer.web.dashboard import DashboardStream
from gossamer.web.hosts import Hosts
from gossamer.web.http import HttpRequest, Response, failure, fault, listening, served
from gossamer.web.openapi import document
from gossamer.web.pages import UrlQuestions
from gossamer.web.routes import ApiError, ApiRoute, Nothing, Router
from gossamer.web.source import CrawlSource
from gossamer.web.status import Status
from gossamer.web.token_file import token_in

DASHBOARD_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
CONTROL = "/api/control"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}


# The other commands are stored for the next run.
_NEEDS_A_RUNNING_CRAWL = (PauseCrawl, ResumeCrawl, StopCrawl, RetryLetters, ReleasePattern)
# Refused because of the crawl's state, and allowed in another.
_DEPENDS_ON_STATE = (PauseCrawl, ResumeCrawl, StopCrawl, UnblockNames, ReleasePattern)


class Done(Struct, frozen=True):
    """What a command did, in one line."""

    text: str


class Api:
    """Everything that is served for one crawl."""

    def __init__(self, source: CrawlSource, tickets: Tickets) -> None:
        self._source = source
        self.is_read_only = source.is_read_only
        self._hosts = Hosts(source)
        self.status = Status(source, self._hosts)
        self.stream = DashboardStream(source, self.status)
        self._pages = UrlQuestions(source, tickets)
        parts = (self.status, self._hosts, self._pages, self.stream)
        self.routes = [*(route for part in parts for route in part.routes()), *self._own_routes()]
        self._document = document(self.routes)

    def _own_routes(self) -> list[ApiRoute]:
        described = ApiRoute(
            path="/api/openapi.json", summary="This document", handle=self._openapi, answer=dict[str, Any]
        )
        if self.is_read_only:
            return [described]
        return [
            ApiRoute(
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
        return answer if answer is self._document else await self._source.shown(answer)

    async def _openapi(self, _: Nothing) -> dict[str, Any]:
        return self._document

    async def _control(self, _: Nothing, command: OperatorCommand, request: HttpRequest) -> Done:
        """Give the crawl a command. Its answer decides: figures are up to a second old."""
        if isinstance(command, AddSeeds) and not any(seed.strip() for seed in command.seeds):
            raise ApiError(400, "seeds: expected at least one URL or domain")
        is_running, name = await self.status.state()
        if not is_running and isinstance(command, _NEEDS_A_RUNNING_CRAWL):
            raise ApiError(409, f"the crawl does not run; {_instead(command, shlex.quote(name))}")
        if isinstance(command, AddSeeds):
            await self._source.read(lambda view: _check_addresses(command.seeds, view))
        how = "on the dashboard" if "origin" in request.headers else "over the API"  # browsers send it with every POST
        try:
            target = await asyncio.to_thread(self._source.target)
            return Done(await asyncio.to_thread(target.obey, command, f"{operator()}, {how}"))
        except NotListeningError as error:
            raise ApiError(409, str(error)) from error
        except UsageError as error:
            if isinstance(command, _DEPENDS_ON_STATE):
                raise ApiError(409, str(error)) from error
            raise

    # -- for machines -----------------------------------------------------------------------------

    async def probe(self, request: HttpRequest) -> Response | None:
        """Answer the requests of monitoring; None for any other."""
        if request.path not in ("/metrics", "/healthz", "/readyz"):
            return None
        if request.method not in ("GET", "HEAD"):
            return failure(405, f"{request.method} is not possible here; expected GET", [("Allow", "GET")])
        if request.path == "/healthz":
            return Response(200, b"ok\n", "text/plain")
        try:
            figures = await self._source.live.figures()
        except GossamerError as error:
            return Response(503, f"{error}\n".encode(), "text/plain; charset=utf-8")
        if request.path == "/readyz":
            return Response(200, f"{figures.state.value}\n".encode(), "text/plain")
        return Response(200, render(figures).encode(), CONTENT_TYPE)


class DashboardServer:
    """Answers requests to the dashboard's server."""

    def __init__(self, api: Api, access: AccessRules) -> None:
        self._api = api
        self._access = access
        self._router = Router(api.routes)
        folder = files("gossamer.web") / "static"
        self._files = {f"/static/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}

    async def answer(self, request: HttpRequest) -> Response:
        """Answer a request. An unexpected error affects this answer only."""
        request = self._access.below_public_path(request)
        if not request.path:  # what is relative to the page would be looked for beside it
            return Response(308, b"", headers=[("Location", self._access.public_path)])
        try:
            refusal = self._access.refusal(request)
            if refusal is not None:
                return refusal
            if request.path == CONTROL and self._api.is_read_only:
                raise ApiError(405, "the dashboard is read-only: it was started with --read-only", [("Allow", "")])
            found = self._router.find(request)
            if found is None:
                return await self._api.probe(request) or self._file(request)
            answer = await found
            if isinstance(answer, Response):
                return answer
            return Response(200, msgspec.json.encode(await self._api.shown(answer)))
        except ApiError as error:
            return failure(error.status, str(error), error.headers)
        except UsageError as error:
            return failure(400, str(error))
        except GossamerError as error:
            return failure(503, str(error))
        except Exception as error:
            return failure(500, fault(f"{request.method} {request.path}", error))

    def _file(self, request: HttpRequest) -> Response:
        path = "/static/index.html" if request.path == "/" else request.path
        content = self._files.get(path)
        if content is None:
            return failure(404, "there is nothing at this address")
        if request.method not in ("GET", "HEAD"):
            return failure(405, f"{request.method} is not possible here; expected GET", [("Allow", "GET")])
        kind = _TYPES[path.rpartition(".")[2]]
        return Response(200, content, f"{kind}; charset=utf-8", policy=DASHBOARD_POLICY)


def _check_addresses(lines: Sequence[str], view: CrawlView) -> None:
    """Raise if a seed names a private address that the crawl may not contact: whoever reaches the page opens none."""
    policy = AddressPolicy(view.settings.allow_network, view.state.opened_addresses)
    for seed in seeds_in(lines):
        for address in opened_addresses(seed):
            refusal = policy.refusal(address)
            if refusal is not None:
                raise ApiError(403, f"{seed.link.url}: {refusal}; only 'gossamer add' opens a private address")


def _instead(command: OperatorCommand, name: str) -> str:
    """Return what to do instead of a command that needs a running crawl."""
    match command:
        case RetryLetters():
            return f"'gossamer retry {name}' queues its dead letters again and continues it"
        case ReleasePattern():
            return f"'gossamer traps {name} --release PATTERN' releases a pattern, without PATTERN all"
        case _:
            return f"'gossamer resume {name}' continues it"


async def _nothing_else(api: Api, request: HttpRequest) -> Response:
    try:
        return await api.probe(request) or failure(404, "there are /metrics, /healthz and /readyz")
    except Exception as error:
        return failure(500, fault(f"{request.method} {request.path}", error))


class ListenPlan(Struct, frozen=True):
    """Where the dashboard's process listens, and what opens it."""

    dashboard: Address | None
    metrics: Address | None
    public: PublicUrl | None = None  # of a reverse proxy before it
    token_file: Path | None = None  # None: a new token for this process


async def serve(source: CrawlSource, plan: ListenPlan, announce: Callable[[str], None], ended: asyncio.Event) -> None:
    """Serve until `ended` is set."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(source)
        token = secrets.token_urlsafe(TOKEN_BYTES) if plan.token_file is None else token_in(plan.token_file)
        api = Api(source, Tickets(token))
        lines = await _listen(stack, api, plan, token)
        for line in lines:
            announce(line)
        async with asyncio.TaskGroup() as tasks:
            live = tasks.create_task(api.stream.run())
            await ended.wait()
            live.cancel()
            await api.stream.end()


async def _listen(stack: AsyncExitStack, api: Api, plan: ListenPlan, token: str) -> Sequence[str]:
    lines = []
    if plan.dashboard is not None:
        listener = await stack.enter_async_context(listening(plan.dashboard, "--ui-listen"))
        where = Address(plan.dashboard.host, listener.getsockname()[1])
        names = [socket.gethostname()]
        server = DashboardServer(api, AccessRules(token, where, names, plan.public))
        await stack.enter_async_context(served(listener, server.answer))
        url = f"http://{where.text}/" if plan.public is None else plan.public.text
        # A token that outlasts the process is not written where logs are kept.
        lines.append(f"dashboard  {url}#token={f'… (in {plan.token_file})' if plan.token_file else token}")
        if plan.public is not None:
            lines.append(f"listening  http://{where.text}/ for the reverse proxy")
        if not is_loopback(plan.dashboard.host):
            lines.append(
                "the dashboard is open to the network, and not encrypted: whoever reads the traffic has the token"
            )
    if plan.metrics is not None:
        listener = await stack.enter_async_context(listening(plan.metrics, "--metrics-listen"))
        where = Address(plan.metrics.host, listener.getsockname()[1])
        await stack.enter_async_context(served(listener, partial(_nothing_else, api)))
        lines.append(f"metrics    http://{where.text}/metrics")
    return lines


def run(source: CrawlSource, plan: ListenPlan, announce: Callable[[str], None], *, follows_stdin: bool) -> None:
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
