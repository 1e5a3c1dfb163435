"""`gossamer export DIR`: the crawl as documents, a table, an index, a link graph or texts.

Pages with main text, language, dates and links (JSONL); a table with Common Crawl's columns (Parquet, CSV); the index
(CDXJ); the link graph; the texts as WARC (WET); everything as one file for ReplayWeb.page (WACZ). `--where host=…`,
`status>=400` or `language=de` select a part.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gossamer.cli.opening import add_crawl, open_view, report_elsewhere
from gossamer.cli.pipes import STDOUT, quiet_pipe
from gossamer.handover.export.documents import wanted_pages
from gossamer.handover.export.export import FORMATS, export, target_file
from gossamer.handover.export.stored import ExportedPages
from gossamer.handover.where import FIELDS, selection_from
from gossamer.model.errors import UsageError
from gossamer.telemetry.progress_line import ProgressLine
from gossamer.telemetry.text import count

_MORE = """
Pages are written in archive order (oldest file first), which is fastest to read; cdxj is sorted by URL. The crawl may
be running: what is committed is exported. A file gets its final name when it is complete.

examples:
  gossamer export crawls/example --format jsonl | head -1
  gossamer export crawls/example --format parquet -o pages.parquet --with-text
  gossamer export crawls/example --format wacz -o example.wacz
  gossamer export crawls/example --format links -o links.tsv --where domain=example.org
  gossamer export crawls/example --format jsonl --where 'status>=400' --where after=2026-05-01
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = (f"  {name:<8} {form.help}\n" for name, form in FORMATS.items())
    parser.epilog = f"formats:\n{''.join(lines)}{_MORE}"
    add_crawl(parser)
    parser.add_argument("--format", required=True, choices=tuple(FORMATS), help="see below")
    parser.add_argument(
        "-o", "--out", type=_out, metavar="FILE", help="a file (.gz compresses) or a folder; default: stdout, as -"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help=f"only pages that match, repeatable; FIELD=VALUE, !=, >=, <=, >, <; fields: {', '.join(FIELDS)}",
    )
    parser.add_argument(
        "--with-text", action="store_true", help="parquet, csv: a column with the text; wacz: texts to search in"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: pages are missing, since their bytes lie on nodes elsewhere."""
    selection = selection_from(arguments.where)
    form = FORMATS[arguments.format]
    if arguments.with_text and form.text:
        *others, last = (name for name, each in FORMATS.items() if not each.text)
        raise UsageError(
            f"--with-text is for --format {', '.join(others)} and {last}; {arguments.format} has {form.text}"
        )
    missing = 0
    with quiet_pipe(), open_view(arguments) as crawl:
        pages = crawl.figures().totals.pages if not arguments.where else 0
        with ProgressLine("export", pages if arguments.out is not None else 0, "pages") as progress:
            written = export(
                *(crawl, arguments.format, arguments.out, selection),
                with_text=arguments.with_text,
                watch=progress.each if arguments.out is not None else iter,
            )
        if arguments.out is not None:
            target = target_file(arguments.format, arguments.out)
            print(f"{count(written)} {form.unit} written to {target}", file=sys.stderr)
        if arguments.format == "wacz" and arguments.where:
            print("note: --where selects the pages that are listed; archive and index are whole", file=sys.stderr)
        missing = ExportedPages(crawl).elsewhere(wanted_pages(selection)) if crawl.folders.elsewhere else 0
        report_elsewhere(crawl, missing)
    return 1 if missing else 0


def _out(text: str) -> Path | None:
    """Return the file or folder; a name that ends with a slash is a folder, and - is standard output."""
    if text == STDOUT:
        return None
    path = Path(text)
    if not text or (text.endswith("/") and not path.is_dir()):
        raise UsageError(f"-o {text!r}: no such folder")
    return path
