"""Can the ledger of a folder be used, and how is it prepared to be rebuilt from the archive if it was lost or damaged?

All stored answers are read, oldest first, as if they arrived now: each page ends its task, and its links are offered
by the rules of the crawl. So what was queued is queued again, with depth and parent. A URL that no earlier page leads
to was a seed. What only the ledger had is gone: dead letters without an answer, pace and failures of hosts, budgets
of calendars and quarantines; these are learned again. The old ledger is not deleted: it goes to `aside/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.objects import archive_key
from gossamer.archive.recovery import ASIDE_FOLDER
from gossamer.backends.local.damage import WORKER_STATUS
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.ledger import IDENTITY_FILE
from gossamer.backends.local.store import DATA_FILE
from gossamer.backends.registry import object_store_in, open_objects
from gossamer.model.errors import GossamerError
from gossamer.reading.folder import CrawlReader
from gossamer.runtime.recovery.recovery import archived_names, foreign_ledger

_CHUNK_BYTES = 8 << 20


def ledger_problem(folder: CrawlFolder) -> str:
    """Return why a ledger cannot be used, found by reading all of it; empty if it can.

    By another process: some damage ends the one that reads it (`backends/local/damage`).
    """
    if not (folder.state / DATA_FILE).is_file():
        return "there was none"
    command = [sys.executable, "-m", "gossamer.verify.probe", str(folder.path)]
    done = subprocess.run(  # noqa: S603 - our own module, no shell
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode < 0 or done.returncode == WORKER_STATUS:
        return "reading it ended a process"
    if done.returncode:
        CrawlReader(folder.path).__enter__().__exit__(None, None, None)  # says what is wrong
        raise GossamerError(f"{folder.path}: the ledger cannot be examined: {done.stderr[-300:].decode()}")
    problem: str = done.stdout.decode("utf-8", "replace").strip()
    if problem:
        return problem
    with CrawlReader(folder.path) as crawl:
        if object_store_in(crawl.settings.store):
            return ""  # what is not in the folder may be there
        return foreign_ledger(archived_names(folder), crawl.ledger.archive_ends())


def set_state_aside(folder: CrawlFolder) -> Path | None:
    """Move the files of a ledger aside, except the lock; return where they are, or None if there were none."""
    files = [path for path in folder.state.iterdir() if path.name != "owner"]
    if not files:
        return None
    aside = folder.path / ASIDE_FOLDER / time.strftime("state-%Y%m%dT%H%M%SZ", time.gmtime())
    aside.mkdir(parents=True, exist_ok=True)
    for path in files:
        path.rename(aside / path.name)
    if (aside / IDENTITY_FILE).is_file():  # the ledger that is made from the archive has the same ids
        shutil.copy2(aside / IDENTITY_FILE, folder.state)
    return aside


def download_missing(folder: CrawlFolder, url: str) -> None:
    """Fetch merged files back from a store that are not here. The next run removes them."""
    store = open_objects(url)
    missing = [
        merged
        for name, merged in ArchiveFiles(folder.archive).merged().items()
        if not (folder.archive / name).is_file()
    ]
    for merged in missing:
        unfinished = folder.archive / f".{merged.name}.tmp"
        with unfinished.open("wb") as file:
            for start in range(0, merged.size, _CHUNK_BYTES):
                file.write(store.read(archive_key(merged.name), start, min(merged.size, start + _CHUNK_BYTES)))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder.archive / merged.name)
