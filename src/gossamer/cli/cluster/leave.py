"""`gossamer leave LEDGER --node NAME`: have a node hand its shards over and stop."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from gossamer.cli.cluster.ledger import ledger_status
from gossamer.cli.options import describe
from gossamer.control.record import change
from gossamer.model.errors import UsageError
from gossamer.telemetry.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(parser, "LEDGER --node NAME", ["gossamer leave redis://10.0.0.5:6379/0/books --node b"])
    parser.add_argument("ledger", metavar="LEDGER", help="the ledger that the nodes share")
    parser.add_argument("--node", metavar="NAME", required=True, help="the node that is to leave")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    name = str(arguments.node)
    live = [line.name for line in ledger_status(arguments.ledger).nodes if line.is_live]
    if name not in live:
        raise UsageError(f"no node {printable(name)} is alive; there are: {', '.join(live) or 'none'}")
    change(
        arguments.ledger,
        lambda record: replace(record, leaving={**record.leaving, name: record.version + 1}),
    )
    print(f"node {printable(name)} leaves within a few seconds; the others take its shards")
    return 0
