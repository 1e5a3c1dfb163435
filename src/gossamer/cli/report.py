"""`gossamer report DIR`: the results of a crawl, final or so far."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from gossamer.errors import UsageError
from gossamer.inspect.reader import CrawlReader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("dir", type=Path, metavar="DIR", help="the crawl folder")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a web page")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    from gossamer.inspect.report.build import build_report, write_whole
    from gossamer.inspect.report.html import render_html
    from gossamer.inspect.report.terminal import render_text

    with CrawlReader(arguments.dir) as crawl:
        report = build_report(arguments.dir, crawl.ledger, crawl.figures(), crawl.now)
    if arguments.html is not None:
        try:
            write_whole(arguments.html, render_html(report).encode())
        except OSError as error:
            raise UsageError(f"{arguments.html}: cannot be written: {error.strerror or error}") from error
    if arguments.json:
        print(msgspec.json.encode(report).decode())
    elif arguments.html is not None:
        print(f"report    {arguments.html}")
    else:
        print(render_text(report))
    return 0
