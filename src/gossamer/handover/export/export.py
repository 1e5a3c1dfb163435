"""Exports a crawl in one of several formats. Streams: memory does not grow with the crawl.

Pages come in archive order, the index in its own order. Only committed data is read, so the
crawl may be running.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from isal import igzip_lib
from msgspec import Struct

from gossamer import __version__
from gossamer.archive.warc import GZIP_LEVEL, new_record_id, sha1_base32, target_uri, warcinfo_record
from gossamer.handover.export.columns import columns, values_of
from gossamer.handover.export.documents import PageDocument, documents, masked_document
from gossamer.handover.export.output import whole_file, write_lines, write_stream
from gossamer.handover.export.parquet import require_pyarrow, write_parquet
from gossamer.handover.export.wacz import write_wacz
from gossamer.handover.findings.links import csv_line, link_lines, safe_cells
from gossamer.handover.search.index import index_lines
from gossamer.handover.where import ANYTHING, Selection
from gossamer.model.errors import UsageError
from gossamer.reading.view import CrawlView

# The pages as CSV: the columns of Parquet, with a header, quoted by RFC 4180.
#
# What is not known is empty, a time is UTC in ISO 8601, metadata are JSON, the URLs of a list are separated by blanks.
# Texts that a spreadsheet would treat as formulas are prefixed with `'`: they come from the web.


def page_lines(documents: Iterable[PageDocument], segment: str, *, with_text: bool = False) -> Iterator[bytes]:
    """Yield a header, then a line per document; a line has line ends within it if a cell has."""
    shown = columns(with_text=with_text)
    yield csv_line([column.name for column in shown])
    for document in documents:
        yield csv_line([_cell(value) for value in values_of(document, segment, shown).values()])


def _cell(value: Any) -> str:  # noqa: ANN401 - any column
    if value is None:
        return ""
    if isinstance(value, str):
        return safe_cells([value])[0]
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and value and isinstance(value[0], str):
        return " ".join(value)
    if isinstance(value, list):  # a map
        return msgspec.json.encode(dict(value)).decode() if value else ""
    return str(value)


# The texts as WARC: `conversion` records, as the WET files of Common Crawl.
#
# One gzip member per record, WARC 1.1; each refers to the response that it was made from.


def wet_members(documents: Iterable[PageDocument], filename: str, about: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the members of a WET file: its description, then one record per page that has text."""
    info_id = new_record_id()
    yield warcinfo_record(filename=filename, date=time.time(), record_id=info_id, fields=about)
    for document in documents:
        if document.article.text:
            yield conversion_member(document, info_id)


