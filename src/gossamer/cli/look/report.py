"""`gossamer report DIR`: the results of a crawl, final or so far.

Speed, errors by kind, the worst hosts, how robots.txt was respected, the corpus, broken links, redirects and titles;
with `--html FILE` also descriptions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from gossamer.cli.opening import add_crawl, open_view
from gossamer.model.errors import UsageError
from gossamer.model.events import masked_values
from gossamer.reading.view import CrawlView
from gossamer.report.record import DescriptionFigures
from gossamer.settings.stores import has_archive
from gossamer.telemetry.progress_line import ProgressLine
from gossamer.telemetry.text import printable


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a web page; reads descriptions")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.add_argument(
        "--all-languages",
        action="store_true",
        help="detect the languages of all stored texts, not of a sample (about 1 ms per page)",
    )


def run(arguments: argparse.Namespace) -> int:
    from gossamer.reading.archive_access import CrawlArchive
    from gossamer.report.build import ReportSources, build_whole_report, write_whole
    from gossamer.report.html import render_html
    from gossamer.report.terminal import render_text

    with open_view(arguments) as crawl:
        read = CrawlArchive(crawl.folders, ()).read
        sources = ReportSources(crawl.folders.events, crawl.ledger, read, arguments.all_languages)
        figures = crawl.figures()
        with ProgressLine("report", figures.totals.urls_seen, "URLs") as progress:
            report = build_whole_report(sources, crawl.settings, figures, crawl.now, progress.step)
        if arguments.html is not None and has_archive(crawl.settings.store):
            report.findings.descriptions = _descriptions(crawl)
        if crawl.folders.hint:
            report.warnings.append(f"requests and times are without the events {printable(crawl.folders.hint, 2000)}")
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


def _descriptions(crawl: CrawlView) -> DescriptionFigures:
    """Return what is known about the descriptions of pages: all stored HTML pages are read for it."""
    from gossamer.handover.export.page_heads import PageHeads
    from gossamer.report.findings import SHOWN

    with PageHeads() as heads:
        heads.read(crawl)
        found = heads.figures(SHOWN)
    if crawl.settings.mask_queries:
        return msgspec.convert(masked_values(msgspec.to_builtins(found)), DescriptionFigures)
    return found
