"""`gossamer stop DIR`: end a crawl that runs cleanly; with the URL of a ledger on all nodes.

Requests in flight are completed (5 s at most), and `gossamer resume DIR` continues.
"""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, tell
from gossamer.model.commands import StopCrawl


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
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
    """Run the verb."""
    return tell(arguments.dir, StopCrawl())
