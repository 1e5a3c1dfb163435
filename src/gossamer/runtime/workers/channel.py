"""How tasks reach a worker and results return: by calls, or over a socket to another process.

Both channels have one interface. If a worker dies, its channel calls `on_lost` once; the hub
returns its outstanding tasks to the queue. A worker that does not end within
`CLOSE_LIMIT_S` when it is closed is killed, and so is one that does not confirm within
`SYNC_LIMIT_S` that its archive is durable: it is stopped or hangs, and commits wait for it.

A worker that cannot write, sync or finish its files reports it once, and nobody waits for it after that: what waits
for a sync gets the error, `close` raises it, and the hub stops the crawl.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from gossamer.backends.local.damage import WORKER_STATUS
from gossamer.foundation import failpoints
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError, DiskFullError, GossamerError, as_our_error
from gossamer.model.exchanges import Volume
from gossamer.model.records import FetchTask
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.factory import FirstCopy, WorkerConfig, open_worker
from gossamer.runtime.workers.marks import SharedMarks
from gossamer.runtime.workers.worker import Listener, Worker

CLOSE_LIMIT_S = 60.0
SYNC_LIMIT_S = 30.0
SYNC_LOOKS = 6  # within the limit: if it was this process that stood still, the answer is here, not yet read
END_LIMIT_S = 5.0  # for a process whose channel is closed


class HubListener(Listener, Protocol):
    """Receives what a channel reports."""

    def on_lost(self, number: int, cause: str) -> None:
        """The worker died unexpectedly; the cause is for people."""
        ...


class Channel(Protocol):
    """A worker, seen from the hub."""

    number: int

    async def open(self) -> None:
        """Start the worker."""
        ...

    def start(self, tasks: Sequence[FetchTask]) -> None:
        """Send tasks to the worker."""
        ...

    def mark_links_final(self, task_id: int) -> None:
        """Inform the worker that none of a page's links need to be sent again."""
        ...

    async def sync(self) -> None:
        """Return when everything archived so far is durable; raise if it cannot be."""
        ...

    def reading(self) -> list[int]:
        """Return the tasks whose answers the worker is reading, or was reading when it died."""
        ...

    def kill(self, cause: str) -> None:
        """End a worker that does not do its work; `on_lost` follows. No effect on one in the hub's own process."""
        ...

    async def close(self) -> messages.WorkerReport | None:
        """Finish the worker's files and end it; raise if they cannot be finished."""
        ...


class LocalChannel:
    """A worker in the hub's process and event loop: no messages."""

    def __init__(self, config: WorkerConfig, first_copy: FirstCopy, listener: HubListener) -> None:
        self.number = config.rules.number
        self._config = config
        self._first_copy = first_copy
        self._listener = listener
        self._stack = AsyncExitStack()
        self._worker: Worker | None = None
        self.pid = 0  # none of its own

    @property
    def is_running(self) -> bool:
        return self._worker is not None

    async def open(self) -> None:
        self._worker = await self._stack.enter_async_context(
            open_worker(self._config, self._first_copy, self._listener)
        )

    def start(self, tasks: Sequence[FetchTask]) -> None:
        assert self._worker is not None
        for task in tasks:
            self._worker.start(task)

    def open_address(self, address: str) -> None:
        """Allow requests to one more address."""
        if self._worker is not None:
            self._worker.open_address(address)

    def mark_links_final(self, task_id: int) -> None:
        assert self._worker is not None
        self._worker.mark_links_final(task_id)

    async def sync(self) -> None:
        """Return when everything archived so far is durable."""
        assert self._worker is not None
        await self._worker.sync()

    def take_stall_s(self) -> float:
        """Return nothing: its loop is the hub's."""
        return 0.0

    def volume(self) -> Volume:
        """Return what the worker has compressed so far."""
        return self._worker.volume() if self._worker is not None else Volume()

    def reading(self) -> list[int]:
        """Return nothing: it does not outlive this process."""
        return []

    def kill(self, cause: str) -> None:
        """Do nothing: this process is the hub's too."""

    async def close(self) -> messages.WorkerReport | None:
        await self._stack.aclose()
        return None


