"""A parser for CSV: the header is the title, cells are the text, and cells that are URLs are links."""

from __future__ import annotations

import csv

from gossamer.plugins import ParsedContent


class CsvParser:
    """See `gossamer.plugins.ContentParser`."""

    content_types = ("text/csv",)

    def parse(self, content: bytes, url: str, content_type: str) -> ParsedContent:
        """Return the cells of a file."""
        rows = list(csv.reader(content.decode("utf-8-sig", "replace").splitlines()))
        cells = [cell.strip() for row in rows for cell in row]
        return ParsedContent(
            title=", ".join(rows[0]) if rows else "",
            text="\n".join(" ".join(row) for row in rows),
            links=[cell for cell in cells if cell.startswith(("http://", "https://", "/"))],
        )
