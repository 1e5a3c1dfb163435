"""What is a check, and what has a verification found? The checks themselves are listed in `checks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView

MAX_PROBLEMS = 1000  # listed; further ones are only counted
ReportProblem: TypeAlias = Callable[[str, str], None]  # where, what
OnBytes: TypeAlias = Callable[[int], None]  # is called with how much of the archive was read


class Disagreement(Struct, frozen=True):
    """One thing that does not agree."""

    where: str
    what: str


class Agreement(Struct, kw_only=True):
    """What was checked, and what was found."""

    is_fine: bool = True
    files: int = 0
    records: int = 0
    captures: int = 0
    rows: int = 0
    queued: int = 0
    hosts: int = 0
    plain_files: int = 0  # of `--store files`
    objects: int = 0  # archive files or pages in an S3 store
    unreachable: int = 0  # URLs whose bytes are in folders of nodes that cannot be read here
    problem_count: int = 0
    problems: list[Disagreement] = []
    notes: list[str] = []

    def add_problem(self, where: str, what: str) -> None:
        """Record a problem."""
        self.is_fine = False
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Disagreement(where, what))


class Check(Struct, frozen=True):
    """A comparison of something with the ledger, and how what does not agree is mended.

    A database that cannot be reached is a problem of its own, which `find` adds; the other checks run all the same.
    """

    compares: str
    find: Callable[[CrawlView, Agreement, OnBytes], None]  # adds to what was found
    mend: Callable[[CrawlReader], list[str]] | None = None  # returns what was done. The caller owns the folder
    while_running: bool = False  # also while the crawl runs
    of_nodes: bool = False  # also with a shared ledger, and the folders of its nodes
