"""`audit` over a crawl folder: the texts of robots.txt from its archive, the rest from its events.

The index says where each robots.txt stands, so that only those records are read; a file that
is still open, or was left by a killed process, is read as a whole. Where there is no archive
the ledger has the last text of each origin. Costs: one pass over index and events; memory:
some 150 bytes a robots.txt, and the rules of the origins met last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.archive.cdxj import INDEX_NAME, INDEXED_TYPES, PARTS_FOLDER
from gossamer.archive.reader import ArchivedRecord, ArchiveReader, parse_http_head, read_record
from gossamer.core.robots import MAX_ROBOTS_BYTES, RobotsRules, parse_robots
from gossamer.core.robots_state import rules_from
from gossamer.core.url import host_id, host_of
from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.inspect.requests_made import Asked
from gossamer.ports import Ledger
from gossamer.records import Outcome, Result

RULES_KEPT = 4096
SAME_MOMENT_S = 0.002  # a date in the archive and in an event
_ROBOTS = "/robots.txt"


class _Line(Struct):
    """What is needed of an index line."""

    url: str
    filename: str
    offset: str


class _Place(Struct, frozen=True, order=True):
    """Where a capture stands."""

    date: float
    file: str
    offset: int


class RobotsCaptures:
    """The texts of robots.txt that a crawl has kept."""

    def __init__(self, archive: Path, index: Path, ledger: Ledger, token: str) -> None:
        self._archive = archive
        self._index = index
        self._ledger = ledger
        self._token = token
        self._places: defaultdict[str, list[_Place]] = defaultdict(list)
        self._rules: OrderedDict[tuple[str, int], RobotsRules | None] = OrderedDict()

    def open(self, moved_to: set[str]) -> None:
        """Find all captures; `moved_to` are the places that a robots.txt was moved to."""
        indexed = set[str]()
        for line in self._lines():
            indexed.add(line.filename)
            if line.url.endswith(_ROBOTS) or line.url in moved_to:
                self._note(line.url, line.filename, int(line.offset))
        for path in sorted(self._archive.glob("*.warc.gz*")):
            name = path.name.removesuffix(".open")
            if name not in indexed:
                for record in ArchiveReader(path):
                    is_robots = record.target.endswith(_ROBOTS) or record.target in moved_to
                    if is_robots and record.type in INDEXED_TYPES:
                        self._places[record.target].append(_Place(record.date, name, record.offset))
        for places in self._places.values():
            places.sort()

    def _lines(self) -> Iterator[_Line]:
        whole = self._index / INDEX_NAME
        decode_line = msgspec.json.Decoder(_Line).decode
        for path in [*([whole] if whole.exists() else []), *sorted((self._index / PARTS_FOLDER).glob("*.cdxj"))]:
            with path.open("rb") as file:
                for line in file:
                    yield decode_line(line.split(b" ", 2)[2])

    def _note(self, url: str, file: str, offset: int) -> None:
        record = self._read(file, offset)
        if record is not None and not any(place.offset == offset and place.file == file for place in self._places[url]):
            self._places[url].append(_Place(record.date, file, offset))

    def _read(self, file: str, offset: int) -> ArchivedRecord | None:
        path = self._archive / file
        path = path if path.exists() else path.with_name(file + ".open")
        return read_record(path, offset) if path.exists() else None

    def rules(self, asked: Asked) -> RobotsRules | None:
        """Return the rules that an answer held, or None where its text cannot be found."""
        for place in self._places.get(asked.url, ()):
            if abs(place.date - asked.sent_at) < SAME_MOMENT_S:
                return self._rules_at(place)
        known = self._ledger.robots(host_id(host_of(asked.origin + "/")))
        kept = next((record for record in known if record.origin == asked.origin), None)
        is_same = kept is not None and abs(kept.fetched_at - asked.told_at) < SAME_MOMENT_S
        return parse_robots(kept.body, self._token) if kept is not None and is_same else None

    def untold(self, origin: str, before: float) -> tuple[float, RobotsRules] | None:
        """Return date and rules of the last robots.txt of an origin that is archived before a time."""
        places = self._places.get(origin + _ROBOTS, [])
        number = bisect_right(places, before, key=lambda place: place.date)
        rules = self._rules_at(places[number - 1]) if number else None
        return None if rules is None else (places[number - 1].date, rules)

    def _rules_at(self, place: _Place) -> RobotsRules | None:
        key = place.file, place.offset
        if key not in self._rules:
            record = self._read(place.file, place.offset)
            self._rules[key] = None if record is None else self._rules_in(record)
            if len(self._rules) > RULES_KEPT:
                self._rules.popitem(last=False)
        self._rules.move_to_end(key)
        return self._rules[key]

    def _rules_in(self, record: ArchivedRecord) -> RobotsRules | None:
        """Return what an archived answer lays down; None where it is a redirect, or robots.txt was not to be had."""
        head, body = record.http_parts()
        status, headers = parse_http_head(head)
        named = dict(reversed(headers))
        outcome = status_outcome(status, has_location="location" in named, is_conditional=False)
        if outcome is Outcome.REDIRECT:
            return None
        content = decode(body, named.get("content-encoding", ""), MAX_ROBOTS_BYTES).content
        return rules_from(Result(0, outcome, status=status, robots=content[:MAX_ROBOTS_BYTES]), self._token)
