"""The socket in the crawl folder over which a crawl that runs gets commands.

A client sends one JSON object per line, a command of `gossamer.commands` and who gives it (`by`), and gets one per line
back: `{"ok": true, "text": …}` or `{"ok": false, "text": …}`. Only the owner of the folder may connect: the file has no
rights for others. The path of a Unix socket has at most 107 bytes, so a longer one is reached through a descriptor
of its folder.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.commands import OperatorCommand
from gossamer.errors import GossamerError, UsageError

FILE_NAME = "control"
MAX_LINE_BYTES = 16 << 20  # many seeds
MAX_PATH_BYTES = 100
ANSWER_WITHIN_S = 60.0


class Reply(Struct, frozen=True):
    """What became of a command."""

    ok: bool
    text: str


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
async def served(state: Path, obey: Callable[[OperatorCommand, str], Awaitable[str]]) -> AsyncIterator[None]:
    """Serve the commands of clients while the crawl runs."""
    path = state / FILE_NAME
    path.unlink(missing_ok=True)  # of a process that was killed: this one owns the folder
    server_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with _short(path) as short:
            server_socket.bind(short)
    finally:
        os.umask(before)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError):  # a client that is gone, or sends a line without end
            while line := await reader.readline():
                writer.write(_encode(await _answer(line, obey)) + b"\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, sock=server_socket, limit=MAX_LINE_BYTES)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _answer(line: bytes, obey: Callable[[OperatorCommand, str], Awaitable[str]]) -> Reply:
    try:
        fields = msgspec.json.decode(line, type=dict[str, object])
        by = str(fields.pop("by", "")) or "unknown"
        command = msgspec.convert(fields, OperatorCommand)
    except msgspec.MsgspecError as error:
        return Reply(ok=False, text=f"not a command: {error}")
    try:
        return Reply(ok=True, text=await obey(command, by))
    except GossamerError as error:
        return Reply(ok=False, text=str(error))


def send(state: Path, command: OperatorCommand, by: str) -> str:
    """Send a command to the process that owns a crawl folder; return what was done. Blocks."""
    line = _encode({**msgspec.to_builtins(command), "by": by}) + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, _short(state / FILE_NAME) as short:
            client.settimeout(ANSWER_WITHIN_S)
            client.connect(short)
            client.sendall(line)
            with client.makefile("rb") as answers:
                reply = _decode_reply(answers.readline() or b"{}")
    except (OSError, msgspec.MsgspecError) as error:
        raise GossamerError(f"{state.parent}: the crawl that runs there does not answer: {error}") from error
    if not reply.ok:
        raise UsageError(reply.text)
    return reply.text
