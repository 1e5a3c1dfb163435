"""`gossamer stop DIR`: end a running crawl cleanly; with the URL of a ledger on all nodes.

Requests in flight are completed (5 s at most), and `gossamer resume DIR` continues.
"""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import StopCrawl


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR",
        [
            "gossamer stop crawls/ex",
            "gossamer stop redis://10.0.0.5:6379/0/books",
        ],
    )
    add_crawl(parser)


def run(arguments: argparse.Namespace) -> int:
    return obey(arguments.dir, StopCrawl())
