"""The crawl folder: who owns it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Timer

import pytest

from gossamer.backends.local.folder import CrawlFolder
from gossamer.model.errors import FolderBusyError


def test_who_asks_for_the_owner_keeps_no_crawl_from_beginning(tmp_path: Path) -> None:
    crawl = CrawlFolder(tmp_path)
    crawl.lock()
    crawl.release()
    asking = os.open(crawl.state / "owner", os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as `owner` does, but for longer
    answered = Timer(0.05, os.close, [asking])
    answered.start()
    crawl.lock()
    answered.join()
    assert CrawlFolder(tmp_path).owner() == os.getpid()
    with pytest.raises(FolderBusyError, match=f"in use by process {os.getpid()}"):
        CrawlFolder(tmp_path).lock()
    crawl.release()
    assert CrawlFolder(tmp_path).owner() is None
