"""`gossamer block DIR NAME…`: make no more requests to hosts or domains.

It takes effect within two seconds, also while the crawl runs, and until `gossamer unblock`.
"""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import BlockNames


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR NAME…",
        [
            "gossamer block crawls/ex shop.example.org",
            "gossamer block redis://10.0.0.5:6379/0/books example.org example.net",
        ],
    )
    add_crawl(parser)
    parser.add_argument("names", nargs="+", metavar="NAME", help="a host, or a registrable domain with all its hosts")


def run(arguments: argparse.Namespace) -> int:
    return obey(arguments.dir, BlockNames(arguments.names))
