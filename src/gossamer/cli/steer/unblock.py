"""`gossamer unblock DIR NAME…`: end a block; what was queued there is queued again.

If the crawl does not run, or is on many machines, `gossamer retry DIR --outcome opted_out` queues it again.
"""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import UnblockNames


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR NAME…",
        [
            "gossamer unblock crawls/ex shop.example.org",
        ],
    )
    add_crawl(parser)
    parser.add_argument("names", nargs="+", metavar="NAME", help="a host, or a registrable domain with all its hosts")


def run(arguments: argparse.Namespace) -> int:
    return obey(arguments.dir, UnblockNames(arguments.names))
