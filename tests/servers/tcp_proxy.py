"""A TCP proxy on loopback that can add latency, and cut a server off."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType


class TcpProxy:
    """Forwards connections to a port. Runs in its own thread; `cut` and `restore` may be called from any.

    With `cut_after_bytes` it cuts the server off by itself, once.
    """

    def __init__(self, target_port: int, *, round_trip_s: float = 0.0, cut_after_bytes: int = 1 << 62) -> None:
        self.port = 0
        self._bytes_left = cut_after_bytes  # to the server, before it is cut off
        self._target_port = target_port
        self._round_trip_s = round_trip_s
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self.port = server.result().sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self) -> None:
        """Close every connection, and each new one at once."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._cut)
        self._loop.call_soon_threadsafe(done.set)
        done.wait()

    def restore(self) -> None:
        """Forward new connections again."""
        self._is_cut = False

    def _cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, server = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        with self._kept(writer, server):
            await asyncio.gather(self._forward(reader, server, is_request=True), self._forward(there, writer))

    def _count(self, sent: int) -> None:
        is_first = self._bytes_left > 0
        self._bytes_left -= sent
        if is_first and self._bytes_left <= 0:
            self._cut()

    @contextmanager
    def _kept(self, *writers: asyncio.StreamWriter) -> Iterator[None]:
        self._writers.update(writers)
        try:
            yield
        finally:
            self._writers.difference_update(writers)
            for writer in writers:
                writer.transport.abort()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool = False
    ) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await reader.read(1 << 20):
                if is_request:
                    self._count(len(data))
                if is_request and self._round_trip_s:  # on the way there, for both ways; bytes keep their order
                    loop.call_later(self._round_trip_s, writer.write, data)
                else:
                    writer.write(data)
            writer.close()
