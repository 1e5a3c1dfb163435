"""`gossamer verify DIR`: do archive, index and catalog agree?

`--mend` repairs truncated files and the index, and rebuilds a damaged ledger from the archive.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.registry import object_store_in
from gossamer.cli.opening import add_crawl, open_view
from gossamer.control.record import is_ledger_url
from gossamer.model.errors import UsageError
from gossamer.reading.folder import CrawlReader
from gossamer.reading.view import CrawlView
from gossamer.settings.load import settings_for_known
from gossamer.telemetry.progress_line import ProgressLine
from gossamer.telemetry.text import count, plural, printable, size
from gossamer.verify.agreement import Agreement
from gossamer.verify.catalogs import create_catalogs
from gossamer.verify.checks import find_problems, mend_all
from gossamer.verify.rebuild import download_missing, ledger_problem, set_state_aside

_SHOWN = 50


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--mend",
        action="store_true",
        help="first cut off truncated tails, rebuild the index, a damaged ledger, and what stores and catalogs lack",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: something is wrong."""
    if arguments.mend and is_ledger_url(arguments.dir):
        raise UsageError("--mend changes a folder: stop the node, and give the node's own folder instead of the ledger")
    done = _rebuild_ledger(CrawlFolder(Path(arguments.dir))) if arguments.mend else []
    with open_view(arguments) as crawl:
        if arguments.mend:
            assert isinstance(crawl, CrawlReader)
            crawl.folder.lock()
            crawl.owner = None  # nobody else runs it
            try:
                done += mend_all(crawl)
                found = _compare(crawl)
            finally:
                crawl.folder.release()
        else:
            found = _compare(crawl)
        hint = [f"without the folders {crawl.folders.hint}"] if crawl.folders.hint else []
    found.notes = [*done, *found.notes, *hint]
    print(msgspec.json.encode(found).decode() if arguments.json else render(found))
    return 0 if found.is_fine else 1


def _compare(crawl: CrawlView) -> Agreement:
    with ProgressLine("verify", sum(crawl.ledger.archive_ends().values()), shown=size) as progress:
        return find_problems(crawl, progress.show)


def _rebuild_ledger(folder: CrawlFolder) -> list[str]:
    """Rebuild the ledger if it is missing, empty beside an archive, or cannot be read; return what was done."""
    from gossamer.assembly.run import build_session

    if not folder.settings_path.is_file():
        folder.require_crawl()
    problem = ledger_problem(folder)
    if not problem:
        return []
    folder.lock()
    try:
        aside = set_state_aside(folder)
        settings = settings_for_known(folder.settings_path, [])
        if url := object_store_in(settings.store):
            download_missing(folder, url)
        create_catalogs(settings, folder)
        answers, seeds = build_session(settings, folder, []).rebuild()
    finally:
        folder.release()
    kept = f"; the old one is in {aside.relative_to(folder.path)}" if aside is not None else ""
    return [
        f"ledger rebuilt from {count(answers)} archived answers, {count(seeds)} of them seeds or reached in no other "
        f"way ({problem}){kept}"
    ]


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
