"""`gossamer retry DIR`: list the dead letters, or queue them again and continue."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from math import inf
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.options import add_options, describe, given, group_of
from gossamer.cli.start.crawl import add_output_options, start
from gossamer.control.cluster import queue_again
from gossamer.control.record import is_ledger_url
from gossamer.control.target import operator, target
from gossamer.engine.admission.revival import NO_LETTERS, is_requested, purpose_of, queued_again
from gossamer.handover.listing import SortedSpool
from gossamer.model.commands import RetryLetters
from gossamer.model.errors import UsageError
from gossamer.model.records import ANSWERED, Outcome, UrlId, UrlRecord
from gossamer.model.state import ORIGIN_NODE, OperatorRequest
from gossamer.reading.cluster import SharedReader
from gossamer.reading.view import CrawlView
from gossamer.settings.load import settings_for_known
from gossamer.settings.model import Group
from gossamer.telemetry.text import printable

OUTCOMES = tuple(outcome.value for outcome in Outcome if outcome not in ANSWERED)  # that dead letters can have


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR [options]",
        [
            "gossamer retry crawls/ex --list",
            "gossamer retry crawls/ex --outcome timeout --timeout 30",
            "gossamer retry redis://10.0.0.5:6379/0/books --stored-on b",
        ],
    )
    what = group_of(parser, Group.WHAT)
    add_crawl(what, reads_folders=False)
    what.add_argument("--list", action="store_true", help="only list the dead letters; with --json a line of JSON each")
    what.add_argument("--outcome", action="append", metavar="WORD", help="only those with this outcome (timeout, …)")
    what.add_argument("--host", action="append", metavar="HOST", help="only those of this host")
    what.add_argument("--stored-on", metavar="NODE", help="with a ledger: what lies on this node, which is lost")
    add_options(parser, has_begun=True)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list(arguments)
    if is_ledger_url(arguments.dir):
        return _queue_again(arguments)
    if arguments.stored_on:
        raise UsageError("--stored-on is for a ledger URL; a crawl in a folder has its pages there")
    folder = CrawlFolder(Path(arguments.dir))
    folder.require_crawl()
    wanted = retry_request(arguments)
    if folder.owner() is not None:
        return _answered(target(folder.path).obey(RetryLetters(wanted.outcomes, wanted.hosts), operator()))
    settings = settings_for_known(folder.settings_path, given(arguments))
    with open_view(arguments) as crawl:
        letters = sum(is_requested(row, wanted) for _, row in crawl.ledger.urls())
    if not letters:
        return _answered(NO_LETTERS)
    print(f"gossamer: {queued_again(letters)}", file=sys.stderr)
    return start(settings, folder, [], arguments, retries=lambda row: is_requested(row, wanted))


def _answered(text: str) -> int:
    """Print what became of a request; return the exit status."""
    is_empty = text == NO_LETTERS
    print(text, file=sys.stderr if is_empty else sys.stdout)
    return 1 if is_empty else 0


def _queue_again(arguments: argparse.Namespace) -> int:
    _, flags = given(arguments)[-1]
    if flags:
        option = next(iter(flags)).replace("_", "-")
        raise UsageError(f"--{option} is not for a ledger URL: the nodes have the settings of their crawl")
    with open_view(arguments) as crawl:
        assert isinstance(crawl, SharedReader)
        if arguments.stored_on:
            check_node(crawl, arguments.stored_on)
        return _answered(queue_again(crawl, arguments.dir, retry_request(arguments, crawl)))


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
    """Raise unless a node of this name took part, and is gone: a live node has lost nothing."""
    known = {node.name for node in crawl.nodes}
    if name not in known:
        raise UsageError(f"--stored-on {printable(name)}: no such node; there are: {', '.join(sorted(known))}")
    if any(node.name == crawl.folders.home_of(name) and view.is_live for node, view in crawl.nodes.items()):
        raise UsageError(
            f"--stored-on {printable(name)}: this node is alive; if its disk was lost, have it leave first"
        )


class DeadLetterLine(Struct, frozen=True):
    """A dead letter, as a line of JSON."""

    url: str
    id: str
    outcome: str
    status: int
    error: str
    purpose: str  # page, sitemap, requisite or probe
    referrer: str  # the page, redirect or sitemap that it was found on; empty for a seed
    depth: int
    attempts: int
    at: float  # of the last attempt


def _letter(key: UrlId, row: UrlRecord, crawl: CrawlView) -> DeadLetterLine:
    parent = crawl.ledger.look_up(row.parent) if row.parent else None
    referrer = parent.url if parent is not None else ""
    what = (row.outcome, row.status, row.error, purpose_of(row))
    return DeadLetterLine(row.url, key.hex(), *what, referrer, row.depth, row.attempt + 1, row.fetched_at)


def _line(letter: DeadLetterLine) -> str:
    status = f" {letter.status}" if letter.status else ""
    mark = "" if letter.purpose == "page" else f" [{letter.purpose}]"
    return f"{letter.outcome}{status} {printable(letter.url, 2000)}{mark} {printable(letter.error)}".rstrip()


def _list(arguments: argparse.Namespace) -> int:
    outcomes: Counter[str] = Counter()
    with open_view(arguments) as crawl, SortedSpool(DeadLetterLine) as waiting:
        shared = crawl if isinstance(crawl, SharedReader) else None
        if arguments.stored_on and shared is not None:
            check_node(shared, arguments.stored_on)
        wanted = retry_request(arguments, shared)
        for key, row in crawl.ledger.urls():
            if not is_requested(row, wanted):
                continue
            outcomes[row.outcome] += 1
            waiting.add(_letter(key, row, crawl), row.url)
        for letter in waiting.rows():
            print(msgspec.json.encode(letter).decode() if arguments.json else _line(letter))
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    letters = "dead letter" if outcomes.total() == 1 else "dead letters"
    what = f"URLs stored on {arguments.stored_on}" if arguments.stored_on else letters
    if not outcomes and (arguments.outcome or arguments.host):
        return _answered(NO_LETTERS)
    print(f"{outcomes.total()} {what}: {counts}" if outcomes else f"no {what}", file=sys.stderr)
    return 0
