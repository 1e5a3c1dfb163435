"""Named places where a test can kill the process, make a write fail, or make our own code raise.

`GOSSAMER_FAILPOINT=after_archive_write:kill:17` kills the process with SIGKILL the 17th time
the place is reached; `:full:` raises "no space left" there instead, `:raise:` an error that
nobody expects. Without the variable a place costs one comparison.
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
    "in_close",  # the crawl is over, index and report are not written
)

# Places in our own code where only `raise` makes sense: nothing is stored there.
STAGES = (
    "in_decode",  # of an answer with a content coding
    "in_parse",  # of a page
)

_name, _action, _countdown = "", "", 0


def arm(text: str) -> None:
    """Arm one failpoint, given as `name:action:count`; an empty string disarms it."""
    global _name, _action, _countdown
    _name, _action, _countdown = "", "", 0
    if text:
        name, action, count = text.split(":")
        if name not in POINTS + STAGES or action not in ("kill", "full", "raise"):
            raise ValueError(f"GOSSAMER_FAILPOINT={text}: expected {POINTS[0]}:kill:1")
        _name, _action, _countdown = name, action, int(count)


def reach(name: str) -> None:
    """Fail here if this failpoint is armed and its count is reached."""
    global _countdown  # noqa: PLW0603 - as above
    if name != _name:
        return
    _countdown -= 1
    if _countdown == 0:
        if _action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if _action == "raise":
            raise RuntimeError(f"failpoint {name}")
        raise OSError(errno.ENOSPC, "No space left on device")


arm(os.environ.get("GOSSAMER_FAILPOINT", ""))
