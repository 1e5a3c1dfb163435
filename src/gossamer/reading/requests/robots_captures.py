"""The texts of robots.txt that a crawl fetched, by URL and time.

They are read from the archive. The index has the position of each robots.txt, so only those records
are read; a file that is still open, or was left by a killed process, is read from its start.
Without an archive the ledger has the last text of each origin. Costs: one pass over the index;
memory: about 150 bytes per robots.txt, and the rules of the 4,096 texts used last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from gossamer.archive.cdxj import INDEX_NAME, INDEXED_TYPES, PARTS_FOLDER
from gossamer.archive.reader import ArchivedRecord, ArchiveReader, parse_http_head
from gossamer.core.robots.answers import is_ban, rules_from
from gossamer.core.robots.rules import MAX_ROBOTS_BYTES, RobotsRules, parse_robots
from gossamer.core.url.forms import host_of
from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.model.records import ArchiveSpan, Outcome, Result
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.requests.requests_made import SentRequest
from gossamer.reading.view import OpenCrawl

MAX_CACHED_RULES = 4096
SAME_MOMENT_S = 0.002  # the same time, once as a WARC date and once in an event
_ROBOTS = "/robots.txt"


class _Line(Struct):
    """The fields of an index line that are used here."""

    url: str
    filename: str
    offset: str


class _Position(Struct, frozen=True, order=True):
    """The position of a capture in the archive."""

    date: float
    file: str
    offset: int


class RobotsCaptures:
    """Finds the rules of an archived robots.txt."""

    def __init__(self, crawl: OpenCrawl, token: str) -> None:
        self._files = CrawlArchive(crawl.folders, crawl.settings.store)
        self._indexes = [folder.index for folder in crawl.folders.found.values()]
        self._ledger = crawl.ledger
        self._token = token
        self._positions: defaultdict[str, list[_Position]] = defaultdict(list)
        self._rules: OrderedDict[tuple[str, int], RobotsRules | None] = OrderedDict()

    def open(self, targets: set[str]) -> None:
        """Find all captures. `targets` are the URLs that a robots.txt redirected to."""
        indexed = set[str]()
        for line in self._lines():
            indexed.add(line.filename)
            if line.url.endswith(_ROBOTS) or line.url in targets:
                self._add(line.url, line.filename, int(line.offset))
        for path in self._files.local_paths():
            name = path.name.removesuffix(".open")
            if name not in indexed:
                for record in ArchiveReader(path):
                    is_robots = record.target.endswith(_ROBOTS) or record.target in targets
                    if is_robots and record.type in INDEXED_TYPES:
                        self._positions[record.target].append(_Position(record.date, name, record.offset))
        for positions in self._positions.values():
            positions.sort()

    def _lines(self) -> Iterator[_Line]:
        decode_line = msgspec.json.Decoder(_Line).decode
        for index in self._indexes:
            whole = index / INDEX_NAME
            for path in [*([whole] if whole.exists() else []), *sorted((index / PARTS_FOLDER).glob("*.cdxj"))]:
                with path.open("rb") as file:
                    for line in file:
                        yield decode_line(line.split(b" ", 2)[2])

    def _add(self, url: str, file: str, offset: int) -> None:
        record = self._read(file, offset)
        if record is not None and not any(
            position.offset == offset and position.file == file for position in self._positions[url]
        ):
            self._positions[url].append(_Position(record.date, file, offset))

    def _read(self, file: str, offset: int) -> ArchivedRecord | None:
        return self._files.read(ArchiveSpan(file, offset, 0))

    def rules(self, request: SentRequest) -> RobotsRules | None:
        """Return the rules in an answer, or None if its text cannot be found."""
        for position in self._positions.get(request.url, ()):
            if abs(position.date - request.sent_at) < SAME_MOMENT_S:
                return self._rules_at(position)
        known = self._ledger.robots(self._ledger.host_id(host_of(request.origin + "/")))
        last = next((record for record in known if record.origin == request.origin and not is_ban(record)), None)
        is_same = last is not None and abs(last.fetched_at - request.ended_at) < SAME_MOMENT_S
        return parse_robots(last.body, self._token) if last is not None and is_same else None

    def unrecorded(self, origin: str, before: float) -> tuple[float, RobotsRules] | None:
        """Return date and rules of the last robots.txt of an origin archived before a time, with or without event."""
        positions = self._positions.get(origin + _ROBOTS, [])
        number = bisect_right(positions, before, key=lambda position: position.date)
        rules = self._rules_at(positions[number - 1]) if number else None
        return None if rules is None else (positions[number - 1].date, rules)

    def _rules_at(self, position: _Position) -> RobotsRules | None:
        key = position.file, position.offset
        if key not in self._rules:
            record = self._read(position.file, position.offset)
            self._rules[key] = None if record is None else self._rules_in(record)
            if len(self._rules) > MAX_CACHED_RULES:
                self._rules.popitem(last=False)
        self._rules.move_to_end(key)
        return self._rules[key]

    def _rules_in(self, record: ArchivedRecord) -> RobotsRules | None:
        """Return the rules in an archived answer; None for a redirect or an answer without usable rules."""
        head, body = record.http_parts()
        status, headers = parse_http_head(head)
        named = dict(reversed(headers))
        outcome = status_outcome(status, has_location="location" in named, is_conditional=False)
        if outcome is Outcome.REDIRECT:
            return None
        content = decode(body, named.get("content-encoding", ""), MAX_ROBOTS_BYTES).content
        result = Result(0, outcome, status=status, robots=content[:MAX_ROBOTS_BYTES])
        return rules_from(result, lambda text: parse_robots(text, self._token))
