"""The socket in the crawl folder over which a crawl that runs gets commands and queries.

A client sends one JSON object per line, and gets one per line back. For a command of `gossamer.model.commands`, with
who gives it (`by`), that is `{"ok": true, "text": …}` or `{"ok": false, "text": …}`; for a query (`{"query":
"figures"}`) it has the `value`, too. Only the owner of the folder may connect: the file has no rights for others. The
path of a Unix socket has at most 107 bytes, so a longer one is reached through a descriptor of its folder.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from gossamer.model.commands import OperatorCommand, Query
from gossamer.model.errors import GossamerError, UsageError

FILE_NAME = "control"
MAX_LINE_BYTES = 16 << 20  # many seeds
MAX_PATH_BYTES = 100
ANSWER_WITHIN_S = 60.0


Obey: TypeAlias = Callable[[OperatorCommand, str], Awaitable[str]]
Answer: TypeAlias = Callable[[Query], Raw]


class Reply(Struct, frozen=True):
    """What became of a command, or the answer to a query."""

    ok: bool
    text: str
    value: Raw | UnsetType = UNSET


_encode = msgspec.json.Encoder().encode
_decode_reply = msgspec.json.Decoder(Reply).decode


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a path of the same file that is short enough for a socket."""
    if len(os.fsencode(path.absolute())) <= MAX_PATH_BYTES:
        yield str(path.absolute())
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


@asynccontextmanager
async def served(state: Path, obey: Obey, answer: Answer) -> AsyncIterator[None]:
    """Serve the commands and queries of clients while the crawl runs."""
    path = state / FILE_NAME
    path.unlink(missing_ok=True)  # of a process that was killed: this one owns the folder
    unready = state / f"{FILE_NAME}.new"  # a client that finds the socket is not refused
    unready.unlink(missing_ok=True)
    server_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _short(unready) as short:
            server_socket.bind(short)
    finally:
        os.umask(before)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError):  # a client that is gone, or sends a line without end
            while line := await reader.readline():
                writer.write(_encode(await _reply(line, obey, answer)) + b"\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, sock=server_socket, limit=MAX_LINE_BYTES)
    unready.rename(path)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _reply(line: bytes, obey: Obey, answer: Answer) -> Reply:
    try:
        fields = msgspec.json.decode(line, type=dict[str, object])
        if "query" in fields:
            return Reply(ok=True, text="", value=answer(msgspec.convert(fields, Query)))
        by = str(fields.pop("by", "")) or "unknown"
        command = msgspec.convert(fields, OperatorCommand)
    except msgspec.MsgspecError as error:
        return Reply(ok=False, text=f"not a command or a query: {error}")
    except GossamerError as error:
        return Reply(ok=False, text=str(error))
    try:
        return Reply(ok=True, text=await obey(command, by))
    except GossamerError as error:
        return Reply(ok=False, text=str(error))


def send(state: Path, command: OperatorCommand, by: str) -> str:
    """Send a command to the process that owns a crawl folder; return what was done. Blocks."""
    return _exchange(state, {**msgspec.to_builtins(command), "by": by}).text


def query(state: Path, name: str, /, *, within_s: float = ANSWER_WITHIN_S, **fields: object) -> object:
    """Ask the process that owns a crawl folder; return its answer. Blocks."""
    return _value(_exchange(state, {"query": name, **fields}, within_s))


def _value(reply: Reply) -> object:
    return msgspec.json.decode(reply.value) if isinstance(reply.value, Raw) else None


def _exchange(state: Path, message: dict[str, Any], within_s: float = ANSWER_WITHIN_S) -> Reply:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, _short(state / FILE_NAME) as short:
            client.settimeout(within_s)
            client.connect(short)
            client.sendall(_encode(message) + b"\n")
            with client.makefile("rb") as answers:
                reply = _reply_in(answers.readline())
    except (OSError, msgspec.MsgspecError) as error:
        raise _silent(state, error) from error
    return _checked(reply)


def _reply_in(line: bytes) -> Reply:
    if not line:
        raise ConnectionResetError  # the crawl ended before it answered
    return _decode_reply(line)


class NotListeningError(GossamerError):
    """A crawl that owns its folder, but takes no commands: it begins or ends."""


def _silent(state: Path, error: Exception) -> GossamerError:
    if isinstance(error, FileNotFoundError | ConnectionError):
        return NotListeningError(f"{state.parent}: the crawl begins or ends, and takes no commands now; try again")
    return GossamerError(f"{state.parent}: the crawl that runs there does not answer: {error}")


def _checked(reply: Reply) -> Reply:
    if not reply.ok:
        raise UsageError(reply.text)
    return reply


class QueryClient:
    """One connection to a crawl that runs, for queries again and again; use it with `async with`."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        try:
            with _short(self._state / FILE_NAME) as short:
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
                self._writer.write(_encode({"query": name, **fields}) + b"\n")
                reply = _reply_in(await self._reader.readline())
        except (OSError, ValueError, TimeoutError) as error:  # of msgspec, or of a line that is too long
            raise _silent(self._state, error) from error
        return _value(_checked(reply))
