"""What changes a crawl, and what it is asked.

Commands are data. Those of an operator (by a verb, on the dashboard, over the API) reach every crawl through
`gossamer.control`; the others are those of parts of a run. Whoever gives them, a crawl that runs has them in one queue,
and obeys them in the hub's turn, in order, before it makes the next tasks (`runtime/session/control`). Before the run
they wait for it; after its end they have no effect. A query is answered by a crawl that runs
(`runtime/session/queries`), and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from gossamer.model.state import ALL_PATTERNS, DomainRank

# What an operator can command.


class PauseCrawl(Struct, frozen=True, tag_field="command", tag="pause", forbid_unknown_fields=True):
    """Make no more requests until it is resumed."""


class ResumeCrawl(Struct, frozen=True, tag_field="command", tag="resume", forbid_unknown_fields=True):
    """Continue after a pause."""


class StopCrawl(Struct, frozen=True, tag_field="command", tag="stop", forbid_unknown_fields=True):
    """End the run cleanly; it can be resumed."""


class BlockNames(Struct, frozen=True, tag_field="command", tag="block", forbid_unknown_fields=True):
    """Make no more requests to hosts, or to all hosts of registrable domains."""

    names: list[str]


class UnblockNames(Struct, frozen=True, tag_field="command", tag="unblock", forbid_unknown_fields=True):
    """End a block; what was queued there is queued again."""

    names: list[str]


class ChangePace(Struct, frozen=True, tag_field="command", tag="pace", forbid_unknown_fields=True):
    """Set delay and connections of the hosts that match a pattern (`example.org`, `*.example.org`, `*`)."""

    pattern: str
    delay: float | None = None  # seconds
    connections: int | None = None


class ChangeSetting(Struct, frozen=True, tag_field="command", tag="set", forbid_unknown_fields=True):
    """Change a limit."""

    key: str  # as on the command line, without the dashes
    value: str | int | float | None  # None, or "none": no limit


class AddSeeds(Struct, frozen=True, tag_field="command", tag="add", forbid_unknown_fields=True):
    """Queue seeds: URLs or bare domains, with scope=, depth= and metadata after tabs."""

    seeds: list[str]


class ReportChanges(Struct, frozen=True, tag_field="command", tag="changed", forbid_unknown_fields=True):
    """Fetch pages again that are said to have changed, and new ones if the crawl's rules allow it."""

    urls: list[str]


class ReleasePattern(Struct, frozen=True, tag_field="command", tag="release", forbid_unknown_fields=True):
    """End the quarantine of a pattern of URLs, or of all patterns."""

    pattern: str = ALL_PATTERNS


class RetryLetters(Struct, frozen=True, tag_field="command", tag="retry", forbid_unknown_fields=True):
    """Queue dead letters again."""

    outcomes: list[str] = []  # empty: any
    hosts: list[str] = []


SettingCommand: TypeAlias = BlockNames | UnblockNames | ChangePace | ChangeSetting
OperatorCommand: TypeAlias = (
    PauseCrawl | ResumeCrawl | StopCrawl | SettingCommand | AddSeeds | ReportChanges | ReleasePattern | RetryLetters
)

# What parts of a run, and the program that it runs in, command besides.


class Stop(Struct, frozen=True, tag_field="command"):
    """End the run cleanly. The first reason counts; a paused crawl stops too."""

    reason: str


class Pause(Struct, frozen=True, tag_field="command"):
    """Make no more requests until every client that paused the run has resumed it. Requests in flight continue."""

    by: str = "operator"


class Resume(Struct, frozen=True, tag_field="command"):
    """Withdraw the `Pause` of the same name."""

    by: str = "operator"


class AddSeedsWithMeta(Struct, frozen=True, tag_field="command"):
    """Queue seeds with metadata as of a link."""

    seeds: list[str]
    meta: bytes


class SetOptOuts(Struct, frozen=True, tag_field="command"):
    """Block exactly these hosts and registrable domains from now on."""

    names: frozenset[str]


class CommitSoon(Struct, frozen=True, tag_field="command"):
    """Commit now, or when the current commit has ended."""


class Wake(Struct, frozen=True, tag_field="command"):
    """Make the tasks that are due: something has changed that makes more of them possible."""


class SetMemoryWindow(Struct, frozen=True, tag_field="command"):
    """Limit the concurrent requests to those whose answers fit into memory."""

    connections: int


class SetRanks(Struct, frozen=True, tag_field="command"):
    """Give domains the ranks that were computed, a batch at a time; the last batch says when."""

    ranks: tuple[DomainRank, ...]
    computed_at: str = ""


Command: TypeAlias = (
    OperatorCommand
    | Stop
    | Pause
    | Resume
    | AddSeedsWithMeta
    | SetOptOuts
    | CommitSoon
    | Wake
    | SetMemoryWindow
    | SetRanks
)
Submit: TypeAlias = Callable[[Command], None]  # must be called in the event loop's thread


class AskFigures(Struct, frozen=True, tag_field="query", tag="figures", forbid_unknown_fields=True):
    """The figures of this moment."""


class AskHost(Struct, frozen=True, tag_field="query", tag="host", forbid_unknown_fields=True):
    """What is known about a host now."""

    name: str


Query: TypeAlias = AskFigures | AskHost
