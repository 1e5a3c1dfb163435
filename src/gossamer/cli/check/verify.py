"""`gossamer verify DIR`: do archive, index and catalog agree?

`--mend` repairs truncated files and the index, and rebuilds a damaged ledger from the archive.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import msgspec

from gossamer.backends.local.damage import WORKER_STATUS
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.store import DATA_FILE
from gossamer.cli.cluster.ledger import is_ledger_url
from gossamer.cli.opening import add_crawl, open_folder, open_view
from gossamer.model.errors import GossamerError, UsageError
from gossamer.reading.archive_access import archive_files, open_s3, s3_url
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.runtime.recovery.recovery import archived_names, foreign_ledger
from gossamer.settings.load import settings_for_known
from gossamer.telemetry.progress_line import ProgressLine
from gossamer.telemetry.text import count, plural, printable, size
from gossamer.verify.agreement import Agreement, check_agreement
from gossamer.verify.index import mend
from gossamer.verify.mending import (
    check_catalog_rows,
    check_page_objects,
    check_pages,
    create_catalogs,
    download_missing,
    mend_catalog_rows,
    mend_objects,
    mend_page_objects,
    mend_pages,
    set_state_aside,
)

_SHOWN = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    add_crawl(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--mend",
        action="store_true",
        help="first cut off truncated tails, rebuild the index, a damaged ledger, and what stores and catalogs lack",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: something is wrong."""
    if is_ledger_url(arguments.dir):
        return _verify_nodes(arguments)
    done = _rebuild_ledger(CrawlFolder(Path(arguments.dir))) if arguments.mend else []
    with open_folder(arguments) as crawl:
        stores = crawl.settings.store
        if arguments.mend:
            crawl.folder.lock()
            try:
                done += mend(crawl.folder, crawl.ledger, archive_files(crawl.folder.archive, stores))
                if url := s3_url(stores):
                    done += mend_objects(crawl.folder, open_s3(url), crawl.ledger.archive_ends())
                done += mend_pages(crawl) + mend_page_objects(crawl) + mend_catalog_rows(crawl)
                found = _compare(crawl, is_running=False)
                _check_stores(crawl, found)
            finally:
                crawl.folder.release()
        else:
            found = _compare(crawl, is_running=crawl.owner is not None)
            if crawl.owner is None:
                _check_stores(crawl, found)
    found.notes = [*done, *found.notes]
    return _print(found, arguments)


def _compare(crawl: CrawlView, *, is_running: bool) -> Agreement:
    with ProgressLine("verify", sum(crawl.ledger.archive_ends().values()), shown=size) as progress:
        return check_agreement(
            crawl.folders, crawl.ledger, crawl.settings.store, is_running=is_running, on_bytes=progress.show
        )


def _check_stores(crawl: CrawlReader, found: Agreement) -> None:
    check_pages(crawl, found)
    check_page_objects(crawl, found)
    check_catalog_rows(crawl, found)


def _verify_nodes(arguments: argparse.Namespace) -> int:
    """Compare the folders of all nodes with the catalog in the shared ledger."""
    if arguments.mend:
        raise UsageError("--mend changes a folder: stop the node, and give the node's own folder instead of the ledger")
    with open_view(arguments) as crawl:
        found = _compare(crawl, is_running=crawl.is_running)
        if not crawl.is_running:
            check_catalog_rows(crawl, found)
        if crawl.folders.hint:
            found.notes.append(f"without the folders {crawl.folders.hint}")
    return _print(found, arguments)


def _print(found: Agreement, arguments: argparse.Namespace) -> int:
    print(msgspec.json.encode(found).decode() if arguments.json else render(found))
    return 0 if found.is_fine else 1


def _rebuild_ledger(folder: CrawlFolder) -> list[str]:
    """Rebuild the ledger if it is missing, empty beside an archive, or cannot be read; return what was done."""
    from gossamer.assembly.run import build_session

    if not folder.settings_path.is_file():
        folder.require_crawl()
    problem = _ledger_problem(folder)
    if not problem:
        return []
    folder.lock()
    try:
        aside = set_state_aside(folder)
        settings = settings_for_known(folder.settings_path, [])
        if url := s3_url(settings.store):
            download_missing(folder, open_s3(url))
        create_catalogs(settings, folder)
        answers, seeds = build_session(settings, folder, []).rebuild()
    finally:
        folder.release()
    kept = f"; the old one is in {aside.relative_to(folder.path)}" if aside is not None else ""
    return [
        f"ledger rebuilt from {count(answers)} archived answers, {count(seeds)} of them seeds or reached in no other "
        f"way ({problem}){kept}"
    ]


def _ledger_problem(folder: CrawlFolder) -> str:
    """Return why a ledger cannot be used, found by reading all of it; empty if it can.

    By another process: some damage ends the one that reads it (`backends/local/damage`).
    """
    if not (folder.state / DATA_FILE).is_file():
        return "there was none"
    command = [sys.executable, "-m", "gossamer.verify.probe", str(folder.path)]
    done = subprocess.run(  # noqa: S603 - our own module, no shell
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode < 0 or done.returncode == WORKER_STATUS:
        return "reading it ended a process"
    if done.returncode:
        CrawlReader(folder.path).__enter__().__exit__(None, None, None)  # says what is wrong
        raise GossamerError(f"{folder.path}: the ledger cannot be examined: {done.stderr[-300:].decode()}")
    problem: str = done.stdout.decode("utf-8", "replace").strip()
    if problem:
        return problem
    with CrawlReader(folder.path) as crawl:
        if s3_url(crawl.settings.store):
            return ""  # what is not in the folder may be there
        return foreign_ledger(archived_names(folder), crawl.ledger.archive_ends())


def render(found: Agreement) -> str:
    """Return the findings as text."""
    lines = [
        f"{plural(found.files, 'archive file')}, {plural(found.records, 'record')}, "
        f"{plural(found.captures, 'capture')}; "
        f"{plural(found.rows, 'URL')} of {plural(found.hosts, 'host')}, {count(found.queued)} queued"
    ]
    if found.plain_files:
        lines[0] += f"; {plural(found.plain_files, 'plain file')}"
    if found.objects:
        lines[0] += f"; {plural(found.objects, 'object')} in S3"
    lines += [f"note: {printable(note)}" for note in found.notes]
    lines += [f"{printable(p.where)}: {printable(p.what, 400)}" for p in found.problems[:_SHOWN]]
    if found.problem_count > _SHOWN:
        lines.append(f"and {plural(found.problem_count - _SHOWN, 'more problem')}")
    lines.append("archive, index and catalog agree" if found.is_fine else plural(found.problem_count, "problem"))
    return "\n".join(lines)