class ProcessChannel(asyncio.Protocol):
    def __init__(self, config: WorkerConfig, ledger: str, listener: HubListener, *, is_replacement: bool) -> None:
        self.number = config.rules.number
        self._config = config
        self._ledger = ledger
        self._is_replacement = is_replacement
        self._listener = listener
        self._reader = messages.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._syncs: dict[int, asyncio.Future[None]] = {}
        self._sync_number = 0
        self._report: messages.WorkerReport | None = None
        self._failure: GossamerError | None = None
        self._decided: list[int] = []  # tasks whose links need not be sent again; passed on with the next tasks
        self._is_closing = False
        self._killed_because = ""
        self._ending: asyncio.Task[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._marks: SharedMarks | None = None
        self._volume = Volume()
        self._stall_s = 0.0

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid if self._process else 0

    def take_stall_s(self) -> float:
        """Return the longest time that the worker's loop was blocked, of what it reported since the last call."""
        stall_s = self._stall_s
        self._stall_s = 0.0
        return stall_s

    def volume(self) -> Volume:
        """Return what the worker had compressed at its last sync."""
        return self._volume

    @property
    def is_running(self) -> bool:
        """Whether the process was started, and has neither died nor been told to end."""
        return self._process is not None and not self._is_closing

    async def open(self) -> None:
        """Start the process and send it its configuration."""
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        self._gone = loop.create_future()
        self._marks = SharedMarks()
        name = failpoints.VARIABLE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gossamer.runtime.workers.process",
            str(theirs.fileno()),
            str(self._marks.fd),
            pass_fds=(theirs.fileno(), self._marks.fd),
            stdin=asyncio.subprocess.DEVNULL,
            # Ctrl-C reaches the whole process group; only the hub handles it.
            start_new_session=True,
            # A failpoint that is not for a URL kills one worker, not its replacements.
            env={**os.environ, name: failpoints.for_replacement(os.environ.get(name, ""))}
            if self._is_replacement
            else None,
        )
        theirs.close()
        self._marks.close_fd()
        ours.setblocking(False)
        await loop.create_connection(lambda: self, sock=ours)
        self._send(messages.Begin(self._config, self._ledger))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Handle what the worker sends."""
        for message in self._reader.feed(data):
            self._handle(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake everything that waits for the process, which is gone; report it first unless it was being closed."""
        if self._is_closing:
            self._wake()
        else:
            self._is_closing = True
            self._ending = asyncio.get_running_loop().create_task(self._report_loss())

    async def _report_loss(self) -> None:
        """Report the loss once the process has ended: what it left is read back, and must not change any more."""
        try:
            cause = await self._cause_of_death()
            if self._process is not None and self._process.returncode == WORKER_STATUS:
                raise CorruptFolderError(f"the ledger is damaged: it ended worker {self.number}{HOW_TO_REBUILD}")
            self._listener.on_lost(self.number, cause)
        except Exception as error:  # what it left cannot be read back: nobody else would learn of it
            self._listener.on_failure(as_our_error(error))
        finally:
            self._wake()

    async def _cause_of_death(self) -> str:
        assert self._process is not None
        try:
            status = await asyncio.wait_for(self._process.wait(), END_LIMIT_S)
        except TimeoutError:
            self._process.kill()
            status = await self._process.wait()
        if self._killed_because:
            return self._killed_because
        return _death(status)

    def _wake(self) -> None:
        for waiting in self._syncs.values():
            if not waiting.done():
                waiting.set_result(None)
        self._syncs.clear()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _handle(self, message: messages.Message) -> None:
        match message:
            case messages.Results(results):
                for result in results:
                    self._listener.on_result(result)
            case messages.Sent(task_id, at):
                self._listener.on_sent(task_id, at)
            case messages.Synced(number, volume, stall_s):
                self._volume, self._stall_s = volume, max(self._stall_s, stall_s)
                waiting = self._syncs.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)
            case messages.Failed(error, text):
                self._fail(DiskFullError(text) if error == "DiskFullError" else GossamerError(text))
            case messages.Crashed(crash):
                self._listener.on_crash(crash)
            case messages.WorkerReport():
                self._report = message
            case _:
                raise GossamerError(f"worker {self.number}: unexpected message {type(message).__name__}")

    def _fail(self, failure: GossamerError) -> None:
        """Pass a failure on, also to everything that waits for a sync: none will be confirmed."""
        if self._failure is None:
            self._failure = failure
        for waiting in self._syncs.values():
            if not waiting.done():
                waiting.set_exception(failure)
        self._syncs.clear()
        self._listener.on_failure(failure)

    def _send(self, message: messages.Message) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(messages.frame(message))

    def start(self, tasks: Sequence[FetchTask]) -> None:
        decided = self._decided
        self._decided = []
        self._send(messages.FetchTasks(list(tasks), decided))

    def open_address(self, address: str) -> None:
        """Allow requests to one more address, before the next tasks."""
        self._send(messages.OpenAddress(address))

    def mark_links_final(self, task_id: int) -> None:
        """Inform the worker, with its next tasks, that none of a page's links need to be sent again."""
        self._decided.append(task_id)

    async def sync(self) -> None:
        """Return when everything archived so far is durable (or the worker is gone); raise if it cannot be."""
        if self._failure is not None:
            raise self._failure
        if self._gone is None or self._gone.done():
            return
        self._sync_number += 1
        waiting = asyncio.get_running_loop().create_future()
        self._syncs[self._sync_number] = waiting
        self._send(messages.Sync(self._sync_number))
        for _ in range(SYNC_LOOKS):
            await asyncio.wait((waiting,), timeout=SYNC_LIMIT_S / SYNC_LOOKS)
            if waiting.done():
                break
        else:
            self.kill(f"did not answer for {SYNC_LIMIT_S:g} s")
        await waiting

    def reading(self) -> list[int]:
        """Return the tasks whose answers the process is reading, or was reading when it died."""
        return self._marks.read() if self._marks is not None else []

    def kill(self, cause: str) -> None:
        """Kill the process; `on_lost` follows when it is gone."""
        if self._process is not None and not self._is_closing:
            self._killed_because = cause
            with suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> messages.WorkerReport | None:
        if self._ending is not None:
            await self._ending
            return self._report  # it is gone, and the hub has read back what it left
        self._is_closing = True
        self._send(messages.Close())
        if self._gone is not None and self._process is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._gone), CLOSE_LIMIT_S)
                await asyncio.wait_for(self._process.wait(), CLOSE_LIMIT_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            if self._failure is None and self._process.returncode:
                self._listener.on_lost(self.number, f"{_death(self._process.returncode)} while it finished its files")
        if self._transport is not None:
            self._transport.close()
        if self._failure is not None:
            raise self._failure
        return self._report


def _death(status: int) -> str:
    return f"was killed by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
