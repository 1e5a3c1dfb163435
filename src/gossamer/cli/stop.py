"""`gossamer stop LEDGER`: stop a crawl on many machines, on all of them."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from gossamer.cli.ledger import change, is_ledger_url
from gossamer.cli.options import describe
from gossamer.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(parser, "LEDGER", ["gossamer stop redis://10.0.0.5:6379/0/books"])
    parser.add_argument("ledger", metavar="LEDGER", help="the ledger that the nodes share")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if not is_ledger_url(arguments.ledger):
        raise UsageError(f"{arguments.ledger}: expected a ledger URL; a crawl in a folder is stopped by a signal")
    change(arguments.ledger, lambda record: replace(record, stop_version=record.version + 1))
    print("all nodes stop within a few seconds; 'gossamer join' continues")
    return 0
