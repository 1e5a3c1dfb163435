"""Which complete records of the archive could recovery not place?

They are in the archive and in its index, but no row of the catalog refers to them: after a power
cut it is unknown on which page their URLs were found, or what a revisit repeats. The events are
the only record of them. One pass over the event files; only lines that matter are decoded.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.model.events import Event
from gossamer.telemetry.event_lines import bounded_lines

_decode = msgspec.json.Decoder(Event).decode


class UnplacedRecord(Struct, frozen=True):
    """The position of such a record."""

    file: str
    offset: int


def unplaced_records(folder: Path) -> set[UnplacedRecord]:
    """Return the records that recovery reported as not placed, over all runs."""
    found = set()
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as lines:
            for line in bounded_lines(lines):
                if b'"file":' not in line:
                    continue
                try:
                    event = _decode(line)
                except msgspec.DecodeError:
                    continue  # torn by a kill
                if event.file:
                    found.add(UnplacedRecord(event.file, event.offset))
    return found
