"""What had a killed run told that its ledger may not know of?

Events that later requests rest on are written at once, the ledger about once a second. So
the events of the last run know of refusals, and of places that a robots.txt was moved to,
that a kill took from the ledger. One pass over one file; only lines that matter are decoded,
0.3 µs a line else.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.events import Event

_decode = msgspec.json.Decoder(Event).decode


class LastWords(Struct):
    """What a run had told."""

    moved_to: set[str] = set()  # where a robots.txt is found
    quiet_until: dict[str, float] = {}  # hosts that asked to be left alone


def last_words(folder: Path) -> LastWords:
    """Return what the last run has told."""
    told = LastWords()
    written = [path for path in sorted(folder.glob("*.jsonl")) if path.stat().st_size]
    if not written:
        return told
    with written[-1].open("rb") as file:
        for line in file:
            if b'"retry_after_s":' in line or (b'"kind":"robots"' in line and b'"target":' in line):
                _take(told, line)
    return told


def _take(told: LastWords, line: bytes) -> None:
    try:
        event = _decode(line)
    except msgspec.DecodeError:
        return  # torn by the kill
    if event.kind == "robots" and event.target:
        told.moved_to.add(event.target)
    if event.retry_after_s and event.status in (429, 503):
        until = event.ts + event.retry_after_s
        told.quiet_until[event.host] = max(until, told.quiet_until.get(event.host, 0.0))
