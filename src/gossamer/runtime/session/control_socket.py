"""The socket in the crawl folder over which a running crawl gets commands and queries (from `control/running`).

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
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from gossamer.model.commands import OperatorCommand, Query
from gossamer.model.errors import GossamerError, NotListeningError, UsageError

FILE_NAME = "control"
MAX_LINE_BYTES = 16 << 20  # many seeds
MAX_PATH_BYTES = 100
Obey: TypeAlias = Callable[[OperatorCommand, str], Awaitable[str]]
Answer: TypeAlias = Callable[[Query], Raw]


class SocketReply(Struct, frozen=True):
    """What became of a command, or the answer to a query."""

    ok: bool
    text: str
    value: Raw | UnsetType = UNSET


@contextmanager
def short_path(path: Path) -> Iterator[str]:
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
        with short_path(unready) as short:
            server_socket.bind(short)
    finally:
        os.umask(before)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that is gone, or sends a line without end. Cancelled is who stays connected until the loop is closed:
        # Python 3.12.0 and 3.12.1 print a traceback if a handler ends like that.
        with suppress(OSError, ValueError, NotListeningError, asyncio.CancelledError):
            while line := await reader.readline():
                try:
                    message, by = _message_in(line)
                    if isinstance(message, Query):
                        reply = SocketReply(ok=True, text="", value=answer(message))
                    else:
                        reply = SocketReply(ok=True, text=await obey(message, by))
                except NotListeningError:
                    raise  # as if it did not listen any more
                except GossamerError as error:
                    reply = SocketReply(ok=False, text=str(error))
                writer.write(msgspec.json.encode(reply) + b"\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, sock=server_socket, limit=MAX_LINE_BYTES)
    unready.rename(path)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _message_in(line: bytes) -> tuple[OperatorCommand | Query, str]:
    """Return a command and who gives it, or a query."""
    try:
        fields = msgspec.json.decode(line, type=dict[str, object])
        if "query" in fields:
            return msgspec.convert(fields, Query), ""
        by = str(fields.pop("by", "")) or "unknown"
        return msgspec.convert(fields, OperatorCommand), by
    except msgspec.MsgspecError as error:
        raise UsageError(f"not a command or a query: {error}") from error
