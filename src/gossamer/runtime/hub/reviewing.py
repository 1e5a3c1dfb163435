"""How somebody else decides about links before an answer is completed.

The engine decides at once, and hooks of a program may wait: for a database, or for another service. So every result
goes through a review first, all at the same time, and is completed in the order of arrival: the archive has the records
in this order, and what is committed must be a beginning of it. A result whose review has not ended when the crawl
stops, or has failed, is not completed: its task returns to the queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from gossamer.model.errors import GossamerError
from gossamer.model.records import FetchTask, Outcome, Result
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers.channel import Channel, HubListener
from gossamer.runtime.workers.pool import WorkerSource

Review: TypeAlias = Callable[[FetchTask, Result], Awaitable[bool]]  # returns whether the result may be completed


class ReviewedWorkers:
    """Workers whose results are reviewed; see `runtime.workers.pool.WorkerSource`."""

    def __init__(self, source: WorkerSource, task_of: Callable[[int], FetchTask | None], review: Review) -> None:
        self._source = source
        self._task_of = task_of
        self._review = review

    def open_channel(self, number: int, listener: HubListener) -> Channel:
        return self._source.open_channel(number, ReviewedResults(listener, self._task_of, self._review))

    def rescue(self, number: int) -> Iterable[Result]:
        """Return the results that a dead worker had archived but not reported."""
        return self._source.rescue(number)


class ReviewedResults:
    """Passes results on after their review; see `channel.HubListener`."""

    def __init__(self, listener: HubListener, task_of: Callable[[int], FetchTask | None], review: Review) -> None:
        self._task_of = task_of
        self._review = review
        self._listener = listener
        self._waiting: deque[tuple[Result, asyncio.Task[bool]]] = deque()
        self._task: asyncio.Task[None] | None = None

    def on_result(self, result: Result) -> None:
        task = self._task_of(result.task_id)
        if task is None:
            self._listener.on_result(result)
            return
        loop = asyncio.get_running_loop()
        self._waiting.append((result, loop.create_task(self._reviewed(task, result))))
        if self._task is None:
            self._task = loop.create_task(self._work())
            self._task.add_done_callback(self._on_end)

    async def _reviewed(self, task: FetchTask, result: Result) -> bool:
        return await self._review(task, result)

    async def _work(self) -> None:
        while self._waiting:
            result, review = self._waiting[0]
            is_complete = await review
            self._waiting.popleft()
            self._listener.on_result(result if is_complete else Result(result.task_id, Outcome.WORKER_LOST))

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.result()  # an error goes to the loop's handler, which ends the crawl

    def on_sent(self, task_id: int, sent_at: float) -> None:
        self._listener.on_sent(task_id, sent_at)

    def on_failure(self, error: GossamerError) -> None:
        self._listener.on_failure(error)

    def on_crash(self, crash: Crash) -> None:
        """Our code raised on a page."""
        self._listener.on_crash(crash)

    def on_lost(self, number: int, cause: str) -> None:
        self._listener.on_lost(number, cause)
