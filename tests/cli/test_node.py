"""A node that loses its lease joins again, also if the server is away just then."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pytest

from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.cli.cluster.node import NodeFolder, take_part
from gossamer.control.record import own_terms
from gossamer.model.errors import GossamerError, LeaseLostError, LedgerUnavailableError
from gossamer.model.state import CrawlRecord
from gossamer.runtime.cluster.seat import Seat


class AwayLedger(MemorySharedLedger):
    """A ledger whose server is away when the record is read."""

    def record(self) -> CrawlRecord | None:
        raise LedgerUnavailableError("Redis is loading the dataset in memory")


@pytest.mark.parametrize("error", [LeaseLostError("the lease ended"), LedgerUnavailableError("loading")])
def test_a_node_joins_again_whatever_the_server_does(tmp_path: Path, error: GossamerError) -> None:
    ledger = AwayLedger(time.time)
    record = ledger.start(CrawlRecord(own_terms(), b""))
    place = NodeFolder(argparse.Namespace(node="a", out=tmp_path / "a", label=[]), "crawl")
    seats: list[Seat] = []

    def run_once(seat: Seat) -> int:
        seats.append(seat)
        if len(seats) == 1:
            raise error
        return 0

    assert take_part(ledger, record, place, 10.0, run_once) == 0
    assert len({seat.node for seat in seats}) == 2
