"""What an operator can tell a crawl, and ask it: by a verb, on its page, over its API.

Commands are data. A crawl that runs gets them over a socket in its folder, a crawl on many machines through its record;
one that does not run finds them in its settings and in its ledger when it is continued (`runtime/session/steering`). A
query is answered by a crawl that runs (`runtime/session/queries`), and changes nothing.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from gossamer.model.state import ALL_PATTERNS


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


OperatorCommand: TypeAlias = (
    PauseCrawl
    | ResumeCrawl
    | StopCrawl
    | BlockNames
    | UnblockNames
    | ChangePace
    | ChangeSetting
    | AddSeeds
    | ReportChanges
    | ReleasePattern
    | RetryLetters
)
SettingCommand: TypeAlias = BlockNames | UnblockNames | ChangePace | ChangeSetting


class AskFigures(Struct, frozen=True, tag_field="query", tag="figures", forbid_unknown_fields=True):
    """The figures of this moment."""


class AskHost(Struct, frozen=True, tag_field="query", tag="host", forbid_unknown_fields=True):
    """What is known about a host now."""

    name: str


Query: TypeAlias = AskFigures | AskHost
