"""What came of a crawl: report.json and report.html, from ledger and events."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer.ports import Ledger
from gossamer.telemetry.summary import Summary


def write_report(out: Path, ledger: Ledger, summary: Summary) -> None:
    """Write both reports into the crawl folder."""
    (out / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2))
