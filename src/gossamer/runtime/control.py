"""Which commands can be given to a crawl while it runs?

A command is a frozen record; whoever wants something of a running crawl (a signal, the
program that reads its pages, the memory guard, the watcher of `blocked.txt`) submits one to
the hub. The hub applies commands in its own turn, in the order of their submission, before it
makes the next orders. So a client needs no access to the hub's state, and a new client is
an addition. The tag of each record makes `Command` a union that msgspec can encode and decode.

Commands may be submitted before the crawl starts (they are applied first) and after it has
ended (they have no effect). `submit` belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType


class Stop(Struct, frozen=True, tag=True):
    """End the crawl cleanly. The first reason counts; a crawl that is paused stops too."""

    reason: str


class Pause(Struct, frozen=True, tag=True):
    """Make no more requests until everyone who paused the crawl has resumed it. Requests under way end."""

    by: str = "operator"


class Resume(Struct, frozen=True, tag=True):
    """Withdraw the `Pause` of the same name."""

    by: str = "operator"


class SetOptOuts(Struct, frozen=True, tag=True):
    """Leave exactly these hosts and registrable domains alone from now on."""

    names: frozenset[str]


class CommitSoon(Struct, frozen=True, tag=True):
    """Commit now, or as soon as the commit under way has ended."""


class ChangeLimits(Struct, frozen=True, tag=True):
    """Replace the limits that are set here; None removes a limit that may be absent.

    `max_time_s` counts from the start of this run. `connections` is a request: it never exceeds what memory and
    open files have room for.
    """

    max_pages: int | UnsetType | None = UNSET
    max_time_s: float | UnsetType | None = UNSET
    max_wait_s: float | UnsetType = UNSET
    connections: int | UnsetType = UNSET


class SetMemoryWindow(Struct, frozen=True, tag=True):
    """Make at most so many requests at once, because memory has room for no more answers."""

    connections: int


Command: TypeAlias = Stop | Pause | Resume | SetOptOuts | CommitSoon | ChangeLimits | SetMemoryWindow
Submit: TypeAlias = Callable[[Command], None]
