"""`gossamer retry DIR`: list the dead letters, or queue them again and continue."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.crawl import add_output_options, start
from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.options import add_options, describe, given, group_of
from gossamer.core.url import host_of
from gossamer.records import UrlRecord, UrlState
from gossamer.settings.load import settings_for_known
from gossamer.settings.model import Group
from gossamer.telemetry.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(
        parser,
        "DIR [options]",
        [
            "gossamer retry crawls/ex --list",
            "gossamer retry crawls/ex --outcome timeout --timeout 30",
            "gossamer retry crawls/ex --host www.example.org",
        ],
    )
    what = group_of(parser, Group.WHAT)
    add_crawl(what, reads_folders=False)
    what.add_argument("--list", action="store_true", help="only list the dead letters")
    what.add_argument("--outcome", action="append", metavar="WORD", help="only those with this outcome (timeout, …)")
    what.add_argument("--host", action="append", metavar="HOST", help="only those of this host")
    add_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.list:
        return _list(arguments)
    folder = CrawlFolder(Path(arguments.dir))
    folder.require_crawl()
    settings = settings_for_known(folder.settings_path, given(arguments))
    return start(settings, folder, [], arguments, retries=lambda row: _is_wanted(row, arguments))


def _is_wanted(row: UrlRecord, arguments: argparse.Namespace) -> bool:
    if arguments.outcome and row.outcome not in arguments.outcome:
        return False
    return not arguments.host or host_of(row.url) in arguments.host


def _list(arguments: argparse.Namespace) -> int:
    outcomes: Counter[str] = Counter()
    with open_view(arguments) as crawl:
        for _, row in crawl.ledger.urls():
            if row.state is UrlState.DEAD and _is_wanted(row, arguments):
                outcomes[row.outcome] += 1
                status = f" {row.status}" if row.status else ""
                print(f"{row.outcome}{status} {printable(row.url, 2000)} {printable(row.error)}".rstrip())
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{outcomes.total()} dead letters: {counts}" if outcomes else "no dead letters", file=sys.stderr)
    return 0
