"""A worker in its own process: `python -m gossamer.runtime.workers.process SOCKET MARKS`, two file descriptors.

Reads tasks from the socket inherited from the hub, and sends results in batches: a frame
costs the hub as much as two pages do. A result waits up to `FLUSH_S` for others, unless no
other task is in progress. The process ends when the hub closes the channel or is gone.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from gossamer.backends.local import damage
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.cluster.regions import Regions
from gossamer.core.url.identity import divide
from gossamer.fetch.limits import raise_file_limit
from gossamer.foundation import failpoints
from gossamer.foundation.collector import make_full_collections_rare
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.records import ContentRecord, FetchTask, Outcome, Result
from gossamer.ports import Contents
from gossamer.runtime.watch import vitals
from gossamer.runtime.watch.crash import Crash, crash_of, describe
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.factory import open_worker
from gossamer.runtime.workers.marks import Marks, open_marks
from gossamer.runtime.workers.worker import Worker

FLUSH_S = 0.004
MAX_RESULTS = 16  # in one frame
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class CopyFinder:
    """The first copy of a content: one that this worker stored recently, otherwise the committed one."""

    def __init__(self, ledger: Contents, max_recent: int) -> None:
        self._ledger = ledger
        self._max_recent = max_recent
        self._recent: dict[bytes, ContentRecord] = {}
        self._urls: dict[int, str] = {}  # of the tasks in progress

    def __call__(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page known to have this content."""
        return self._recent.get(content_hash) or self._ledger.first_with_content(content_hash)

    def expect(self, task: FetchTask) -> None:
        """Store the URL of a task until its result is recorded."""
        self._urls[task.id] = task.url

    def record(self, result: Result) -> None:
        url = self._urls.pop(result.task_id, "")
        if not result.content_hash or not result.payload_digest or result.content_hash in self._recent:
            return
        if len(self._recent) >= self._max_recent:
            self._recent.clear()
        self._recent[result.content_hash] = ContentRecord(
            b"", url, result.sent_at, result.payload_digest, result.archived
        )


class WorkerEnd:
    def __init__(self, sock: socket.socket, marks: Marks) -> None:
        self._sock = sock
        self._marks = marks
        self._frames = messages.FrameReader()
        self._results: list[Result] = []
        self._writer: asyncio.StreamWriter | None = None
        self._flush_timer: asyncio.TimerHandle | None = None
        self._under_way = 0
        self._finder: CopyFinder | None = None
        self._probe = vitals.StallProbe()

    async def run(self) -> None:
        """Serve the hub until it closes the channel."""
        reader, self._writer = await asyncio.open_connection(sock=self._sock, limit=1 << 22)
        asyncio.get_running_loop().set_exception_handler(self._on_exception)
        try:
            await self._serve(reader)
        except (GossamerError, OSError) as error:  # its files cannot be opened or finished
            self.on_failure(as_our_error(error))
            sys.exit(1)
        except Exception as error:  # the hub replaces this worker, and must know why
            self.on_crash(crash_of("", error))
            sys.exit(1)
        finally:
            await self._writer.drain()
            self._writer.close()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that belongs to no page: tasks that it leaves without a result are ended by the hub."""
        error = context.get("exception")
        if isinstance(error, Exception):
            self.on_crash(crash_of("", error))
        else:
            loop.default_exception_handler(context)

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        inbox = self._messages(reader)
        begin = await anext(inbox)
        assert isinstance(begin, messages.Begin)
        divide(Regions(begin.config.regions) if begin.config.regions else None)
        probe = self._probe
        probe.start()
        ledger = LocalLedger(Path(begin.ledger), is_readonly=True)
        ledger.open()  # which has the key of ids
        self._finder = CopyFinder(ledger, begin.config.copies)
        async with open_worker(begin.config, self._finder, self, self._marks) as worker:
            async for message in inbox:
                if isinstance(message, messages.Close):
                    break
                await self._handle(message, worker)
            else:
                # The hub is gone: the next owner of the folder recovers the archive.
                os._exit(1)
        self._flush()
        probe.measure_memory()
        stalls_ms = probe.stall_p99_ms(), probe.stall_max_ms(), probe.core_wait_p99_ms()
        self._send(messages.WorkerReport(vitals.cpu_seconds(), *stalls_ms))
        ledger.close()

    async def _handle(self, message: messages.Message, worker: Worker) -> None:
        match message:
            case messages.FetchTasks(tasks, decided):
                for task_id in decided:
                    worker.mark_links_final(task_id)
                for task in tasks:
                    if self._finder is not None:
                        self._finder.expect(task)
                    worker.start(task)
                self._under_way += len(tasks)
            case messages.OpenAddress(address):
                worker.open_address(address)
            case messages.Sync(number):
                await self._sync(number, worker)
            case _:
                raise GossamerError(f"unexpected message {type(message).__name__}")

    async def _sync(self, number: int, worker: Worker) -> None:
        """Confirm a sync, or report that it failed: the hub then stops, and closes this worker like the others."""
        try:
            await worker.sync()
        except (GossamerError, OSError) as error:
            self.on_failure(as_our_error(error))
        else:
            self._flush()
            self._send(messages.Synced(number, worker.volume(), self._probe.take_longest_s()))

    async def _messages(self, reader: asyncio.StreamReader) -> AsyncIterator[messages.Message]:
        while data := await reader.read(1 << 20):
            for message in self._frames.feed(data):
                yield message

    def on_result(self, result: Result) -> None:
        """Send a result together with others, within `FLUSH_S`."""
        if self._finder is not None:
            self._finder.record(result)
        self._results.append(result)
        self._under_way -= 1
        if not self._under_way or len(self._results) >= MAX_RESULTS:
            self._flush()
        elif self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def on_sent(self, task_id: int, sent_at: float) -> None:
        self._send(messages.Sent(task_id, sent_at))

    def on_failure(self, error: GossamerError) -> None:
        """Report that the archive cannot be written, synced or finished."""
        self._send(messages.Failed(type(error).__name__, str(error)))

    def on_crash(self, crash: Crash) -> None:
        """Report that our code raised."""
        self._send(messages.Crashed(crash))

    def _flush(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._results:
            failpoints.reach("before_report")
            results = self._results
            self._results = []
            try:
                self._send(messages.Results(results))
            except Exception:  # one of them cannot be encoded; the others must arrive
                for result in results:
                    self._send_alone(result)

    def _send_alone(self, result: Result) -> None:
        try:
            self._send(messages.Results([result]))
        except Exception as error:
            self.on_crash(crash_of(f"task {result.task_id}", error))
            crashed = Result(result.task_id, Outcome.INTERNAL_ERROR, error=describe(error), worker=result.worker)
            crashed.sent_at = result.sent_at
            crashed.finished_at = result.finished_at
            crashed.archived = result.archived
            crashed.archive_end = result.archive_end
            self._send(messages.Results([crashed]))

    def _send(self, message: messages.Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(messages.frame(message))


def _die_with_hub() -> None:
    """Have the kernel kill this process when the hub ends, however it ends: no orphan writes to the archive."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Run the worker on the socket and the marks whose file descriptors are the arguments."""
    import uvloop

    _die_with_hub()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    raise_file_limit()
    make_full_collections_rare()
    vitals.switch_threads_often()
    damage.end_with_a_line("gossamer", damage.WORKER_STATUS)
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.setblocking(False)
    uvloop.run(WorkerEnd(sock, open_marks(int(sys.argv[2]))).run())


if __name__ == "__main__":
    main()
