"""Finish from the archive what a dead process had stored but not reported.

The archive is the write-ahead log: a whole order beyond the committed length is a page
that arrived. It is parsed and completed as if it had just come in; a torn last record is
cut off, and its URL is still queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gossamer.archive.reader import ArchivedRecord, exchange_of
from gossamer.archive.recovery import RecoveredTail, recover, seal
from gossamer.fetch.body import decode
from gossamer.fetch.outcome import status_outcome
from gossamer.records import ArchiveSpan, Exchange, Order, Result
from gossamer.runtime.worker import WorkerRules, read_answer

FindOrder = Callable[[str], Order | None]
FindOriginal = Callable[[str], ArchivedRecord | None]


def unfinished_files(archive: Path, committed: dict[str, int]) -> list[tuple[Path, int]]:
    """Return the files that are open or longer than what was committed, with the committed length."""
    found = []
    for path in sorted(archive.glob("*.warc.gz*")):
        name = path.name.removesuffix(".open")
        end = committed.get(name, 0)
        if path.suffix == ".open" or path.stat().st_size > end:
            found.append((path, end))
    return found


def recovered_results(
    tail: RecoveredTail, find_order: FindOrder, find_original: FindOriginal, rules: WorkerRules, *, max_bytes: int
) -> Iterator[Result]:
    """Yield a result for every order in the tail that somebody still waits for."""
    name = tail.path.name.removesuffix(".open")
    for request, response in tail.orders():
        refers_to = response.fields.get("warc-refers-to-target-uri", "")
        original = find_original(refers_to) if refers_to else None
        if refers_to and original is None:
            continue  # its URL is still queued and will be fetched again
        order = find_order(response.target)
        if order is not None:
            result = _result_of(order, exchange_of(response, request, original), rules, max_bytes)
            result.payload_digest = response.payload_digest
            result.archived = ArchiveSpan(name, response.offset, response.length)
            result.archive_end = response.offset + response.length
            yield result


def _result_of(order: Order, exchange: Exchange, rules: WorkerRules, max_bytes: int) -> Result:
    decoded = decode(exchange.body, exchange.header("content-encoding"), max_bytes)
    exchange.content, exchange.is_decoded = decoded.content, decoded.is_decoded
    exchange.outcome = status_outcome(
        exchange.status,
        has_location=bool(exchange.header("location")),
        is_conditional=bool(order.etag or order.last_modified),
    )
    return read_answer(order, exchange, rules)


def close_file(path: Path, index_folder: Path) -> None:
    """Give a file that nobody writes any more its index and its final name."""
    if path.suffix == ".open":
        seal(path, index_folder)


def cut_tail(path: Path, committed: int) -> RecoveredTail:
    """Cut what is torn, and return what is whole beyond the committed length."""
    return recover(path, committed)