def conversion_member(document: PageDocument, warcinfo_id: str) -> bytes:
    """Return the record of one page's text."""
    facts = document.facts
    article = document.article
    block = article.text.encode() + b"\n"
    said = f"WARC-Identified-Content-Language: {document.language}\r\n" if document.language else ""
    digest = sha1_base32(hashlib.sha1(block, usedforsecurity=False).digest())
    head = (
        f"WARC/1.1\r\nWARC-Type: conversion\r\nWARC-Record-ID: <{new_record_id()}>\r\n"
        f"WARC-Target-URI: {target_uri(facts.url)}\r\nWARC-Date: {facts.fetched_at}\r\n"
        f"WARC-Warcinfo-ID: <{warcinfo_id}>\r\nWARC-Refers-To: <{facts.storage.record_id}>\r\n"
        f"WARC-Block-Digest: {digest}\r\n{said}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return bytes(igzip_lib.compress(head.encode() + block + b"\r\n\r\n", GZIP_LEVEL, igzip_lib.COMP_GZIP))


Watch: TypeAlias = Callable[[Iterator[PageDocument]], Iterator[PageDocument]]


class Export(Struct, frozen=True):
    """What is exported, and where to. `watch` sees the pages that are read."""

    crawl: CrawlView
    target: Path | None  # None: stdout
    selection: Selection
    with_text: bool
    watch: Watch

    @property
    def name(self) -> str:
        """The name of the crawl's folder, or its name in the ledger."""
        return self.crawl.name.rstrip("/").rpartition("/")[2]

    def documents(self) -> Iterator[PageDocument]:
        """Return the pages that are selected; without the queries of URLs if these are masked."""
        found = self.watch(documents(self.crawl, self.selection))
        return map(masked_document, found) if self.crawl.settings.mask_queries else found


class Format(Struct, frozen=True):
    """A form in which a crawl can be exported."""

    file: str  # its name if a folder is given
    unit: str  # of what is counted
    help: str
    write: Callable[[Export], int]  # returns how many were written
    text: str = ""  # what it has of it, if `--with-text` is not for it
    is_binary: bool = False  # not for a terminal
    needs_file: bool = False


def _write_jsonl(export: Export) -> int:
    return write_lines((document.to_json() + b"\n" for document in export.documents()), export.target)


def _write_parquet(export: Export) -> int:
    require_pyarrow()
    assert export.target is not None
    return write_parquet(export.documents(), export.target, export.name, with_text=export.with_text)


def _write_csv(export: Export) -> int:
    return write_lines(page_lines(export.documents(), export.name, with_text=export.with_text), export.target) - 1


def _write_links(export: Export) -> int:
    """Write links in the form that the name of the file says."""
    name = export.target.name.removesuffix(".gz") if export.target is not None else ""
    layout = next((form for form in ("tsv", "csv") if name.endswith(f".{form}")), "jsonl")
    return write_lines(link_lines(export.documents(), layout), export.target) - (layout != "jsonl")  # the header


def _write_wet(export: Export) -> int:
    """Write gzip members as they are, whatever the name of the file. The first one describes it."""
    about = {"software": f"Gossamer/{__version__}", "description": f"text of the pages of {export.name}"}
    name = export.target.name if export.target is not None else FORMATS["wet"].file
    members = wet_members(export.documents(), name, about)
    if export.target is None:
        return write_lines(members, None) - 1
    with whole_file(export.target) as file:
        return write_stream(members, file) - 1


FORMATS: Mapping[str, Format] = {
    "jsonl": Format(
        "pages.jsonl", "pages", "one page per line: its metadata, text and links", _write_jsonl, "the text anyway"
    ),
    "parquet": Format(
        "pages.parquet",
        "pages",
        "one page per row, with the columns of Common Crawl's index and ours (needs gossamer[parquet])",
        _write_parquet,
        needs_file=True,
    ),
    "csv": Format("pages.csv", "pages", "the same columns as CSV with a header", _write_csv),
    "cdxj": Format(
        "index.cdxj",
        "captures",
        "the index of all captures, sorted",
        lambda export: write_lines(index_lines(export.crawl, export.selection), export.target),
        "no text",
    ),
    "links": Format(
        "links.jsonl",
        "links",
        "one link per line: from, to, text, rel; as TSV or CSV if FILE ends that way",
        _write_links,
        "no text",
    ),
    "wet": Format(
        "text.warc.wet.gz", "texts", "the texts as WARC conversion records", _write_wet, "nothing else", is_binary=True
    ),
    "wacz": Format(
        "crawl.wacz",
        "pages",
        "archive, index and list of pages as one file for ReplayWeb.page and other replay tools",
        lambda export: write_wacz(
            export.crawl, export.target, export.name, export.selection, with_text=export.with_text
        ),
        is_binary=True,
    ),
}


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
    return FORMATS[form].write(Export(crawl, target_file(form, out), selection, with_text, watch))


def target_file(form: str, out: Path | None) -> Path | None:
    """Return the file to write; None is stdout."""
    kind = FORMATS[form]
    if out is not None:
        return out / kind.file if out.is_dir() else out
    if kind.needs_file:
        raise UsageError(f"--format {form} needs a file: -o {kind.file}")
    if kind.is_binary and sys.stdout.isatty():
        raise UsageError(f"--format {form} is not for a terminal: -o {kind.file}")
    return None
