"""The limits of a hub, and where it commits to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from gossamer.ports import CommitLog, EventSink


class CommitTargets(Struct, frozen=True):
    """What a commit makes durable, besides the archive."""

    ledger: CommitLog
    events: EventSink


class HubLimits(Struct, frozen=True):
    """Limits of the hub. All except `workers` can be changed while it runs (`Hub.change_limits`)."""

    workers: int = 1
    connections: int = 256
    max_time_s: float | None = None
    max_wait_s: float = 300.0
    task_limit_s: float = 600.0  # from task to result; a worker's own limits are far stricter
    ends_by_itself: bool = True  # when nothing is left; a node of a cluster ends when nothing is left anywhere
