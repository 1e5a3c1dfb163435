"""How a verb tells a crawl something, also while it runs.

With a folder, a crawl that runs gets the command over its socket; for one that does not run it is kept for the next
run. With the URL of a ledger it goes into the crawl's record, and all nodes act on it.
"""

from __future__ import annotations

import argparse
import getpass
import shlex
import socket
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.cluster.ledger import is_ledger_url
from gossamer.core.url.forms import canonical
from gossamer.model.commands import (
    AddSeeds,
    BlockNames,
    OperatorCommand,
    PauseCrawl,
    ReleasePattern,
    ReportChanges,
    ResumeCrawl,
    RetryLetters,
    StopCrawl,
    UnblockNames,
)
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.records import Outcome
from gossamer.model.state import CrawlState
from gossamer.reading.host_states import left_alone
from gossamer.runtime.session.control_socket import send
from gossamer.runtime.session.opt_out import FILE_NAME, OptOutFile, name_in
from gossamer.settings.changes import described, with_command
from gossamer.settings.load import settings_for_known, to_toml
from gossamer.settings.seeds import seeds_in
from gossamer.telemetry.text import agreeing

MAX_REPORTED = 100_000  # that wait for the next run


def operator() -> str:
    """Return who gives commands."""
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return socket.gethostname()


def tell(crawl: str, command: OperatorCommand) -> int:
    """Give a command to a crawl; print what was done."""
    if is_ledger_url(crawl):
        from gossamer.cli.steer.steer_nodes import tell_nodes

        print(tell_nodes(crawl, command, operator()))
        return 0
    print(tell_folder(CrawlFolder(Path(crawl)), command, operator()))
    return 0


def tell_folder(folder: CrawlFolder, command: OperatorCommand, by: str) -> str:
    """Give a command to the crawl in a folder, or keep it for its next run; return what was done."""
    folder.require_crawl()
    if isinstance(command, UnblockNames):
        _refuse_listed(folder, command.names)
    if folder.owner() is not None:
        return send(folder.state, command, by)
    if isinstance(command, PauseCrawl | StopCrawl | ResumeCrawl):
        raise NotRunningError(f"{folder.path}: the crawl does not run")
    kept = f"{_keep(folder, command)}; the crawl does not run: this is for its next run"
    return f"{kept}; {unblocked_hint(str(folder.path))}" if isinstance(command, UnblockNames) else kept


def unblocked_hint(crawl: str) -> str:
    """Return how to continue where a block has ended, if the crawl does not do it by itself."""
    return f"'gossamer retry {shlex.quote(crawl)} --outcome {Outcome.OPTED_OUT}' queues what the block removed"


def _refuse_listed(folder: CrawlFolder, names: Sequence[str]) -> None:
    """Raise if the file of those who opted out blocks a name: no command can end that."""
    listed = OptOutFile(folder.path / FILE_NAME).changed() or frozenset()
    for name in names:
        if name_in(name) in listed:
            raise UsageError(f"{name}: {folder.path / FILE_NAME} blocks it; remove its line there")


class NotRunningError(GossamerError):
    """A command that only a crawl that runs can obey."""

    exit_status = 1


def _keep(folder: CrawlFolder, command: OperatorCommand) -> str:
    """Keep a command for the next run of a crawl."""
    from gossamer.assembly.run import open_ledger

    folder.lock()
    try:
        if isinstance(command, AddSeeds):
            seeds_in(command.seeds)
            with closing(open_ledger(folder, is_readonly=False)) as ledger:
                state = ledger.crawl_state() or CrawlState()
                state.added_seeds = [*state.added_seeds, *command.seeds]
                ledger.put_crawl_state(state)
                ledger.commit()
            return f"{agreeing(len(command.seeds), 'seed')} added"
        if isinstance(command, ReportChanges):
            return _keep_reported(folder, command.urls)
        assert not isinstance(command, PauseCrawl | ResumeCrawl | StopCrawl | ReleasePattern | RetryLetters)
        settings = settings_for_known(folder.settings_path, [])
        changed = with_command(settings, command)
        folder.write_settings(to_toml(changed))
        done = described(changed, command)
        if isinstance(command, BlockNames):
            with closing(open_ledger(folder, is_readonly=True)) as ledger:
                done += f"; {left_alone(ledger.hosts(), [name_in(name) for name in command.names])}"
        return done
    finally:
        folder.release()


def _keep_reported(folder: CrawlFolder, urls: Sequence[str]) -> str:
    from gossamer.assembly.run import open_ledger

    found = [canonical(url) for url in urls]
    with closing(open_ledger(folder, is_readonly=False)) as ledger:
        state = ledger.crawl_state() or CrawlState()
        known = dict.fromkeys([*state.reported_urls, *filter(None, found)])
        if len(known) > MAX_REPORTED:
            raise UsageError(f"{folder.path}: more than {MAX_REPORTED} reported URLs wait; resume the crawl first")
        state.reported_urls = list(known)
        ledger.put_crawl_state(state)
        ledger.commit()
    bad = f", {found.count(None)} refused (not_a_url)" if None in found else ""
    return f"{agreeing(len(urls) - found.count(None), 'URL')} reported as changed{bad}"


def add_crawl(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a crawl."""
    parser.add_argument("dir", metavar="DIR", help="the crawl folder, or the URL of a ledger")
