"""Which results are in the archive, and to which tasks do they belong?

The archive is the write-ahead log: a complete task beyond the committed length of a file is a
page that arrived. It is parsed as if it had just been received. **No complete record is ever cut off.**
What becomes of one depends on its URL:

    QUEUED     the URL waits for it: it becomes a result
    SETTLED    robots.txt, or a page that is finished: it stays as it is
    UNKNOWN    the URL was never admitted, because a power cut lost the page that it was found on: it
               stays as it is and is reported
    ELSEWHERE  the page is credited to another owner, who has stored it too: the record is removed

A revisit whose original is unknown has no content. It cannot become a result either, stays as it is
and is reported; its URL is still queued and will be fetched again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from heapq import merge
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.cdxj import final_name
from gossamer.archive.excision import Excision
from gossamer.archive.reader import ArchivedRecord, exchange_of, read_record
from gossamer.archive.recovery import RecoveredTail
from gossamer.core.links.requisite import requisite_to
from gossamer.core.robots.answers import ROBOTS_TTL_S
from gossamer.core.robots.rules import MAX_ROBOTS_BYTES
from gossamer.core.url.forms import link_to, origin_of
from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.model.exchanges import Exchange
from gossamer.model.records import ArchiveSpan, FetchTask, Link, Outcome, Result, RobotsRecord
from gossamer.runtime.recovery.stored_copy import decoded_exchange
from gossamer.runtime.watch.crash import Crash, crash_of
from gossamer.runtime.workers.answers import WorkerRules, add_stored_links, crashed_result, read_answer

WHY_UNKNOWN = "its URL is unknown, the page that it was found on may be lost"
WHY_NO_ORIGINAL = "the record that it refers to is unknown"


class KnownUrl(Enum):
    """What the ledger has on the URL of a stored answer; see the module docstring."""

    QUEUED = "queued"
    SETTLED = "settled"
    UNKNOWN = "unknown"
    ELSEWHERE = "elsewhere"


class Placing(Protocol):
    """Maps stored answers to the tasks of the crawl."""

    def identified(self, link: Link, *, is_requisite: bool) -> Link:
        """Return a link with the id of the row with its URL, if there is one."""
        ...

    def find(self, link: Link, *, is_requisite: bool = False) -> KnownUrl:
        """Return what is known about a URL. Changes nothing."""
        ...

    def adopt(self, link: Link) -> FetchTask | None:
        """Return a task for a URL that was found QUEUED; None if its answer cannot be used."""
        ...

    def original(self, url: str) -> ArchiveSpan | None:
        """Return where the page that a revisit refers to is stored."""
        ...


class ReadingRules(Struct, frozen=True):
    """How a stored answer is read: as by a worker, from these files."""

    worker: WorkerRules
    max_bytes: int
    files: ArchiveFiles


class StoredRecord(Struct, frozen=True):
    """A complete record that did not become a result: its location, and why."""

    file: str
    offset: int
    url: str
    why: str


class _Place(Struct, frozen=True, order=True, gc=False):
    """The position of a task in its file."""

    date: float  # the latest so far in the file: a slow answer is stored after faster ones
    number: int  # of the file
    start: int  # of the request, if there is one
    offset: int  # of the response
    end: int


class StoredResults:
    """The results in the tails of archive files; iterate once, to the end.

    Oldest first over all files, so that a page precedes those that were found on it; a file is read in its own
    order. Positions in results are those after removals, which are made at the end of the iteration.
    """

    def __init__(self, tails: Sequence[RecoveredTail], placing: Placing, rules: ReadingRules) -> None:
        self._tails = tails
        self._placing = placing
        self._rules = rules
        self._excisions = {final_name(tail.path): Excision(tail.path) for tail in tails}
        self.unplaced: list[StoredRecord] = []
        self.removed: list[StoredRecord] = []
        self.crashes: list[Crash] = []

    def __iter__(self) -> Iterator[Result]:
        for place in merge(*(_places(number, tail) for number, tail in enumerate(self._tails))):
            path = self._tails[place.number].path
            response = read_record(path, place.offset)
            if response is None:
                continue
            result = self._result(final_name(path), place, response)
            if result is not None:
                yield result
        for excision in self._excisions.values():
            excision.apply()

    def _result(self, file: str, place: _Place, response: ArchivedRecord) -> Result | None:
        link = requisite_to(response.target) if response.is_requisite else link_to(response.target)
        link = self._placing.identified(link, is_requisite=response.is_requisite)
        found = self._placing.find(link, is_requisite=response.is_requisite)
        if found is KnownUrl.ELSEWHERE:
            self._remove(file, place, response)
            return None
        if found is KnownUrl.UNKNOWN:
            self._record_unplaced(file, response, WHY_UNKNOWN)
            return None
        if found is KnownUrl.SETTLED:
            return None
        refers_to = response.fields.get("warc-refers-to-target-uri", "")
        original = self._read_original(refers_to) if refers_to else None
        if refers_to and original is None:
            self._record_unplaced(file, response, f"{WHY_NO_ORIGINAL}: {refers_to}")
            return None
        task = self._placing.adopt(link)
        if task is None:
            return None
        exchange = exchange_of(response, None, original)
        try:
            result = result_of(task, exchange, self._rules)
            if original is not None and result.outcome is Outcome.NOT_MODIFIED:
                stored = decoded_exchange(exchange_of(original), self._rules.max_bytes)
                add_stored_links(result, task, stored, self._rules.worker)
        except Exception as error:  # as in a worker: the page ends, and the folder can be opened
            self.crashes.append(crash_of(task.url, error))
            result = crashed_result(task, exchange, error)
        offset = self._excisions[file].final(response.offset)
        result.payload_digest = response.payload_digest
        result.archived = ArchiveSpan(file, offset, response.length)
        result.archive_end = offset + response.length
        return result

    def _record_unplaced(self, file: str, response: ArchivedRecord, why: str) -> None:
        offset = self._excisions[file].final(response.offset)
        self.unplaced.append(StoredRecord(file, offset, response.target, why))

    def _remove(self, file: str, place: _Place, response: ArchivedRecord) -> None:
        self._excisions[file].remove(place.start, place.end)
        self.removed.append(StoredRecord(file, response.offset, response.target, "its page belongs to another owner"))

    def _read_original(self, url: str) -> ArchivedRecord | None:
        span = self._placing.original(url)
        if span is None:
            return None
        excision = self._excisions.get(span.file)
        return self._rules.files.read(span if excision is None else replace(span, offset=excision.present(span.offset)))


def _places(number: int, tail: RecoveredTail) -> list[_Place]:
    places = []
    latest = 0.0
    for request, response in tail.tasks():
        latest = max(latest, response.date)
        end = response.offset + response.length
        places.append(_Place(latest, number, (request or response).offset, response.offset, end))
    return places


def result_of(task: FetchTask, exchange: Exchange, rules: ReadingRules) -> Result:
    """Return the result of a stored answer, as a worker would have."""
    decoded_exchange(exchange, rules.max_bytes)
    exchange.outcome = status_outcome(
        exchange.status,
        has_location=bool(exchange.header("location")),
        is_conditional=bool(task.etag or task.last_modified),
    )
    return read_answer(task, exchange, rules.worker)


def recovered_robots(tail: RecoveredTail) -> Iterator[RobotsRecord]:
    """Yield the robots.txt files that a dead process had read but not committed: their delays apply to the next."""
    for request, response in tail.tasks():
        if not response.target.endswith("/robots.txt"):
            continue
        exchange = exchange_of(response, request)
        if exchange.status == 200 and response.type == "response":
            body = decode(exchange.body, exchange.header("content-encoding"), MAX_ROBOTS_BYTES).content
            yield RobotsRecord(
                origin=origin_of(response.target),
                status=200,
                outcome=Outcome.OK.value,
                body=body,
                fetched_at=response.date,
                expires_at=response.date + ROBOTS_TTL_S,
            )
