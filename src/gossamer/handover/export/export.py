"""Exports a crawl in one of several formats. Streams: memory does not grow with the crawl.

Pages come in archive order, the index in its own order. Only committed data is read, so the
crawl may be running.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from gossamer import __version__
from gossamer.handover.export.documents import PageDocument, documents
from gossamer.handover.export.output import whole_file, write_lines, write_stream
from gossamer.handover.export.page_csv import page_lines
from gossamer.handover.export.parquet import require_pyarrow, write_parquet
from gossamer.handover.export.wacz import write_wacz
from gossamer.handover.export.wet import wet_members
from gossamer.handover.findings.links import link_lines
from gossamer.handover.search.index import index_lines
from gossamer.handover.where import ANYTHING, Selection
from gossamer.model.errors import UsageError
from gossamer.reading.view import CrawlView

# Format -> name of the file if a folder is given.
FORMATS = {
    "jsonl": "pages.jsonl",
    "parquet": "pages.parquet",
    "csv": "pages.csv",
    "cdxj": "index.cdxj",
    "links": "links.jsonl",
    "wet": "text.warc.wet.gz",
    "wacz": "crawl.wacz",
}
Watch: TypeAlias = Callable[[Iterator[PageDocument]], Iterator[PageDocument]]
_BINARY = frozenset({"parquet", "wet", "wacz"})


def export(
    crawl: CrawlView,
    form: str,
    out: Path | None,
    selection: Selection = ANYTHING,
    *,
    with_text: bool = False,
    watch: Watch = iter,
) -> int:
    """Write a crawl that is open for reading in one of `FORMATS` to a file, into a folder, or to stdout (None).

    Return how many pages, captures, links or texts were written. `watch` sees the pages that are read, except for
    an index and a WACZ, which need none.
    """
    target = target_file(form, out)
    if form == "parquet":
        require_pyarrow()
        assert target is not None
        return write_parquet(watch(documents(crawl, selection)), target, short_name(crawl), with_text=with_text)
    if form == "wacz":
        return write_wacz(crawl, target, short_name(crawl), selection, with_text=with_text)
    if form == "wet":
        about = {"software": f"Gossamer/{__version__}", "description": f"text of the pages of {short_name(crawl)}"}
        name = target.name if target is not None else FORMATS["wet"]
        # The first record describes the file.
        return _write_members(wet_members(watch(documents(crawl, selection)), name, about), target) - 1
    if form == "csv":
        lines = page_lines(watch(documents(crawl, selection)), short_name(crawl), with_text=with_text)
        return write_lines(lines, target) - 1  # the header
    if form == "links":
        layout = _links_form(target)
        written = write_lines(link_lines(watch(documents(crawl, selection)), layout), target)
        return written if layout == "jsonl" else written - 1  # the header
    if form == "cdxj":
        return write_lines(index_lines(crawl, selection), target)
    return write_lines((document.to_json() + b"\n" for document in watch(documents(crawl, selection))), target)


def short_name(crawl: CrawlView) -> str:
    """Return the name of the crawl's folder, or its name in the ledger."""
    return crawl.name.rstrip("/").rpartition("/")[2]


def target_file(form: str, out: Path | None) -> Path | None:
    """Return the file to write; None is stdout."""
    if out is not None:
        return out / FORMATS[form] if out.is_dir() else out
    if form == "parquet":
        raise UsageError("--format parquet needs a file: -o pages.parquet")
    if form in _BINARY and sys.stdout.isatty():
        raise UsageError(f"--format {form} is not for a terminal: -o {FORMATS[form]}")
    return None


def _links_form(target: Path | None) -> str:
    """Return how links are written, by the name of the file."""
    name = target.name.removesuffix(".gz") if target is not None else ""
    return next((form for form in ("tsv", "csv") if name.endswith(f".{form}")), "jsonl")


def _write_members(members: Iterator[bytes], target: Path | None) -> int:
    """Write gzip members as they are, whatever the name of the file."""
    if target is None:
        return write_lines(members, None)
    with whole_file(target) as file:
        return write_stream(members, file)
