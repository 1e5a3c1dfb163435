"""`gossamer feed DIR`: what is new, changed, repeated or gone, for an indexer that continues where it stopped.

One JSON line per page, also while the crawl runs. With `--cursor-file FILE` it continues where it stopped, whatever
stopped it; `--to kafka://broker:port/topic` sends the documents to Kafka.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from gossamer.backends.registry import check_topics, open_topic
from gossamer.cli.opening import add_crawl, open_folder, open_view, report_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.control.record import is_ledger_url
from gossamer.handover.export.output import disk_full_at
from gossamer.handover.feed.feed import CursorFile, FeedEntry, FolderFeed, check_cursor, cursor_from
from gossamer.handover.feed.node_feed import NodeFeed
from gossamer.handover.feed.topic_feed import TopicOutput
from gossamer.model.errors import UsageError
from gossamer.reading.cluster import SharedReader
from gossamer.settings.stores import check_feeds
from gossamer.telemetry.text import count, safe

PAUSE_S = 0.5
_SAVE_EVERY_LINES = 200
_EXAMPLES = """A line is {"cursor", "op", "url", "at"}; op is upsert (with the document), unchanged, gone, or
duplicate (with duplicate_of and similarity). To continue, pass the cursor of the last line that was processed.
With a ledger a cursor is a number per shard: use --cursor-file.

examples:
  gossamer feed crawls/example --limit 10
  gossamer feed crawls/example --after 1200
  gossamer feed crawls/example --follow --cursor-file indexer.cursor | indexer
  gossamer feed crawls/example --follow --cursor-file topic.cursor --to kafka://broker:9092/pages
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    add_crawl(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--after", metavar="CURSOR", default="0", help="start after this one (0: from the beginning)")
    start.add_argument(
        "--cursor-file",
        type=Path,
        metavar="FILE",
        help="start after the cursor in FILE, and update it as lines are written",
    )
    parser.add_argument(
        "--to",
        metavar="URL",
        default="",
        help="send documents to kafka://broker:port,…/topic, by URL; one that is gone has no value",
    )
    parser.add_argument("--follow", action="store_true", help="continue as long as the crawl runs")
    parser.add_argument("--limit", type=int, metavar="N", help="stop after this many lines")


def run(arguments: argparse.Namespace) -> int:
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit {arguments.limit}: expected at least 1")
    if arguments.to:
        check_feeds([arguments.to], ["warc"], "--to")  # what is read has an archive, or says that it has none
        check_topics([arguments.to])
    cursor_file = CursorFile(arguments.cursor_file) if arguments.cursor_file is not None else None
    if is_ledger_url(arguments.dir):
        return _feed_of_nodes(arguments, cursor_file)
    after = cursor_file.load() if cursor_file is not None else cursor_from(arguments.after, "--after")
    with quiet_pipe(), disk_full_at("stdout"), open_folder(arguments) as crawl:
        feed = FolderFeed(crawl, has_copies=bool(arguments.to))
        check_cursor(after, feed)
        with _output(arguments, cursor_file, feed) as out:
            entries = feed.follow(after, out.wait) if arguments.follow else feed.read(after)
            out.write_all(islice(entries, arguments.limit))
    return 0


def _feed_of_nodes(arguments: argparse.Namespace, cursor_file: CursorFile | None) -> int:
    """Write the changes of a crawl on many machines. Exit status 1: the bytes of some pages lie elsewhere."""
    if arguments.after != "0":
        raise UsageError("--after is for a folder: in a cluster a cursor is a number per shard; use --cursor-file")
    missing = 0
    with quiet_pipe(), disk_full_at("stdout"), open_view(arguments) as crawl:
        assert isinstance(crawl, SharedReader)
        feed = NodeFeed(crawl, has_copies=bool(arguments.to))
        if cursor_file is not None:
            feed.start_after(cursor_file.text(), str(arguments.cursor_file))
        with _output(arguments, cursor_file, feed) as out:
            out.write_all(islice(feed.follow(out.wait) if arguments.follow else feed.read(), arguments.limit))
        missing = feed.elsewhere
        report_elsewhere(crawl, missing)
    return 1 if missing else 0


@contextmanager
def _output(
    arguments: argparse.Namespace, cursor_file: CursorFile | None, feed: FolderFeed | NodeFeed
) -> Iterator[FeedOutput | TopicOutput]:
    """Yield where entries go."""
    if not arguments.to:
        yield FeedOutput(cursor_file, feed)
        return
    with closing(open_topic(arguments.to, "--to")) as topic:
        out = TopicOutput(cursor_file, feed, topic, _warn, time.sleep)
        yield out
        print(f"{count(out.documents)} documents sent to {topic.name}, {count(out.gone)} marked as gone, {out.cut} cut")


def _warn(text: str) -> None:
    print(f"gossamer: {text}", file=sys.stderr, flush=True)


class FeedOutput:
    """Lines on stdout, and the cursor of the last one that was flushed."""

    def __init__(self, cursor_file: CursorFile | None, feed: FolderFeed | NodeFeed) -> None:
        self._cursor_file = cursor_file
        self._feed = feed
        self._saved = cursor_file.text() if cursor_file is not None else ""
        self._lines = 0

    def write_all(self, entries: Iterable[FeedEntry]) -> None:
        """Write entries, and the cursor behind them."""
        try:
            for entry in entries:
                self.write(entry)
        except BrokenPipeError:
            raise  # what the reader had not read from the pipe is lost: the cursor stays, and it is sent again
        except BaseException:
            self.flush()
            raise
        self.flush()

    def write(self, entry: FeedEntry) -> None:
        line = entry.to_json()
        if sys.stdout.isatty():
            line = safe(line.decode("utf-8", "replace")).encode()
        sys.stdout.buffer.write(line + b"\n")
        self._feed.deliver(entry)
        self._lines += 1
        if self._lines % _SAVE_EVERY_LINES == 0:
            self.flush()

    def flush(self) -> None:
        """Flush what was written; only then move the cursor."""
        sys.stdout.buffer.flush()
        if self._cursor_file is None:
            return
        cursor = self._feed.cursor_text
        if cursor not in ("", self._saved):
            self._cursor_file.save(cursor)
            self._saved = cursor

    def wait(self) -> None:
        """Wait a moment for more changes."""
        self.flush()
        time.sleep(PAUSE_S)
