"""Which commands can be given to a crawl while it runs?

A command is a frozen record that a client (a signal handler, the program that reads the
pages, memory control, the watcher of `blocked.txt`) submits to the hub. The hub applies
commands in its own turn, in the order of their submission, before it makes the next orders.
So a client needs no access to the hub's state, and a new client needs no change to the hub.
The tag of each record makes `Command` a union that msgspec can encode and decode.

Commands may be submitted before the crawl starts (they are applied first) and after it has
ended (they have no effect). `submit` must be called in the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from gossamer.model.state import DomainRank


class Stop(Struct, frozen=True, tag=True):
    """End the crawl cleanly. The first reason counts; a paused crawl stops too."""

    reason: str


class Pause(Struct, frozen=True, tag=True):
    """Make no more requests until every client that paused the crawl has resumed it. Requests in flight continue."""

    by: str = "operator"


class Resume(Struct, frozen=True, tag=True):
    """Withdraw the `Pause` of the same name."""

    by: str = "operator"


class SetOptOuts(Struct, frozen=True, tag=True):
    """Block exactly these hosts and registrable domains from now on."""

    names: frozenset[str]


class CommitSoon(Struct, frozen=True, tag=True):
    """Commit now, or when the current commit has ended."""


class Wake(Struct, frozen=True, tag=True):
    """Make the orders that are due: something has changed that makes more of them possible."""


class ChangeLimits(Struct, frozen=True, tag=True):
    """Replace the limits that are set here; None removes an optional limit.

    `max_time_s` counts from the start of this run. `connections` is further limited by memory and
    open files.
    """

    max_pages: int | UnsetType | None = UNSET
    max_time_s: float | UnsetType | None = UNSET
    max_wait_s: float | UnsetType = UNSET
    connections: int | UnsetType = UNSET


class SetMemoryWindow(Struct, frozen=True, tag=True):
    """Limit the concurrent requests to those whose answers fit into memory."""

    connections: int


class SetRanks(Struct, frozen=True, tag=True):
    """Give domains the ranks that were computed, a batch at a time; the last batch says when."""

    ranks: tuple[DomainRank, ...]
    computed_at: str = ""


Command: TypeAlias = Stop | Pause | Resume | SetOptOuts | CommitSoon | Wake | ChangeLimits | SetMemoryWindow | SetRanks
Submit: TypeAlias = Callable[[Command], None]
