"""What verbs that answer with a list have in common: a table for people, JSON lines or CSV, on stdout or in a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from gossamer.cli.pipes import STDOUT
from gossamer.handover.export.output import write_lines
from gossamer.handover.listing import csv_lines, json_lines
from gossamer.model.errors import UsageError
from gossamer.telemetry.text import count, masked_output, plural

Row = TypeVar("Row")
SHOWN = 20
_BY_NAME = {".csv": "csv", ".jsonl": "json"}


class Listing(Struct, frozen=True):
    """How an answer is written."""

    form: str  # table, json or csv
    out: Path | None  # None: stdout
    limit: int  # of a table; 0: none

    def some(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield as many rows as a table shows."""
        return iter(rows) if not self.limit else islice(rows, self.limit)

    def rest(self, known: int, what: str = "--json lists all") -> str:
        """Return the line that says how many rows are not shown; empty if all are."""
        return f"and {count(known - self.limit)} more; {what}" if 0 < self.limit < known else ""


def add_listing(parser: argparse.ArgumentParser) -> None:
    """Add the options for how the answer is written."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON lines: the counts, then everything")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")
    parser.add_argument("-o", "--out", metavar="FILE", help="write a file: NAME.csv or NAME.jsonl (.gz compresses)")
    parser.add_argument(
        "--limit", type=int, default=SHOWN, metavar="N", help=f"rows of a table ({SHOWN}; 0: all of them)"
    )


def listing_of(arguments: argparse.Namespace) -> Listing:
    """Return how the answer is to be written."""
    if arguments.limit < 0:
        raise UsageError(f"--limit {arguments.limit}: expected 0 or more")
    form = "json" if arguments.json else "csv" if arguments.csv else ""
    if arguments.out in (None, STDOUT):
        return Listing(form or "table", None, arguments.limit)
    path = Path(arguments.out)
    if not arguments.out or arguments.out.endswith("/") or path.is_dir():
        raise UsageError(f"-o {arguments.out!r}: expected a file, not a folder")
    form = form or _BY_NAME.get(Path(path.name.removesuffix(".gz")).suffix, "")
    if not form:
        raise UsageError(f"-o {arguments.out!r}: expected a name that ends with .csv or .jsonl, or --csv or --json")
    return Listing(form, path, arguments.limit)


def write_listing(listing: Listing, head: Struct, kind: type[Struct], rows: Iterable[Struct]) -> None:
    """Write an answer as JSON lines or CSV; for a file, say so on stderr. Masked, if what is printed is."""
    lines = csv_lines(kind, rows) if listing.form == "csv" else json_lines(head, rows)
    lines = (masked_output(line) for line in lines)
    if listing.out is not None:
        written = write_lines(lines, listing.out) - 1
        print(f"{plural(written, 'row')} written to {listing.out}", file=sys.stderr)
    elif listing.form == "csv" and not sys.stdout.isatty():
        write_lines(lines, None)  # byte for byte, as in a file
    else:
        for line in lines:
            sys.stdout.write(line.decode().replace("\r\n", "\n"))
        sys.stdout.flush()
