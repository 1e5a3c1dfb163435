"""`gossamer join URL`: take part in a crawl on many machines."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from gossamer.backends.registry import open_shared
from gossamer.cli.cluster.node import NodeFolder, check_countries, take_part, warn_of_labels
from gossamer.cli.options import add_node_options, add_options, describe, given, group_of
from gossamer.cli.start.crawl import add_output_options, start
from gossamer.control.record import adopted, name_in, warn_once
from gossamer.model.errors import LedgerUnavailableError, UsageError
from gossamer.model.state import CrawlRecord
from gossamer.ports.shared_ledger import SharedLedger
from gossamer.settings.load import settings_for_node
from gossamer.settings.model import Group

POLL_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(
        parser,
        "URL [-o DIR] [options]",
        [
            "gossamer join redis://10.0.0.5:6379/0/books",
            "gossamer join redis://10.0.0.5:6379/0/books -o /data/books --node b2 --workers 4",
        ],
    )
    group_of(parser, Group.WHAT).add_argument("url", metavar="URL", help="the ledger that the nodes share")
    group_of(parser, Group.STORING).add_argument(
        "-o", "--out", type=Path, metavar="DIR", help="the folder of this node (./crawls/<name>-<node>)"
    )
    add_node_options(parser)
    group_of(parser, Group.CLUSTER).add_argument(
        "--wait", type=float, default=60.0, metavar="S", help="how long to wait for the crawl to be started (60)"
    )
    add_options(parser, is_node=True)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    from gossamer.assembly.access import check_access

    record, shared = _wait_for_record(arguments)
    record = adopted(shared, record)
    name = name_in(arguments.url)
    place = NodeFolder(arguments, name)
    settings = settings_for_node(record.settings, f"the crawl {name}", given(arguments))
    check_countries(settings)
    check_access(settings, [], os.environ)
    warn_of_labels(place.label, settings)
    return take_part(
        shared, record, place, arguments.lease, lambda seat: start(settings, place.folder, [], arguments, seat=seat)
    )


def _wait_for_record(arguments: argparse.Namespace) -> tuple[CrawlRecord, SharedLedger]:
    until = time.monotonic() + arguments.wait
    while True:
        try:
            shared = open_shared(arguments.url, warn_once)
            record = shared.record()
        except LedgerUnavailableError:
            if time.monotonic() > until:
                raise
            record = None
        if record is not None:
            return record, shared
        if time.monotonic() > until:
            name = name_in(arguments.url)
            raise UsageError(f"there is no crawl {name} in this ledger; start it: gossamer crawl SEED --ledger URL")
        time.sleep(POLL_S)
