"""From the first argument of a verb to the crawl that it names: a folder, or a ledger that nodes share."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from gossamer.control.record import is_ledger_url, open_crawl, shown_url
from gossamer.model.errors import UsageError
from gossamer.model.events import masked_text
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.settings.load import settings_for_node
from gossamer.telemetry.text import mask_output, plural, printable


def add_crawl(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *, reads_folders: bool = True) -> None:
    """Add the crawl to the arguments; verbs that read archives or events accept the folders of nodes, too."""
    parser.add_argument(
        "dir",
        metavar="DIR",
        help="the crawl folder, or the ledger that nodes share (redis://…, postgresql://…, kafka://…)",
    )
    if reads_folders:
        add_node_folders(parser)


def add_node_folders(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the folders of nodes to the arguments."""
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
    reader = CrawlReader(Path(arguments.dir))
    if reader.folder.settings_path.is_file():
        reader.folder.require_own_entries()
        if _masks_queries(reader.folder.settings_path):
            mask_output(masked_text)
    return reader


def _masks_queries(settings: Path) -> bool:
    """Return whether a crawl masks the queries of URLs in all that is shown; the reader judges its settings later."""
    try:
        return any(line.split() == ["mask-queries", "=", "true"] for line in settings.read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return False


def _open_shared(arguments: argparse.Namespace) -> SharedReader:
    given = folders_given(arguments)
    shared, record = open_crawl(arguments.dir)
    if settings_for_node(record.settings, arguments.dir, []).mask_queries:
        mask_output(masked_text)
    return SharedReader(shared, record, shown_url(arguments.dir), given, time.time())


def check_crawl(arguments: argparse.Namespace) -> str:
    """Return the folder or ledger URL that the arguments name; raise if there is no crawl."""
    crawl = str(arguments.dir)
    if is_ledger_url(crawl):
        shared, _ = open_crawl(crawl)
        shared.close()
    else:
        open_folder(arguments).folder.require_crawl()
    return crawl


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
