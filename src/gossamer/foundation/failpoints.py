"""Named places where a test can kill the process, make a write fail, or make our own code raise.

`GOSSAMER_FAILPOINT=after_archive_write:kill:17` kills the process with SIGKILL the 17th time
the place is reached; `:full:` raises "no space left" there instead, `:raise:` an error that
nobody expects. `in_parse:kill:@/p/7` does it every time for URLs that contain `/p/7`. Without the
variable a place costs one comparison.
"""

from __future__ import annotations

import errno
import os
import signal

POINTS = (
    "after_fetch",  # an answer has arrived, nothing is stored
    "after_archive_write",  # its records are in the file, but not reported
    "before_report",  # a worker process has results that the hub has not received
    "before_commit",  # archives are synced, the ledger is not written
    "in_commit",  # inside the ledger's transaction
    "after_commit",
    "in_rotation",  # a full archive file is synced and indexed, not yet renamed
    "in_recovery",  # a page is finished from the archive of a dead process, but no event of it is written
    "in_close",  # the crawl is over, index and report are not written
)

# Places that only crawls with a store on other machines reach.
STORE_POINTS = (
    "in_store",  # it has the bodies of some pages, but not their metadata
    "in_catalog",  # a batch is sent to a catalog, and not yet stored as a whole
    "in_feed",  # documents are on their way to a topic: the position has not moved
    "after_catalog",  # the catalog has the rows of a commit, the ledger is not written
    "after_upload",  # the pages of a commit are in the store, the ledger is not written
    "after_merge",  # a whole archive file is in the store, but not in the list of merged files
    "after_segments_removed",  # its local file is still there
)

# Places in a commit to Kafka and Cassandra.
LEDGER_POINTS = (
    "before_journal",  # links are sent
    "before_decision",  # the commit is in the journal; it is not made
    "before_rows",  # it is made; nothing is applied
    "before_contents",  # rows are applied
    "before_publication",  # everything is applied, but nobody knows
)

# Places in a migration.
MIGRATION_POINTS = (
    "before_mark",  # a lot is stored, the mark that says so is not
    "after_file",  # an archive file is copied
    "after_node",  # the totals of a node are stored
    "before_end",  # everything is stored and compared, the copy is still marked as unfinished
)

# Places in our own code where nothing is stored, with the URL whose answer is handled.
STAGES = (
    "in_decode",  # of an answer with a content coding
    "in_parse",  # of a page
)

VARIABLE = "GOSSAMER_FAILPOINT"
_name, _action, _part, _countdown = "", "", "", 0


def arm(text: str) -> None:
    """Arm one failpoint, given as `name:action:count` or `name:action:@part of a URL`; an empty string disarms it."""
    global _name, _action, _part, _countdown
    _name, _action, _part, _countdown = "", "", "", 0
    if text:
        name, action, count = text.split(":", 2)
        known = POINTS + STORE_POINTS + LEDGER_POINTS + MIGRATION_POINTS + STAGES
        if name not in known or action not in ("kill", "full", "raise"):
            raise ValueError(f"GOSSAMER_FAILPOINT={text}: expected {POINTS[0]}:kill:1")
        part = count[1:] if count.startswith("@") else ""
        _name, _action, _part, _countdown = name, action, part, 0 if part else int(count)


def for_replacement(text: str) -> str:
    """Return the failpoint of a worker that replaces a dead one: only those by URL happen again."""
    return text if ":@" in text else ""


def reach(name: str, url: str = "") -> None:
    """Fail here if this failpoint is armed, and its count is reached or the URL is one of its own."""
    global _countdown  # noqa: PLW0603 - as above
    if name != _name or (_part and _part not in url):
        return
    _countdown -= 1
    if _countdown == 0 or _part:
        if _action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if _action == "raise":
            raise RuntimeError(f"failpoint {name}")
        raise OSError(errno.ENOSPC, "No space left on device")


arm(os.environ.get(VARIABLE, ""))
