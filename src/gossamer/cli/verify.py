"""`gossamer verify DIR`: do archive, index and catalog agree?"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from gossamer.inspect.agreement import Agreement, check_agreement
from gossamer.inspect.agreement_index import mend
from gossamer.inspect.reader import CrawlReader
from gossamer.telemetry.text import count, printable

_SHOWN = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("dir", type=Path, metavar="DIR", help="the crawl folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--mend", action="store_true", help="first cut off truncated tails and rebuild the index")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: something is wrong."""
    done: list[str] = []
    with CrawlReader(arguments.dir) as crawl:
        stores = crawl.settings.store
        if arguments.mend:
            crawl.folder.lock()
            try:
                done = mend(crawl.folder, crawl.ledger)
                found = check_agreement(crawl.folder, crawl.ledger, stores, is_running=False)
            finally:
                crawl.folder.release()
        else:
            found = check_agreement(crawl.folder, crawl.ledger, stores, is_running=crawl.owner is not None)
    found.notes = [*done, *found.notes]
    print(msgspec.json.encode(found).decode() if arguments.json else render(found))
    return 0 if found.is_fine else 1


def render(found: Agreement) -> str:
    """Return the findings as text."""
    lines = [
        f"{count(found.files)} archive files, {count(found.records)} records, {count(found.captures)} captures; "
        f"{count(found.rows)} URLs of {count(found.hosts)} hosts, {count(found.queued)} queued"
    ]
    if found.plain_files:
        lines[0] += f"; {count(found.plain_files)} plain files"
    lines += [f"note: {printable(note)}" for note in found.notes]
    lines += [f"{printable(p.where)}: {printable(p.what, 400)}" for p in found.problems[:_SHOWN]]
    if found.problem_count > _SHOWN:
        lines.append(f"and {count(found.problem_count - _SHOWN)} more problems")
    lines.append("archive, index and catalog agree" if found.is_fine else f"{count(found.problem_count)} problems")
    return "\n".join(lines)
