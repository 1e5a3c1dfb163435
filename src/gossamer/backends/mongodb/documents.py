"""The documents of a page: one in `metadata`, and its body in one or more in `content`.

    metadata   _id, url, host, domain, title, content_hash, status, crawl_time, depth, size, links, content_type,
               worker, node, duplicate_of
    content    _id, page_id (the `_id` in metadata), part, parts, html_compressed, compression_ratio, crawl_time

`_id` in metadata is the URL's id in hexadecimal and the number of the visit, as `1f…0c-1`: sorted as in the ledger. A
body that is larger when compressed than a document may be is cut into parts; joined in their order they are one zlib
stream.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime

from gossamer.backends.mongodb.connect import Document
from gossamer.ports.page_store import PageCopy, visit_name

ZLIB_LEVEL = 6
MAX_PART_BYTES = 15 << 20  # a document has at most 16 MiB


def part_id(page: str, part: int) -> str:
    """Return the id of a part of a page in `content`."""
    return f"{page}/{part:03d}"


def date_of(page: PageCopy) -> datetime:
    """Return when a page was fetched, as precisely as the database stores it."""
    return datetime.fromtimestamp(int(1000 * page.crawled_at) / 1000, UTC)


def metadata_document(page: PageCopy) -> Document:
    """Return the document in `metadata`."""
    return {
        "_id": visit_name(page.url_id, page.visit),
        "url": page.url,
        "host": page.host,
        "domain": page.domain,
        "title": page.title,
        "content_hash": page.content_hash,
        "status": page.status,
        "crawl_time": date_of(page),
        "depth": page.depth,
        "size": page.size,
        "links": page.links,
        "content_type": page.content_type,
        "worker": page.worker,
        "node": page.node,
        "duplicate_of": page.duplicate_of.hex() or None,
    }


def content_documents(page: PageCopy, max_part_bytes: int = MAX_PART_BYTES) -> list[Document]:
    """Return the documents in `content`: none if the body is stored with another page."""
    if page.content is None:
        return []
    data = zlib.compress(page.content, ZLIB_LEVEL)
    ratio = round(len(data) / len(page.content), 4) if page.content else 1.0
    parts = [data[at : at + max_part_bytes] for at in range(0, len(data), max_part_bytes)]
    name = visit_name(page.url_id, page.visit)
    date = date_of(page)
    return [
        {
            "_id": part_id(name, number),
            "page_id": name,
            "part": number,
            "parts": len(parts),
            "html_compressed": part,
            "compression_ratio": ratio,
            "crawl_time": date,
        }
        for number, part in enumerate(parts)
    ]
