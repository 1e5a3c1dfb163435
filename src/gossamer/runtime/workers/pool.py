"""Which worker has which task?

The pool opens workers by number, assigns each task to one of them and tracks outstanding
tasks. A number is used once: a worker that replaces a dead one has a new number, so that no
two workers ever share an archive file. A host stays with its worker, unless that one has a
much higher load than another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Protocol

from gossamer.core.url.identity import host_id
from gossamer.model.errors import GossamerError, as_our_error
from gossamer.model.records import FetchTask, Result
from gossamer.runtime.workers import messages
from gossamer.runtime.workers.channel import Channel, HubListener

SMALL_LOAD = 16  # tasks; below this, no task moves to another worker


class WorkerSource(Protocol):
    """Opens workers, and reads back what a dead one left."""

    def open_channel(self, number: int, listener: HubListener) -> Channel:
        """Return a channel to a new worker; the pool opens it."""
        ...

    def rescue(self, number: int) -> Iterable[Result]:
        """Return the results that a dead worker had archived but not reported; its files are closed afterwards."""
        ...


class WorkerPool:
    def __init__(self, source: WorkerSource) -> None:
        self._source = source
        self._channels: dict[int, Channel] = {}
        self._numbers: list[int] = []  # of the channels, sorted
        self._worker_of: dict[int, int] = {}  # task id -> worker number
        self._load: dict[int, int] = {}  # worker number -> outstanding tasks
        self._next_number = 0
        self.last_task_id = 0  # of those that were given out; ids only grow

    @property
    def is_empty(self) -> bool:
        return not self._channels

    @property
    def has_outstanding(self) -> bool:
        return bool(self._worker_of)

    async def add(self, listener: HubListener) -> None:
        number = self._next_number
        self._next_number += 1
        channel = self._source.open_channel(number, listener)
        await channel.open()
        self._load[number] = 0
        self._channels[number] = channel  # only now: tasks must not overtake the worker's first message
        self._numbers = sorted(self._channels)

    def start(self, tasks: Sequence[FetchTask]) -> None:
        batches: dict[int, list[FetchTask]] = {}
        for task in tasks:
            number = self._worker_for(task)
            self._worker_of[task.id] = number
            self._load[number] += 1
            batches.setdefault(number, []).append(task)
        if tasks:
            self.last_task_id = tasks[-1].id
        for number, batch in batches.items():
            self._channels[number].start(batch)

    def _worker_for(self, task: FetchTask) -> int:
        """Return a host's usual worker, which has open connections, unless its load is much higher than another's."""
        numbers = self._numbers
        if len(numbers) == 1:
            return numbers[0]
        usual = numbers[host_id(task.host)[-1] % len(numbers)]  # the same in every run
        load = self._load
        if load[usual] <= SMALL_LOAD:
            return usual
        idlest = min(numbers, key=load.__getitem__)
        return usual if load[usual] <= 2 * load[idlest] + SMALL_LOAD else idlest

    def end(self, task_id: int) -> int | None:
        """Record that a task has ended; return its worker's number, or None if the task is not outstanding."""
        number = self._worker_of.pop(task_id, None)
        if number is not None:
            self._load[number] -= 1
        return number

    def mark_links_final(self, number: int, task_id: int) -> None:
        """Inform a worker that none of a page's links need to be sent again."""
        channel = self._channels.get(number)
        if channel is not None:
            channel.mark_links_final(task_id)

    def reading(self, number: int) -> list[int]:
        """Return the outstanding tasks that killed a worker: whose answers it was reading, or the only one it had."""
        channel = self._channels.get(number)
        its_tasks = [task_id for task_id, worker in self._worker_of.items() if worker == number]
        reading = [task_id for task_id in channel.reading() if task_id in its_tasks] if channel else []
        return reading or (its_tasks if len(its_tasks) == 1 else [])

    def remove(self, number: int) -> Iterable[Result]:
        """Remove a dead worker; return the results that it had archived but not reported."""
        self._channels.pop(number, None)
        self._numbers = sorted(self._channels)
        return self._source.rescue(number)

    def outstanding_up_to(self, task_id: int) -> list[int]:
        """Return the outstanding tasks with this id or a smaller one. Costs what is returned."""
        return list(takewhile(lambda each: each <= task_id, self._worker_of))  # in the order in which they began

    def worker_of(self, task_id: int) -> int:
        return self._worker_of[task_id]

    def kill(self, number: int, cause: str) -> None:
        """End a worker that does not do its work; the hub's `on_lost` follows."""
        channel = self._channels.get(number)
        if channel is not None:
            channel.kill(cause)

    def withdraw(self, number: int | None = None) -> list[int]:
        """Forget the tasks of a worker, or all of them if None; return their ids."""
        withdrawn = [task_id for task_id, worker in self._worker_of.items() if number is None or worker == number]
        for task_id in withdrawn:
            self.end(task_id)
        return withdrawn

    async def sync(self) -> None:
        """Return when everything that the workers have archived so far is durable."""
        await asyncio.gather(*(channel.sync() for channel in self._channels.values()))

    async def close(self) -> tuple[list[messages.WorkerReport], list[GossamerError]]:
        """Close all workers; return their reports, and the errors of those whose files could not be finished."""
        reports = []
        failures = []
        for channel in list(self._channels.values()):
            try:
                report = await channel.close()
            except (GossamerError, OSError) as error:
                failures.append(as_our_error(error))
                continue
            if report is not None:
                reports.append(report)
        return reports, failures
