"""`gossamer set DIR KEY VALUE`: change a limit."""

from __future__ import annotations

import argparse

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.model.commands import ChangeSetting
from gossamer.settings.changes import CHANGEABLE


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR KEY VALUE",
        [
            "gossamer set crawls/ex max-pages 50000",
            "gossamer set crawls/ex max-time none",
        ],
    )
    add_crawl(parser)
    parser.add_argument("key", metavar="KEY", help=", ".join(CHANGEABLE))
    parser.add_argument("value", metavar="VALUE", help="a number, or none for no limit")


def run(arguments: argparse.Namespace) -> int:
    return obey(arguments.dir, ChangeSetting(arguments.key, arguments.value))
