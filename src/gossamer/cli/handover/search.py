"""`gossamer search DIR "words"`: which pages of a crawl contain the words?

The best match comes first.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from gossamer.cli.opening import add_crawl, open_folder, open_view, report_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.control.record import is_ledger_url
from gossamer.handover.feed.feed import FolderFeed
from gossamer.handover.feed.node_feed import NodeFeed
from gossamer.handover.search.search import MARK, Hit, SearchIndex
from gossamer.handover.search.search_entries import MIN_FOR_PROCESSES, ManyProcesses
from gossamer.model.errors import UsageError
from gossamer.reading.cluster import SharedReader
from gossamer.telemetry.progress_line import ProgressLine
from gossamer.telemetry.text import as_printed, plural, printable, raw_stream

COPIES_SHOWN = 3
_EXAMPLES = """All words must match, "phrases" literally; -word excludes, word* matches a prefix. The index
(search.sqlite in the crawl folder) is created by the first search and updated by every later one.
Pages with noindex are not indexed; pages that repeat each other are one match.
With a ledger the index is in --index DIR, or temporary.

examples:
  gossamer search crawls/example 'old bridge'
  gossamer search crawls/example '"town council" -budget' -n 3 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    add_crawl(parser)
    parser.add_argument("words", nargs="+", metavar="WORDS")
    parser.add_argument("-n", "--most", type=int, default=10, metavar="N", help="how many pages to show (10)")
    parser.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="with a ledger: where the index is kept (else it is temporary)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per page")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 0, even if nothing is found."""
    if arguments.most < 1:
        raise UsageError(f"-n {arguments.most}: expected at least 1")
    words = " ".join(arguments.words)
    if is_ledger_url(arguments.dir):
        return _search_nodes(words, arguments)
    if arguments.index is not None:
        raise UsageError("--index is for a ledger URL; the index of a crawl in a folder is in that folder")
    with quiet_pipe(), open_folder(arguments) as crawl, SearchIndex(crawl.folder.path) as index:
        _update(index, FolderFeed(crawl, for_search=True), crawl.folder.path)
        _print(index, words, arguments)
    return 0


def _search_nodes(words: str, arguments: argparse.Namespace) -> int:
    """Search a crawl on many machines. Exit status 1: pages are not indexed, since their bytes lie elsewhere."""
    missing = 0
    with quiet_pipe(), ExitStack() as stack:
        crawl = stack.enter_context(open_view(arguments))
        assert isinstance(crawl, SharedReader)
        if arguments.index is not None and not arguments.index.is_dir():
            raise UsageError(f"--index {arguments.index}: no such folder")
        place = arguments.index or Path(stack.enter_context(TemporaryDirectory(prefix="gossamer-search-")))
        index = stack.enter_context(SearchIndex(place))
        feed = NodeFeed(crawl, has_copies=True)
        index.update_from_nodes(feed)
        _print(index, words, arguments)
        missing = feed.elsewhere
        report_elsewhere(crawl, missing)
    return 1 if missing else 0


def _print(index: SearchIndex, words: str, arguments: argparse.Namespace) -> None:
    hits = index.search(words, arguments.most)
    for number, hit in enumerate(hits, 1):
        if arguments.json:
            print(msgspec.json.encode(hit).decode())
        else:
            print(
                as_printed(_rendered(number, hit)), file=raw_stream(sys.stdout)
            )  # with bold words; the texts are safe
    if not hits:
        print(f"gossamer search: no page contains {printable(words, 80)}", file=sys.stderr)
    sys.stdout.flush()


def _update(index: SearchIndex, feed: FolderFeed, folder: Path) -> None:
    missing = feed.last() - index.cursor()
    if missing <= 0:
        return
    what = "building the search index" if not index.cursor() else "updating the search index"
    print(f"{what}: {plural(missing, 'change')}", file=sys.stderr)
    source = ManyProcesses(folder, feed.last()) if missing >= MIN_FOR_PROCESSES else None
    with ProgressLine("search", missing, "changes") as progress:
        index.update(feed, source, progress.show)


def _rendered(number: int, hit: Hit) -> str:
    """Return a match for people; on a terminal the words found are bold."""
    is_terminal = sys.stdout.isatty()
    snippet = printable(hit.snippet, 600)
    if is_terminal:
        parts = snippet.split(MARK)
        snippet = "".join(f"\x1b[1m{part}\x1b[0m" if at % 2 else part for at, part in enumerate(parts))
    title = printable(hit.title, 100) or "(no title)"
    copies = f"    also at: {_listed(hit)}\n" if hit.copies else ""
    return f"{number:>2}. {title}\n    {printable(hit.url)}  {hit.date[:10]}\n    {snippet}\n{copies}"


def _listed(hit: Hit) -> str:
    """Return the addresses of pages with the same text, or nearly."""
    shown = ", ".join(printable(url) for url in hit.copies[:COPIES_SHOWN])
    more = hit.copies_found - COPIES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
