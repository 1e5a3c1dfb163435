"""A crawl that is running in a folder, reached over its socket (`runtime/session/control_socket`)."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Raw

from gossamer.backends.local.folder import CrawlFolder
from gossamer.model.commands import OperatorCommand, UnblockNames
from gossamer.model.errors import GossamerError, NotListeningError, UsageError
from gossamer.runtime.session.control_socket import FILE_NAME, MAX_LINE_BYTES, SocketReply, short_path
from gossamer.runtime.session.opt_out import check_not_listed

ANSWER_WITHIN_S = 60.0


class RunningCrawl:
    """A crawl that is running in a folder: see `gossamer.control.target.Target`."""

    def __init__(self, folder: CrawlFolder) -> None:
        self._folder = folder

    def obey(self, command: OperatorCommand, by: str) -> str:
        """Send a command to the process that runs the crawl."""
        state = self._folder.state
        if isinstance(command, UnblockNames):
            check_not_listed(self._folder.path, command.names)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, short_path(state / FILE_NAME) as short:
                client.settimeout(ANSWER_WITHIN_S)
                client.connect(short)
                client.sendall(msgspec.json.encode({**msgspec.to_builtins(command), "by": by}) + b"\n")
                with client.makefile("rb") as answers:
                    reply = _reply_in(answers.readline())
        except (OSError, msgspec.MsgspecError) as error:
            raise _silent(state, error) from error
        return _checked(reply).text


def query(state: Path, name: str, /, *, within_s: float = ANSWER_WITHIN_S, **fields: object) -> object:
    """Ask the process that owns a crawl folder once; return its answer. Blocks."""

    async def ask() -> object:
        async with QueryClient(state) as client:
            return await client.ask(name, within_s=within_s, **fields)

    return asyncio.run(ask())


def _reply_in(line: bytes) -> SocketReply:
    if not line:
        raise ConnectionResetError  # the crawl ended before it answered
    return msgspec.json.decode(line, type=SocketReply)


def _silent(state: Path, error: Exception) -> GossamerError:
    if isinstance(error, FileNotFoundError | ConnectionError):
        return NotListeningError(f"{state.parent}: the crawl begins or ends, and takes no commands now; try again")
    return GossamerError(f"{state.parent}: the crawl that runs there does not answer: {error}")


def _checked(reply: SocketReply) -> SocketReply:
    if not reply.ok:
        raise UsageError(reply.text)
    return reply


class QueryClient:
    """One connection to a running crawl, for any number of queries; use it with `async with`."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            with short_path(self._state / FILE_NAME) as short:
                self._reader, self._writer = await asyncio.open_unix_connection(short, limit=MAX_LINE_BYTES)
        except OSError as error:
            raise _silent(self._state, error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def ask(self, name: str, /, *, within_s: float = ANSWER_WITHIN_S, **fields: object) -> object:
        """Return the answer to a query. Raises `UsageError` if there is none, `GossamerError` if the crawl is gone."""
        try:
            async with asyncio.timeout(within_s), self._turn:
                self._writer.write(msgspec.json.encode({"query": name, **fields}) + b"\n")
                reply = _reply_in(await self._reader.readline())
        except (OSError, ValueError, TimeoutError) as error:  # of msgspec, or of a line that is too long
            raise _silent(self._state, error) from error
        value = _checked(reply).value
        return msgspec.json.decode(value) if isinstance(value, Raw) else None
