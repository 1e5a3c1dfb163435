"""`gossamer search DIR "words"`: which pages of a crawl contain the words?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from gossamer.cli.pipes import quiet_pipe
from gossamer.errors import UsageError
from gossamer.handover.feed import Feed
from gossamer.handover.search import MARK, Hit, SearchIndex
from gossamer.inspect.reader import CrawlReader
from gossamer.telemetry.text import count, printable, raw_stream

_EXAMPLES = """All words must match, "phrases" literally; -word excludes, word* matches a prefix. The index
(search.sqlite in the crawl folder) is created by the first search and updated by every later one.
Duplicates and pages with noindex are not indexed.

examples:
  gossamer search crawls/example 'old bridge'
  gossamer search crawls/example '"town council" -budget' -n 3 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument("dir", type=Path, metavar="DIR", help="the crawl folder")
    parser.add_argument("words", nargs="+", metavar="WORDS")
    parser.add_argument("-n", "--most", type=int, default=10, metavar="N", help="how many pages to show (10)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per page")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 0, even if nothing is found."""
    if arguments.most < 1:
        raise UsageError(f"-n {arguments.most}: expected at least 1")
    words = " ".join(arguments.words)
    with quiet_pipe(), CrawlReader(arguments.dir) as crawl, SearchIndex(crawl.folder.path) as index:
        _update(index, Feed(crawl))
        hits = index.search(words, arguments.most)
        for number, hit in enumerate(hits, 1):
            if arguments.json:
                print(msgspec.json.encode(hit).decode())
            else:
                print(_rendered(number, hit), file=raw_stream(sys.stdout))  # with bold words; the texts are safe
        if not hits:
            print(f"gossamer search: no page contains {printable(words, 80)}", file=sys.stderr)
        sys.stdout.flush()
    return 0


def _update(index: SearchIndex, feed: Feed) -> None:
    missing = feed.last() - index.cursor()
    if missing <= 0:
        return
    what = "building the search index" if not index.cursor() else "updating the search index"
    print(f"{what}: {count(missing)} changes", file=sys.stderr)
    index.update(feed)


def _rendered(number: int, hit: Hit) -> str:
    """Return a match for people; on a terminal the words found are bold."""
    is_terminal = sys.stdout.isatty()
    snippet = printable(hit.snippet, 600)
    if is_terminal:
        parts = snippet.split(MARK)
        snippet = "".join(f"\x1b[1m{part}\x1b[0m" if at % 2 else part for at, part in enumerate(parts))
    title = printable(hit.title, 100) or "(no title)"
    return f"{number:>2}. {title}\n    {printable(hit.url)}  {hit.date[:10]}\n    {snippet}\n"
