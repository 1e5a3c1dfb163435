"""Rebuilds a ledger from the archive, if it was lost or damaged.

All stored answers are read, oldest first, as if they arrived now: each page ends its order, and its links are offered
by the rules of the crawl. So what was queued is queued again, with depth and parent. A URL that no earlier page leads
to was a seed. What only the ledger had is gone: dead letters without an answer, pace and failures of hosts, budgets of
calendars and quarantines; these are learned again. The old ledger is not deleted: it goes to `aside/`.
"""

from __future__ import annotations

import time
from pathlib import Path

from gossamer.archive.recovery import ASIDE_FOLDER
from gossamer.backends.local.folder import CrawlFolder


def set_state_aside(folder: CrawlFolder) -> Path | None:
    """Move the files of a ledger aside, except the lock; return where they are, or None if there were none."""
    files = [path for path in folder.state.iterdir() if path.name != "owner"]
    if not files:
        return None
    aside = folder.path / ASIDE_FOLDER / time.strftime("state-%Y%m%dT%H%M%SZ", time.gmtime())
    aside.mkdir(parents=True, exist_ok=True)
    for path in files:
        path.rename(aside / path.name)
    return aside
