"""What the verbs that give a command have in common."""

from __future__ import annotations

import argparse

from gossamer.control.target import operator, target
from gossamer.model.commands import OperatorCommand


def obey(crawl: str, command: OperatorCommand) -> int:
    """Have a crawl obey a command; print what was done."""
    print(target(crawl).obey(command, operator()))
    return 0


def add_crawl(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a crawl."""
    parser.add_argument("dir", metavar="DIR", help="the crawl folder, or the URL of a ledger")
