"""What the frontier returns to its driver: I/O to do, and what follows from the end of a task."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from gossamer.core.frontier.workbench import OriginRules, RobotsRequest
from gossamer.core.robots.match import RobotsDecision
from gossamer.model.records import HostRecord, Outcome, QueuedUrl, QueuePosition, UrlState


class Resolve(Struct, frozen=True):
    """Look a host name up; answer with `learn_address` or `fail_address`."""

    host: str


class ReadQueue(Struct, frozen=True):
    """Read up to `count` queued URLs of a host beyond `after`; answer with `read_queue`."""

    host: str
    after: QueuePosition | None
    count: int


class ReadRules(Struct, frozen=True):
    """Read the robots.txt of an origin again, whose rules were shed; answer with `restore_rules`."""

    host: str
    origin: str


class LoadHost(Struct, frozen=True):
    """Bring a host into memory; answer with `load_host`."""

    host: str


class SwapIn(Struct, frozen=True):
    """There is room for swapped-out hosts; answer with `load_host` for up to `count`, then `set_swapped_out`."""

    count: int


class SwapOut(Struct, frozen=True):
    """A host has left memory; it is swapped out to the ledger until the given time."""

    host: HostRecord
    until: float


class KillQueue(Struct, frozen=True):
    """All that is queued at a host has failed: move it to the dead letters."""

    host: HostRecord
    outcome: Outcome
    error: str
    requisites: int = 0  # of what is queued


Command: TypeAlias = Resolve | ReadQueue | ReadRules | LoadHost | SwapIn | SwapOut | KillQueue


class Denied(Struct, frozen=True):
    """A URL that robots.txt forbids; detected when its turn came."""

    url: QueuedUrl
    decision: RobotsDecision
    is_overridden: bool = False  # it is fetched all the same, since its host is the operator's own


class Postponed(Struct, frozen=True):
    """A known URL that was due and cannot be fetched before a time, since its robots.txt cannot be reached."""

    url: QueuedUrl
    until: float


class Effects(Struct):
    """What follows from the end of a task, for the driver to record."""

    url: QueuedUrl | None = None  # the URL that the task was for; None for robots.txt
    state: UrlState | None = None  # DONE or DEAD; QUEUED if it will be tried again
    retry: QueuedUrl | None = None
    hosts: list[HostRecord] = []  # changed by it: the task's host first
    is_page: bool = False
    domain_pages: int = 0  # of the host's domain, including this one; 0 if it is no page
    is_lost_page: bool = False  # it was a page at its last visit, and is none any more
    robots_origin: str = ""  # whose robots.txt was requested
    robots: OriginRules | None = None
    sitemaps: list[str] = []
    robots_asked: RobotsRequest | None = None  # to be made by the node that owns its host
    robots_answered: RobotsRequest | None = None  # made for another node, which waits for the result
    fallbacks: list[QueuedUrl] = []  # bare domains without https: to be tried over http
    parked_s: float = 0.0  # the host was parked for this long just now
    usage: list[str] = []  # preferences for the use of a page's content, from the robots.txt of its origin
