"""`gossamer feed DIR`: what is new, changed, repeated or gone, for an indexer that continues where it stopped."""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from pathlib import Path

from gossamer.cli.pipes import quiet_pipe
from gossamer.errors import UsageError
from gossamer.handover.feed import CursorFile, Feed, check_cursor, cursor_from
from gossamer.handover.output import disk_full_at
from gossamer.inspect.reader import CrawlReader
from gossamer.telemetry.text import safe

PAUSE_S = 0.5
_SAVE_EVERY_LINES = 200
_EXAMPLES = """A line is {"cursor", "op", "url", "at"}; op is upsert (with the document), unchanged, gone, or
duplicate (with duplicate_of and similarity). To continue, pass the cursor of the last line that was processed.

examples:
  gossamer feed crawls/example --limit 10
  gossamer feed crawls/example --after 1200
  gossamer feed crawls/example --follow --cursor-file indexer.cursor | indexer
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument("dir", type=Path, metavar="DIR", help="the crawl folder")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--after", metavar="CURSOR", default="0", help="start after this one (0: from the beginning)")
    start.add_argument(
        "--cursor-file",
        type=Path,
        metavar="FILE",
        help="start after the cursor in FILE, and update it as lines are written",
    )
    parser.add_argument("--follow", action="store_true", help="continue as long as the crawl runs")
    parser.add_argument("--limit", type=int, metavar="N", help="stop after this many lines")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit {arguments.limit}: expected at least 1")
    cursor_file = CursorFile(arguments.cursor_file) if arguments.cursor_file is not None else None
    after = cursor_file.load() if cursor_file is not None else cursor_from(arguments.after, "--after")
    with quiet_pipe(), disk_full_at("stdout"), CrawlReader(arguments.dir) as crawl:
        feed = Feed(crawl)
        check_cursor(after, feed)
        out = FeedOutput(cursor_file, after)
        try:
            entries = feed.follow(after, out.wait) if arguments.follow else feed.read(after)
            for entry in islice(entries, arguments.limit):
                out.write(entry.to_json(), entry.cursor)
        except BrokenPipeError:
            raise  # what the reader had not read from the pipe is lost: the cursor stays, and it is sent again
        except BaseException:
            out.flush()
            raise
        out.flush()
    return 0


class FeedOutput:
    """Lines on stdout, and the cursor of the last one that was flushed."""

    def __init__(self, cursor_file: CursorFile | None, cursor: int) -> None:
        self._cursor_file = cursor_file
        self._cursor = self._saved = cursor
        self._lines = 0

    def write(self, line: bytes, cursor: int) -> None:
        """Write a line."""
        if sys.stdout.isatty():
            line = safe(line.decode("utf-8", "replace")).encode()
        sys.stdout.buffer.write(line + b"\n")
        self._cursor = cursor
        self._lines += 1
        if self._lines % _SAVE_EVERY_LINES == 0:
            self.flush()

    def flush(self) -> None:
        """Flush what was written; only then move the cursor."""
        sys.stdout.buffer.flush()
        if self._cursor_file is not None and self._cursor != self._saved:
            self._cursor_file.save(self._cursor)
            self._saved = self._cursor

    def wait(self) -> None:
        """Wait a moment for more changes."""
        self.flush()
        time.sleep(PAUSE_S)
