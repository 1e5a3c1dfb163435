"""`gossamer add DIR SEED…`: queue more seeds."""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer import add_crawl, tell
from gossamer.commands import AddSeeds
from gossamer.settings.seeds import lines_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(
        parser,
        "DIR SEED…",
        [
            "gossamer add crawls/ex https://example.net/",
            "gossamer add crawls/ex more.txt",
        ],
    )
    add_crawl(parser)
    parser.add_argument("seed", nargs="+", metavar="SEED", help="a URL, a bare domain, or a file with one per line")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    return tell(arguments.dir, AddSeeds(lines_of(arguments.seed)))
