"""`gossamer resume DIR`: continue a crawl."""

from __future__ import annotations

import argparse
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.crawl import add_output_options, start
from gossamer.cli.options import add_options, given
from gossamer.settings.load import settings_for_known


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("dir", type=Path, metavar="DIR", help="the crawl folder")
    add_output_options(parser)
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    folder = CrawlFolder(arguments.dir)
    folder.require_crawl()
    return start(settings_for_known(folder.settings_path, given(arguments)), folder, [], arguments)
