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

from gossamer import __version__
from gossamer.archive.warc import GZIP_LEVEL, new_record_id, sha1_base32, target_uri, warcinfo_record
from gossamer.handover.export.columns import COMMON_CRAWL, OURS, TEXT, columns_of
from gossamer.handover.export.documents import PageDocument, documents
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
    names = [name for name, _ in (*COMMON_CRAWL, *OURS, *((TEXT,) if with_text else ()))]
    yield csv_line(names)
    for document in documents:
        values = columns_of(document, segment, with_text=with_text)
        yield csv_line([_cell(values[name]) for name in names])


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
