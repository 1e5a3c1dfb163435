"""Which tasks are out, and which names are being looked up? Each uses one of the connections."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from gossamer.core.frontier.workbench import HostSlot, RobotsRequest
from gossamer.core.url.identity import shard_of
from gossamer.model.records import FetchTask, QueuedUrl


class Again(IntEnum):
    """Whether a request that has failed is made again as if it had not."""

    NO = 0
    ELSEWHERE = 1  # at the next address of its host, through the gate of that
    WITH_TIME = 2  # without the limit of a connection that was lent


class OutstandingTask(Struct):
    """A task that has not ended: for a page (`url`) or for a robots.txt (`robots`)."""

    task: FetchTask
    host: HostSlot
    url: QueuedUrl | None
    robots: RobotsRequest | None
    is_sent: bool = False
    next_at_before: float = 0.0  # of its host, when it was sent
    next_at_held: float = 0.0  # after that, until its arrival is known; 0: not reported as sent
    is_slow: bool = False  # its host was when it was sent


class Outstanding:
    """The tasks that are out, by number, and the look-ups."""

    def __init__(self) -> None:
        self._tasks: dict[int, OutstandingTask] = {}
        self._lookups: set[str] = set()
        self.next_id = 1
        self.count = 0  # requests out and names being looked up; read several times per page

    def add(self, out: OutstandingTask) -> None:
        """Record a task that goes out; its id is `next_id`."""
        self._tasks[out.task.id] = out
        self.next_id += 1
        self.count += 1

    def get(self, task_id: int) -> OutstandingTask | None:
        """Return a task that is out."""
        return self._tasks.get(task_id)

    def remove(self, task_id: int) -> OutstandingTask:
        """Remove and return a task that has ended."""
        out = self._tasks.pop(task_id)
        self.count -= 1
        return out

    def shards(self) -> set[int]:
        """Return the shards of all hosts that have tasks out."""
        return {shard_of(out.host.id) for out in self._tasks.values()}

    def begin_lookup(self, host: str) -> bool:
        """Record a name that is being looked up; return False if it is already, for an earlier owner of its shard."""
        if host in self._lookups:
            return False
        self._lookups.add(host)
        self.count += 1
        return True

    def end_lookup(self, host: str) -> None:
        """Record that a look-up has ended; its host may have been released since."""
        if host in self._lookups:
            self._lookups.remove(host)
            self.count -= 1
