"""`gossamer pause DIR`: make no more requests until the crawl is resumed."""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, tell
from gossamer.model.commands import PauseCrawl


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(
        parser,
        "DIR",
        [
            "gossamer pause crawls/ex",
            "gossamer resume crawls/ex      # goes on",
        ],
    )
    add_crawl(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    return tell(arguments.dir, PauseCrawl())
