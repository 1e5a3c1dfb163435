"""`gossamer migrate FROM TO`: copy a stopped crawl between a folder and a ledger that nodes share."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from gossamer.backends.registry import open_shared
from gossamer.cli.opening import add_node_folders, folders_given
from gossamer.cli.options import describe
from gossamer.cli.start.crawl import STATUS_STOPPED
from gossamer.control.record import is_ledger_url, open_crawl, shown_url
from gossamer.migration.folder_source import FolderSource
from gossamer.migration.folder_target import FolderPlan, FolderTarget
from gossamer.migration.ledger_source import LedgerSource
from gossamer.migration.ledger_target import LedgerTarget
from gossamer.migration.parts import CrawlTarget
from gossamer.migration.run import Migrated, migrate
from gossamer.model.errors import UsageError
from gossamer.telemetry.text import count, duration, plural, printable, raw_stream, size

_TERMINAL_S = 0.2
_PLAIN_S = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    describe(
        parser,
        "FROM TO [options]",
        [
            "gossamer migrate crawls/books redis://10.0.0.5:6379/0/books",
            "gossamer migrate redis://10.0.0.5:6379/0/books crawls/books2 --node-folder b=/mnt/b/books",
        ],
    )
    parser.add_argument(
        "source",
        metavar="FROM",
        help="a crawl folder, or a ledger that nodes share (redis://…, postgresql://…, kafka://…)",
    )
    parser.add_argument("target", metavar="TO", help="a new folder, or a new name in a ledger")
    add_node_folders(parser)
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="to a folder: go on without the archive files that cannot be reached",
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: the copy is different, or archive files cannot be reached."""
    given = folders_given(arguments)
    if is_ledger_url(arguments.target) and (given or arguments.allow_missing):
        raise UsageError("--node-folder and --allow-missing are for a copy to a folder; a ledger has no archive files")
    if not is_ledger_url(arguments.source) and not is_ledger_url(arguments.target):
        raise UsageError("FROM and TO are folders; a stopped crawl in a folder is copied with: cp -a FROM TO")
    progress = _Progress()
    with ExitStack() as stack:
        source = _open_source(arguments.source, stack)
        target = _open_target(arguments, source, stack)
        stack.callback(target.close)
        name = shown_url(arguments.target) if is_ledger_url(arguments.target) else arguments.target
        try:
            done = migrate(source, target, name, progress)
        except KeyboardInterrupt:
            print("gossamer migrate: interrupted; the same command continues", file=sys.stderr)
            return STATUS_STOPPED
        finally:
            progress.clear()
    print(msgspec.json.encode(done).decode() if arguments.json else render(done, arguments))
    return 0 if done.is_complete else 1


def _open_source(text: str, stack: ExitStack) -> FolderSource | LedgerSource:
    from gossamer.control.record import own_terms

    if not is_ledger_url(text):
        return stack.enter_context(FolderSource(Path(text), own_terms()))
    shared, record = open_crawl(text)
    stack.enter_context(closing(shared))
    return LedgerSource(shared, record, shown_url(text))


def _open_target(arguments: argparse.Namespace, source: FolderSource | LedgerSource, stack: ExitStack) -> CrawlTarget:
    from gossamer.control.copied_folder import complete_copy
    from gossamer.control.record import warn_once

    if is_ledger_url(arguments.target):
        shared = stack.enter_context(closing(open_shared(arguments.target, warn_once)))
        return LedgerTarget(shared, source, shown_url(arguments.target))
    assert isinstance(source, LedgerSource)
    plan = FolderPlan(
        Path(arguments.target), folders_given(arguments), arguments.allow_missing, time.time(), complete_copy
    )
    return FolderTarget(plan, source)


def render(done: Migrated, arguments: argparse.Namespace) -> str:
    """Return the result for people."""
    lines = [f"{printable(done.source)} -> {printable(done.target)}"]
    width = max([len(table.name) for table in done.tables], default=0)
    lines += [
        f"  {table.name:<{width}}  {count(table.rows):>12} rows  {size(table.bytes):>10}" for table in done.tables
    ]
    files = f", {size(done.file_bytes)} in files" if done.file_bytes else ""
    speed = f" ({count(done.rows_per_second)} rows/s)" if done.copied else ""
    lines.append(
        f"  {plural(done.rows, 'row')}, {size(done.bytes)}{files}; "
        f"{count(done.copied)} copied now, in {duration(done.seconds)}{speed}"
    )
    lines += [f"note: {printable(note, 1000)}" for note in done.notes]
    if not done.is_complete:
        lines += [f"DIFFERENT: {text}" for text in done.differences]
        lines.append("the copy stays unfinished: run the same command again, which copies everything anew")
        return "\n".join(lines)
    lines.append(f"complete: rows and checksums agree; continue with: {_next_step(arguments)}")
    return "\n".join(lines)


def _next_step(arguments: argparse.Namespace) -> str:
    if not is_ledger_url(arguments.target):
        return f"gossamer resume {arguments.target}"
    folder = "" if is_ledger_url(arguments.source) else f" -o {arguments.source}"
    return f"gossamer join {shown_url(arguments.target)}{folder}"


class _Progress:
    """One line that is rewritten on a terminal; elsewhere a line every 30 s."""

    def __init__(self) -> None:
        self._out = raw_stream(sys.stderr)
        self._is_terminal = self._out.isatty()
        self._shown_at = time.monotonic()

    def __call__(self, what: str, rows: int) -> None:
        now = time.monotonic()
        if now - self._shown_at < (_TERMINAL_S if self._is_terminal else _PLAIN_S):
            return
        self._shown_at = now
        text = f"{what}: {plural(rows, 'row')}" if rows else what
        print(f"\r\x1b[K{text}" if self._is_terminal else text, end="" if self._is_terminal else "\n", file=self._out)
        self._out.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._is_terminal:
            self._out.write("\r\x1b[K")
            self._out.flush()
