"""Finish from the archive what a dead process had stored but not reported.

The archive is the write-ahead log: a whole order beyond the committed length is a page
that arrived. It is parsed and completed as if it had just come in; a torn last record is
cut off, and its URL is still queued.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from heapq import merge
from pathlib import Path

from gossamer.archive.cdxj import index_file, part_path, write_index
from gossamer.archive.reader import ArchivedRecord, exchange_of, read_record
from gossamer.archive.recovery import RecoveredTail, recover, seal
from gossamer.core.robots import MAX_ROBOTS_BYTES
from gossamer.core.robots_state import ROBOTS_TTL_S
from gossamer.core.url import origin_of
from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.records import ArchiveSpan, Exchange, Order, Outcome, Result, RobotsRecord
from gossamer.runtime.worker import WorkerRules, read_answer


class Found(Enum):
    """What there is to a stored answer, where there is no order for it."""

    SETTLED = "settled"  # robots.txt, or known and done
    UNKNOWN = "unknown"  # a URL that was never admitted


FindOrder = Callable[[str], Order | Found]
FindOriginal = Callable[[str], ArchivedRecord | None]


def unfinished_files(archive: Path, committed: dict[str, int]) -> list[tuple[Path, int]]:
    """Return the files that are open or longer than what was committed, with the committed length."""
    found = []
    for path in sorted(archive.glob("*.warc.gz*")):
        name = path.name.removesuffix(".open")
        end = committed.get(name, 0)
        if path.suffix == ".open" or name not in committed or path.stat().st_size > end:
            found.append((path, end))
    return found


def recovered_results(
    tails: Sequence[RecoveredTail], find: FindOrder, find_original: FindOriginal, rules: WorkerRules, *, max_bytes: int
) -> Iterator[Result]:
    """Yield a result for every stored order that somebody still waits for, oldest first.

    Oldest first over all files, so that a page comes before those that were found on it, and each file in its own
    order, so that a cut takes nothing that was finished already. A power cut may have taken a page, or the record
    that a revisit refers to, and left what followed from it in another file: from there on that file is cut, since
    nobody knows of what stands in it.
    """
    is_cut: set[Path] = set()
    for _, number, order_offset, offset in merge(*(_places(number, tail) for number, tail in enumerate(tails))):
        path = tails[number].path
        response = read_record(path, offset) if path not in is_cut else None
        if response is None:
            continue
        refers_to = response.fields.get("warc-refers-to-target-uri", "")
        original = find_original(refers_to) if refers_to else None
        found = Found.UNKNOWN if refers_to and original is None else find(response.target)
        if found is Found.UNKNOWN:
            _cut(path, order_offset)
            is_cut.add(path)
        elif isinstance(found, Order):
            yield _recovered(found, response, original, path, rules, max_bytes)


def recovered_robots(tail: RecoveredTail) -> Iterator[RobotsRecord]:
    """Yield the robots.txt files that a dead process had read but not committed: their delays bind its successor."""
    for request, response in tail.orders():
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


def _places(number: int, tail: RecoveredTail) -> list[tuple[float, int, int, int]]:
    """Return date, number of the file, where the order begins and where its response stands, in the file's order.

    The date is the latest so far: an answer that took long stands behind later ones.
    """
    places, latest = [], 0.0
    for request, response in tail.orders():
        latest = max(latest, response.date)
        places.append((latest, number, (request or response).offset, response.offset))
    return places


def _recovered(  # noqa: PLR0917 - one call
    order: Order,
    response: ArchivedRecord,
    original: ArchivedRecord | None,
    path: Path,
    rules: WorkerRules,
    max_bytes: int,
) -> Result:
    result = _result_of(order, exchange_of(response, None, original), rules, max_bytes)
    result.payload_digest = response.payload_digest
    result.archived = ArchiveSpan(path.name.removesuffix(".open"), response.offset, response.length)
    result.archive_end = response.offset + response.length
    return result


def _cut(path: Path, length: int) -> None:
    with path.open("r+b") as file:
        file.truncate(length)
        os.fsync(file.fileno())


def _result_of(order: Order, exchange: Exchange, rules: WorkerRules, max_bytes: int) -> Result:
    decoded = decode(exchange.body, exchange.header("content-encoding"), max_bytes)
    exchange.content, exchange.is_decoded = decoded.content, decoded.is_decoded
    exchange.outcome = status_outcome(
        exchange.status,
        has_location=bool(exchange.header("location")),
        is_conditional=bool(order.etag or order.last_modified),
    )
    return read_answer(order, exchange, rules)


def mend_parts(archive: Path, index_folder: Path) -> None:
    """Make the indexes anew that speak of more than their archive files hold: a power cut shortened those."""
    for part in sorted(index_folder.glob("parts/*.cdxj")):
        path = archive / part.name.removesuffix(".cdxj")
        size = path.stat().st_size if path.exists() else 0
        if _indexed_end(part) > size:
            lines = index_file(path) if size else []
            if lines:
                write_index(part, lines)
            else:
                part.unlink()
                path.unlink(missing_ok=True)


def _indexed_end(part: Path) -> int:
    """Return the end of the last capture that an index names."""
    end = 0
    with part.open("rb") as lines:
        for line in lines:
            capture = json.loads(line.split(b" ", 2)[2])
            end = max(end, int(capture["offset"]) + int(capture["length"]))
    return end


def close_file(path: Path, index_folder: Path) -> int:
    """Give a file that nobody writes any more its index and its final name; return its length.

    A file of which nothing is left goes away, with its index.
    """
    lines = index_file(path)
    if not lines:
        path.unlink()
        part_path(index_folder, path.name.removesuffix(".open")).unlink(missing_ok=True)
        return 0
    length = path.stat().st_size
    if path.suffix == ".open":
        seal(path, index_folder)
    else:
        write_index(part_path(index_folder, path.name), lines)
    return length


def cut_tail(path: Path, committed: int) -> RecoveredTail:
    """Cut what is torn, and return what is whole beyond the committed length."""
    return recover(path, committed)
