"""`gossamer resume DIR`: continue a crawl that was stopped, or one that runs and is paused.

It takes further limits (`--max-pages 5000`) or another pace, which are recorded. With `--revisit` a finished crawl
fetches its pages again when they are due.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.options import add_options, describe, given, group_of
from gossamer.cli.start.crawl import add_output_options, start
from gossamer.cli.steer.steer import obey
from gossamer.control.record import is_ledger_url
from gossamer.model.commands import ResumeCrawl
from gossamer.model.errors import UsageError
from gossamer.settings.load import settings_for_known
from gossamer.settings.model import Group


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR [options]",
        [
            "gossamer resume crawls/ex",
            "gossamer resume crawls/ex --max-pages 5000",
            "gossamer resume crawls/ex --crawl-delay 5 --block-host shop.example.org",
        ],
    )
    group_of(parser, Group.WHAT).add_argument("dir", metavar="DIR", help="the crawl folder")
    add_options(parser, has_begun=True)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    folder = CrawlFolder(Path(arguments.dir))
    if is_ledger_url(arguments.dir) or folder.owner() is not None:
        _, flags = given(arguments)[-1]
        if flags:
            raise UsageError(f"--{next(iter(flags)).replace('_', '-')}: the crawl runs; 'gossamer set' changes limits")
        return obey(arguments.dir, ResumeCrawl())
    folder.require_crawl()
    settings = settings_for_known(folder.settings_path, given(arguments))
    return start(settings, folder, [], arguments, goes_on=True)
