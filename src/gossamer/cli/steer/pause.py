"""`gossamer pause DIR`: make no more requests until the crawl is resumed."""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import PauseCrawl


def configure(parser: argparse.ArgumentParser) -> None:
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
    return obey(arguments.dir, PauseCrawl())
