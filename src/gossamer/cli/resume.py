"""`gossamer resume DIR`: continue a crawl."""

from __future__ import annotations

import argparse
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.crawl import add_output_options, start
from gossamer.cli.ledger import is_ledger_url
from gossamer.cli.options import add_options, describe, given, group_of
from gossamer.errors import UsageError
from gossamer.settings.load import settings_for_known
from gossamer.settings.model import Group


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
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
    add_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if is_ledger_url(arguments.dir):
        raise UsageError(f"a crawl on many machines is continued by its nodes: gossamer join {arguments.dir} -o DIR")
    folder = CrawlFolder(Path(arguments.dir))
    folder.require_crawl()
    return start(settings_for_known(folder.settings_path, given(arguments)), folder, [], arguments)
