"""`gossamer diff DIR [OTHER]`: what is new, changed, gone or moved between two crawls, or since a time in one?

Changed pages come with the similarity of their texts.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
from msgspec import UNSET, Struct

from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.pipes import quiet_pipe
from gossamer.control.record import is_ledger_url
from gossamer.handover.difference import DiffCounts, DiffEntry, Difference, DiffKind
from gossamer.handover.export.documents import iso_time
from gossamer.handover.export.output import disk_full_at
from gossamer.model.errors import UsageError
from gossamer.reading.view import CrawlView
from gossamer.report.terminal import COLUMNS, table
from gossamer.telemetry.text import count, percent, plural, printable

SHOWN = 20
_RELATIVE = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_EXPECTED = "expected a time such as 2026-05-01, 2026-05-01T12:00Z, or 2d (s, m, h, d, w) ago"
_LABELS = {
    "new": "new: a page now, and none before",
    "changed": "changed: other words or another title",
    "gone": "gone: 404 or 410 now",
    "moved": "moved: a redirect now",
    "unchanged": "unchanged",
    "unchanged_text": "unchanged but for markup",
    "failed": "failed now, or not allowed",
    "not_fetched": "not fetched again",
}
_NOTES = """With OTHER, DIR is the earlier crawl and OTHER the later one; without, the pages of DIR before and after a
time are compared. Only stored pages count. A page has changed if its title or the words of its main text have; how
similar the texts are is the share of common sequences of five words. What only failed, or was not fetched again, is
counted and not listed: it is not known whether it is gone. With --json the first line has the counts, each other line
is a page.

examples:
  gossamer diff crawls/april crawls/may
  gossamer diff crawls/example --since 2d --json
"""


class DiffHead(Struct, frozen=True):
    """The first line of the output as JSON."""

    earlier: str
    later: str
    since: str
    counts: DiffCounts


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a later crawl: a folder, or a ledger")
    parser.add_argument(
        "--since", metavar="TIME", help="in ISO 8601 (UTC), or 2d, 12h, 30m ago; default: the start of the last run"
    )
    parser.add_argument("--top", type=int, default=SHOWN, metavar="N", help=f"pages of each kind to show ({SHOWN})")
    parser.add_argument("--json", action="store_true", help="print JSON lines: the counts, then all pages")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: texts could not be compared, since their bytes cannot be read."""
    if arguments.top < 0:
        raise UsageError(f"--top {arguments.top}: expected 0 or more")
    _check_names(arguments)
    found = Difference()
    with quiet_pipe(), ExitStack() as stack:
        crawl = open_view(arguments)
        stack.enter_context(crawl)
        if arguments.other is None:
            moment = _moment(arguments.since, crawl)
            head = DiffHead(crawl.name, crawl.name, iso_time(moment), found.counts)
            entries = found.since(crawl, moment)
        else:
            later = open_view(argparse.Namespace(dir=arguments.other, node_folder=[]))
            stack.enter_context(later)
            head = DiffHead(crawl.name, later.name, "", found.counts)
            entries = found.between(crawl, later)
        if arguments.json:
            _print_json(head, entries)
        else:
            _print_tables(head, entries, arguments.top)
    if found.counts.unread:
        what = plural(found.counts.unread, "page")
        print(f"INCOMPLETE: {what} could not be compared: the bytes of a version cannot be read here", file=sys.stderr)
    return 1 if found.counts.unread else 0


def _check_names(arguments: argparse.Namespace) -> None:
    if arguments.other is None:
        return
    if arguments.since is not None:
        raise UsageError("--since is for one crawl; expected either --since TIME or OTHER")
    names = [arguments.dir, arguments.other]
    if not any(map(is_ledger_url, names)):
        names = [str(Path(name).resolve()) for name in names]
    if names[0] == names[1]:
        raise UsageError(f"{printable(arguments.other)}: the same crawl twice; --since TIME compares it with itself")


def _moment(text: str | None, crawl: CrawlView) -> float:
    """Return the time that an option names, or the start of the last run."""
    if text is None:
        started_at = crawl.figures().started_at
        if not started_at:
            raise UsageError(f"{crawl.name}: the start of its last run is not known; expected --since TIME or OTHER")
        return started_at
    if match := _RELATIVE.fullmatch(text):
        return max(0.0, crawl.now - int(match[1]) * _SECONDS[match[2]])
    try:
        found = datetime.fromisoformat(text)
        moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--since {printable(text, 60)}: not a time; {_EXPECTED}") from None
    if not 0 <= moment <= crawl.now:
        raise UsageError(f"--since {printable(text, 60)}: not in the past; {_EXPECTED}")
    return moment


def _print_json(head: DiffHead, entries: Iterable[DiffEntry]) -> None:
    """Print the counts, then all entries, which wait for them in a temporary file."""
    encode = msgspec.json.Encoder().encode
    with disk_full_at("the folder for temporary files"), TemporaryFile() as waiting:
        for entry in entries:
            waiting.write(encode(entry) + b"\n")
        waiting.seek(0)
        sys.stdout.write(encode(head).decode() + "\n")
        for line in waiting:
            sys.stdout.write(line.decode())
        sys.stdout.flush()


def _print_tables(head: DiffHead, entries: Iterable[DiffEntry], most: int) -> None:
    shown: dict[DiffKind, list[DiffEntry]] = {kind: [] for kind in DiffKind}
    for entry in entries:
        if len(shown[entry.change]) < most:
            shown[entry.change].append(entry)
    where = f"{head.earlier} since {head.since}" if head.since else f"{head.earlier} -> {head.later}"
    print(printable(where, 400))
    counts = [(label, count(getattr(head.counts, name))) for name, label in _LABELS.items()]
    print(table(["pages", ""], counts))
    for kind, some in shown.items():
        if not some:
            continue
        known = getattr(head.counts, kind.value)
        print(f"\n{kind.value}")
        for entry in some:
            print(f"  {_detail(entry)}{printable(entry.url, COLUMNS)}{_target(entry)}")
        if known > len(some):
            print(f"  and {count(known - len(some))} more; --json lists all")


def _detail(entry: DiffEntry) -> str:
    if entry.change is not DiffKind.CHANGED:
        return ""
    return f"{percent(entry.similarity) if entry.similarity is not UNSET else '?':>7}  "


def _target(entry: DiffEntry) -> str:
    return f" -> {printable(entry.to, COLUMNS)}" if entry.to is not UNSET else ""
