"""Do the plain files of `--store files` agree with the catalog?

Every page has its file, with the content whose hash the catalog has; every file has its page. The catalog is sorted by
host, and so are the folders of files, so one pass compares them. Memory: the file names of one host.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from gossamer.archive.digests import sha1
from gossamer.archive.files import file_name, host_folder
from gossamer.core.url.forms import host_of
from gossamer.model.records import FetchKind, Outcome, UrlRecord, UrlState
from gossamer.ports import Catalog
from gossamer.reading.view import CrawlView
from gossamer.verify.agreement import Agreement, OnBytes, ReportProblem

_HASH_BYTES = 16
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


def find(crawl: CrawlView, found: Agreement, _on_bytes: OnBytes) -> None:
    """Compare the plain files of one folder. See `gossamer.verify.agreement.Check`."""
    if "files" not in crawl.settings.store:
        return
    if "" not in crawl.folders.found:
        found.notes.append("plain files are not compared: they are in the folders of several nodes")
    elif not crawl.is_running:
        found.plain_files = _check_files(crawl.folders.found[""].files, crawl.ledger, found.add_problem)


def _check_files(files: Path, ledger: Catalog, report: ReportProblem) -> int:
    """Compare the folder of plain files with the catalog; return how many files there are."""
    count = 0
    folders: set[str] = set()
    for _, group in groupby(ledger.urls(), key=lambda entry: entry[0][:8]):
        pages = {file_name(row.url): row for _, row in group if _has_file(row)}
        if pages:
            folder = host_folder(host_of(next(iter(pages.values())).url))
            folders.add(folder)
            count += _check_folder(files / folder, pages, report)
    for path in sorted(files.iterdir()) if files.is_dir() else ():
        if path.name not in folders:
            report(f"{files.name}/{path.name}", "no page of the catalog is in this folder")
    return count


def _has_file(row: UrlRecord) -> bool:
    return row.state is UrlState.DONE and row.kind is FetchKind.PAGE and row.outcome in _PAGES


def _check_folder(folder: Path, pages: dict[str, UrlRecord], report: ReportProblem) -> int:
    present = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    for name, row in pages.items():
        path = present.pop(name, None)
        where = f"{folder.parent.name}/{folder.name}/{name}"
        if path is None:
            report(where, f"is missing: the page {row.url}")
        elif row.content_hash and sha1(path.read_bytes())[:_HASH_BYTES] != row.content_hash:
            report(where, f"is not the content of {row.url}")
    for name in sorted(present):
        report(f"{folder.parent.name}/{folder.name}/{name}", "belongs to no page of the catalog")
    return len(pages)
