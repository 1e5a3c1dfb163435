"""`gossamer pace DIR PATTERN SECONDS`: set the time between requests to the hosts of a pattern."""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import ChangePace


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR PATTERN SECONDS [options]",
        [
            "gossamer pace crawls/ex docs.example.org 10",
            "gossamer pace crawls/ex '*.example.org' 2.5 --connections 2",
        ],
    )
    add_crawl(parser)
    parser.add_argument("pattern", metavar="PATTERN", help="example.org, *.example.org, or * for all hosts")
    parser.add_argument("seconds", type=float, metavar="SECONDS", help="between two requests to a host")
    parser.add_argument("--connections", type=int, metavar="N", help="requests in flight to a host")


def run(arguments: argparse.Namespace) -> int:
    return obey(arguments.dir, ChangePace(arguments.pattern, arguments.seconds, arguments.connections))
