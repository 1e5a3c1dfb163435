"""From the first argument of a verb to the crawl that it names: a folder, or a ledger that nodes share."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from gossamer.cli.cluster.ledger import is_ledger_url, open_crawl, shown_url
from gossamer.model.errors import UsageError
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.telemetry.text import plural, printable


def add_crawl(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *, reads_folders: bool = True) -> None:
    """Add the crawl to the arguments; a verb that reads archives or events can be told where those of nodes are."""
    parser.add_argument(
        "dir",
        metavar="DIR",
        help="the crawl folder, or the ledger that nodes share (redis://…, postgresql://…, kafka://…)",
    )
    if reads_folders:
        add_node_folders(parser)


def add_node_folders(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add where the folders of nodes are to the arguments."""
    parser.add_argument(
        "--node-folder",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="with a ledger: the folder of a node elsewhere, mounted or copied (repeatable)",
    )


def open_view(arguments: argparse.Namespace) -> CrawlReader | SharedReader:
    """Return the crawl that the arguments name, to be used with `with`."""
    return _open_shared(arguments) if is_ledger_url(arguments.dir) else open_folder(arguments)


def open_folder(arguments: argparse.Namespace) -> CrawlReader:
    """Return the crawl in the folder that the arguments name."""
    if folders_given(arguments):
        raise UsageError("--node-folder is for a ledger URL; a crawl in a folder has one folder")
    return CrawlReader(Path(arguments.dir))


def _open_shared(arguments: argparse.Namespace) -> SharedReader:
    given = folders_given(arguments)
    shared, record = open_crawl(arguments.dir)
    return SharedReader(shared, record, shown_url(arguments.dir), given, time.time())


def folders_given(arguments: argparse.Namespace) -> dict[str, Path]:
    """Return the folders of nodes that the operator named."""
    given: dict[str, Path] = {}
    for text in getattr(arguments, "node_folder", []):
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--node-folder {printable(text)}: expected NAME=DIR")
        given[name] = Path(path)
    return given


def warn_of_elsewhere(crawl: CrawlView, what: str) -> None:
    """Print what was not read, since it lies elsewhere."""
    if crawl.folders.hint:
        print(f"note: without {what} {printable(crawl.folders.hint, 2000)}", file=sys.stderr)


def report_elsewhere(crawl: CrawlView, pages: int) -> None:
    """Print how many pages are missing in the output, since their bytes lie elsewhere."""
    if pages:
        text = f"INCOMPLETE: the bytes of {plural(pages, 'page')} lie in folders {printable(crawl.folders.hint, 2000)}"
        print(text, file=sys.stderr)
