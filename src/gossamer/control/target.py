"""Which crawl obeys a command: a running one, a stopped one, or one that nodes share."""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from gossamer.backends.local.folder import CrawlFolder
from gossamer.control.record import is_ledger_url
from gossamer.model.commands import OperatorCommand


class Target(Protocol):
    """A crawl as it is now: it may start or end before the next command."""

    def obey(self, command: OperatorCommand, by: str) -> str:
        """Obey a command of an operator; return what was done, in one line, when that is durable. Blocks.

        Raises `UsageError` if the command is wrong, `GossamerError` if the crawl cannot obey it now.
        """


def target(crawl: str | Path) -> Target:
    """Return the crawl in a folder, or in the ledger with a URL; raise if there is none."""
    if is_ledger_url(str(crawl)):
        from gossamer.control.cluster import SharedCrawl

        return SharedCrawl(str(crawl))
    folder = CrawlFolder(Path(crawl))
    folder.require_crawl()
    if folder.owner() is not None:
        from gossamer.control.running import RunningCrawl

        return RunningCrawl(folder)
    from gossamer.control.stopped import StoppedCrawl

    return StoppedCrawl(folder)


def operator() -> str:
    """Return who gives commands."""
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return socket.gethostname()
