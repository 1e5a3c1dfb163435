"""What `crawl --ledger` and `join` have in common: a node that joins, crawls, and joins again if its lease was lost."""

from __future__ import annotations

import argparse
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.cluster.take_over import take_over
from gossamer.core.cluster.regions import joined_labels, labels_in
from gossamer.fetch.names.countries import open_countries
from gossamer.model.errors import (
    FolderBusyError,
    LeaseLostError,
    LedgerUnavailableError,
    NodeNameTakenError,
    UsageError,
)
from gossamer.model.state import CrawlRecord
from gossamer.ports.shared_ledger import LedgerReader, NodeId, SharedLedger
from gossamer.reading.node_folders import NODE_FILE
from gossamer.runtime.cluster.seat import Seat, join
from gossamer.settings.model import Settings
from gossamer.settings.regions import check_label, regions_of
from gossamer.telemetry.summary import SHARED_REASONS
from gossamer.telemetry.text import printable

RETRY_S = 1.0
TELL_EVERY_S = 30.0


class NodeFolder:
    """The folder of a node, and which node it is."""

    def __init__(self, arguments: argparse.Namespace, crawl: str) -> None:
        self.crawl = crawl.partition("?")[0]
        self.name = _checked(arguments.node) if arguments.node else ""
        self.label = labels_of(arguments)
        self._incarnation = ""
        self._crawl_id = ""  # of the crawl that the folder is of; empty if it does not say
        if arguments.out is not None:
            self.folder = CrawlFolder(arguments.out)
            self._read_name()
        self.name = self.name or _new_name()
        if arguments.out is None:
            self.folder = CrawlFolder(Path("crawls") / f"{crawl}-{self.name}")
            self._read_name()
        self.folder.check_usable()

    def _read_name(self) -> None:
        stored = self.folder.state / NODE_FILE
        if stored.is_file():
            name, incarnation, self._crawl_id, *_ = *stored.read_text("utf-8").split(), "", ""
            if self.name and name != self.name:
                raise UsageError(f"{self.folder.path}: the folder of node {name}, not of {self.name}; choose another")
            self.name = name
            self._incarnation = incarnation

    def check(self, shared: LedgerReader, record: CrawlRecord) -> None:
        """Raise if the folder is of another crawl: its archive would be cut back to what this crawl knows of it.

        A folder of an earlier version does not say which crawl it is of; then its archive files do.
        """
        if self._crawl_id in ("", record.id, *record.earlier):
            files = {path.name.removesuffix(".open") for path in self.folder.archive.glob("*.warc.gz*")}
            if self._crawl_id or not self._incarnation or not files or files & shared.archive_ends(self.name).keys():
                return
        raise UsageError(
            f"{printable(str(self.folder.path))}: the folder of node {self.name} of another crawl than "
            f"{printable(self.crawl)} as it is in this ledger; choose another folder"
        )

    def former(self) -> NodeId | None:
        """Return the last incarnation that used the folder, if its process has ended."""
        owner = self.folder.owner()
        if owner is not None:
            raise FolderBusyError(f"{self.folder.path}: in use by process {owner}; stop that one first")
        return NodeId(self.name, self._incarnation) if self._incarnation else None

    def record(self, node: NodeId, crawl_id: str) -> None:
        """Record which incarnation uses the folder, and of which crawl it is."""
        self._incarnation = node.incarnation
        self._crawl_id = crawl_id
        self.folder.state.mkdir(parents=True, exist_ok=True)
        (self.folder.state / NODE_FILE).write_text(f"{node.name} {node.incarnation} {crawl_id}\n", "utf-8")


def _checked(name: str) -> str:
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise UsageError(f"--node {printable(name)}: expected letters, digits and ._-")
    return name


def _new_name() -> str:
    host = "".join(each if each.isalnum() else "-" for each in socket.gethostname().partition(".")[0]) or "node"
    return f"{host}-{secrets.token_hex(2)}"


def labels_of(arguments: argparse.Namespace) -> str:
    """Return the labels of this node, as the shared ledger has them."""
    return joined_labels([check_label(label, "--label") for label in arguments.label])


def check_countries(settings: Settings) -> None:
    """Raise if this node cannot find the countries that rules name."""
    regions = regions_of(settings)
    if regions is not None and regions.has_countries:
        open_countries(settings.geoip)


def warn_of_labels(label: str, settings: Settings) -> None:
    """Tell the operator which labels of this node have no effect: one may be misspelled."""
    regions = regions_of(settings)
    known = () if regions is None else regions.labels[1:]
    for each in sorted(labels_in(label) - set(known)):
        rules = f"its rules have {', '.join(known)}" if known else "it was started without --region"
        print(f"gossamer: --label {each}: no rule of the crawl names it; {rules}", file=sys.stderr)


def take_part(
    shared: SharedLedger, record: CrawlRecord, place: NodeFolder, lease_s: float, run_once: Callable[[Seat], int]
) -> int:
    """Join, crawl, and join again whenever the lease was lost; return the exit status."""
    place.check(shared, record)
    record = take_over(shared, record, place.folder, place.name)
    while True:
        seat = _join(shared, record, place, lease_s)
        if seat.membership.ended:
            shared.leave(seat.node)
            print(
                f"gossamer: the crawl is over: {SHARED_REASONS.get(seat.membership.ended, seat.membership.ended)}",
                file=sys.stderr,
            )
            return 0
        try:
            return run_once(seat)
        except (LeaseLostError, LedgerUnavailableError) as error:  # also a server that is away while the run begins
            print(f"gossamer: {printable(str(error), 500)}; joining again", file=sys.stderr)
            with suppress(LedgerUnavailableError):  # then a node reads it again when it has joined
                record = shared.record() or record
                place.check(shared, record)


def _join(shared: SharedLedger, record: CrawlRecord, place: NodeFolder, lease_s: float) -> Seat:
    """Join; wait for the server, and for one lease if a node of this name seems to be alive."""
    given_up_at = time.monotonic() + 2 * lease_s
    told_at = float("-inf")
    while True:
        try:
            former = place.former()
            if former is not None:
                shared.leave(former)  # its process has ended: nobody else has its folder
            folder = str(place.folder.path.absolute())
            own = {"label": place.label, "folder": folder, "crawl": place.crawl}
            seat = join(shared, record, place.name, **own, lease_s=lease_s)
        except (LedgerUnavailableError, NodeNameTakenError) as error:
            if isinstance(error, NodeNameTakenError) and time.monotonic() > given_up_at:
                raise
            if time.monotonic() - told_at >= TELL_EVERY_S:
                told_at = time.monotonic()
                print(f"gossamer: {printable(str(error), 500)}; trying again", file=sys.stderr)
            time.sleep(RETRY_S)
            continue
        place.record(seat.node, record.id)
        return seat
