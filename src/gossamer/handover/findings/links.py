"""The link graph: one line per outlink, as JSON, TSV or CSV.

In TSV backslash, tab and line ends are written as `\\\\`, `\\t`, `\\n` and `\\r`; in CSV cells are
quoted by RFC 4180. In both, a cell that a spreadsheet would treat as a formula is prefixed
with `'`: the texts come from the web.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from gossamer.handover.export.documents import PageDocument

HEADER = ("from", "to", "text", "rel", "nofollow")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TSV = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_encode = msgspec.json.Encoder().encode


class GraphLink(Struct, frozen=True, gc=False, rename={"from_url": "from", "to_url": "to"}):
    """An edge of the link graph."""

    from_url: str
    to_url: str
    text: str
    rel: str
    nofollow: bool

    def cells(self) -> list[str]:
        """Return the link as cells that are safe in a spreadsheet."""
        return safe_cells((self.from_url, self.to_url, self.text, self.rel, "yes" if self.nofollow else "no"))


def graph_links(documents: Iterable[PageDocument]) -> Iterator[GraphLink]:
    """Yield the links of documents."""
    for document in documents:
        for link in document.article.links:
            yield GraphLink(document.facts.url, link.url, link.text, link.rel, link.nofollow)


def link_lines(documents: Iterable[PageDocument], form: str) -> Iterator[bytes]:
    """Yield the links of documents as lines of `jsonl`, `tsv` or `csv`; the last two begin with a header."""
    links = graph_links(documents)
    if form == "jsonl":
        for link in links:
            yield _encode(link) + b"\n"
        return
    write = _tsv_line if form == "tsv" else csv_line
    yield write(list(HEADER))
    for link in links:
        yield write(link.cells())


def safe_cells(values: Iterable[str]) -> list[str]:
    """Return cells of which a spreadsheet treats none as a formula."""
    return [f"'{value}" if value.startswith(_FORMULA) else value for value in values]


def _tsv_line(cells: list[str]) -> bytes:
    return ("\t".join(cell.translate(_TSV) for cell in cells) + "\n").encode()


def csv_line(cells: list[str]) -> bytes:
    """Return cells as a line by RFC 4180."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()
