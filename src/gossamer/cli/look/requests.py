"""What an operator requests of the owners of a crawl on many machines: to queue URLs again.

It travels in the crawl's record. An owner releases the shards that it concerns, and takes them again: their rows are
changed before they are used (`engine/admission/revival`). A crawl that is over is reopened.
"""

from __future__ import annotations

import argparse
from math import inf, nextafter

from msgspec.structs import replace

from gossamer.cli.cluster.ledger import change
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.url.identity import host_id, shard_of
from gossamer.engine.admission.revival import NO_LETTERS, is_requested
from gossamer.engine.results.evidence import chosen_quarantines
from gossamer.model.errors import UsageError
from gossamer.model.records import ANSWERED, Outcome, UrlRecord
from gossamer.model.state import ALL_PATTERNS, ORIGIN_NODE, CrawlRecord, OperatorRequest
from gossamer.reading.cluster import SharedReader
from gossamer.telemetry.text import agreeing, printable, released

OUTCOMES = tuple(outcome.value for outcome in Outcome if outcome not in ANSWERED)  # that dead letters can have


def retry_request(arguments: argparse.Namespace, crawl: SharedReader | None = None) -> OperatorRequest:
    """Return what the arguments of `retry` request, of any time and any shard; raise if an outcome is unknown."""
    for word in arguments.outcome or []:
        if word not in OUTCOMES:
            raise UsageError(f"--outcome {printable(word)}: no such outcome; expected one of {', '.join(OUTCOMES)}")
    node = arguments.stored_on or ""
    files: frozenset[str] = frozenset()
    if node and crawl is not None and crawl.folders.home_of(node) == crawl.folders.home_of(ORIGIN_NODE):
        files = frozenset(crawl.folders.from_origin)
    return OperatorRequest(
        inf, [], outcomes=arguments.outcome or [], hosts=arguments.host or [], stored_on=node, files=files
    )


def check_node(crawl: SharedReader, name: str) -> None:
    """Raise unless a node of this name took part, and is gone: what a live node has stored is not lost."""
    known = {node.name for node in crawl.nodes}
    if name not in known:
        raise UsageError(f"--stored-on {printable(name)}: no such node; there are: {', '.join(sorted(known))}")
    if any(node.name == crawl.folders.home_of(name) and view.is_live for node, view in crawl.nodes.items()):
        raise UsageError(
            f"--stored-on {printable(name)}: this node is alive; if its disk was lost, have it leave first"
        )


def queue_again(crawl: SharedReader, ledger: str, wanted: OperatorRequest) -> str:
    """Request that URLs are queued again; return what follows, for people."""
    shards: set[int] = set()
    found = 0
    last_at = 0.0
    unfulfilled: set[int] = set()
    for url_id, row in crawl.ledger.urls():
        if is_requested(row, wanted):
            found = found + 1
            last_at = max(last_at, row.fetched_at)
            shards.add(shard_of(url_id))
        unfulfilled |= _unfulfilled(row, crawl.record.requests)
    if not found:
        return f"no URLs are stored on {wanted.stored_on}" if wanted.stored_on else NO_LETTERS
    # Only what has happened by now: no clock is needed to say that.
    request = replace(wanted, at=nextafter(last_at, inf), shards=sorted(shards))
    before = enumerate(crawl.record.requests)
    fulfilled = [each for number, each in before if not each.pattern and number not in unfulfilled]
    change(ledger, lambda record: _with(record, request, dropped=fulfilled), reopens=True)
    return f"{agreeing(found, 'URL')} queued again by the nodes that own them; {_when(crawl)}"


def _unfulfilled(row: UrlRecord, requests: list[OperatorRequest]) -> set[int]:
    return {number for number, each in enumerate(requests) if not each.pattern and is_requested(row, each)}


def _with(record: CrawlRecord, request: OperatorRequest, dropped: list[OperatorRequest]) -> CrawlRecord:
    return replace(record, requests=[*(each for each in record.requests if each not in dropped), request])


def release_pattern(crawl: SharedReader, ledger: str, name: str) -> str:
    """Request that a quarantine ends, or all of them; return what follows, for people."""
    chosen = chosen_quarantines(crawl.ledger.records(QUARANTINES), name, crawl.now)
    if not chosen:
        if name == ALL_PATTERNS:
            return released(chosen)
        raise UsageError(
            f"{printable(name)}: no such pattern is in quarantine; 'gossamer traps {crawl.name}' lists them"
        )
    shards = sorted({shard_of(host_id(each.host)) for each in chosen})
    request = OperatorRequest(crawl.now, shards, pattern=name)
    change(ledger, lambda record: _with(record, request, dropped=[]), reopens=True)
    return f"{released(chosen)} by the nodes that own their hosts; {_when(crawl)}"


def _when(crawl: SharedReader) -> str:
    if crawl.is_running:
        return "they act within a few seconds"
    return f"no node is alive: 'gossamer join {crawl.name}' continues the crawl"
