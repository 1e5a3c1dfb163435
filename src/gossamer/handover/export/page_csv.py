"""The pages as CSV: the columns of Parquet, with a header, quoted by RFC 4180.

What is not known is empty, a time is UTC in ISO 8601, metadata are JSON, the URLs of a list are separated by blanks.
Texts that a spreadsheet would treat as formulas are prefixed with `'`: they come from the web.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from gossamer.handover.export.columns import COMMON_CRAWL, OURS, TEXT, columns_of
from gossamer.handover.export.documents import PageDocument
from gossamer.handover.findings.links import csv_line, safe_cells


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
