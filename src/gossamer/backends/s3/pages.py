"""An object per page: `raw/<first 2 of sha1>/<sha1 of the URL>.gz`. See `gossamer.ports.page_store.PageStore`.

An object is the decoded body, compressed by gzip; what else is known is in its metadata:

    url            percent-encoded if it is not ASCII; beyond `MAX_URL_CHARS` it is cut, and `url-cut` is there too
    fetched-at     ISO 8601, UTC
    content-hash   SHA-256 of the decoded body, hexadecimal
    size           of the decoded body, in bytes
    mime-type      as it was found

A page that is fetched again replaces the object. Equal pages compress to equal bytes, so repeating a call changes
nothing. The client library is not imported here.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from urllib.parse import quote

from gossamer.ports.object_store import ObjectStore
from gossamer.ports.page_store import PageCopy

MAX_URL_CHARS = 1500  # S3 allows 2 KB of metadata per object
_AT_ONCE = 16
_LEVEL = 6
_ASCII = "".join(map(chr, range(33, 127)))


class S3Pages:
    """The pages of a crawl, each in an object."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(_AT_ONCE, "pages")

    def put(self, pages: Sequence[PageCopy]) -> None:
        for _ in self._threads.map(self._put, pages):
            pass

    def _put(self, page: PageCopy) -> None:
        assert page.content is not None
        self._store.put(page_key(page.url), gzip.compress(page.content, _LEVEL, mtime=0), metadata_of(page))

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def page_key(url: str) -> str:
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    return f"raw/{name[:2]}/{name}.gz"


def quoted(text: str) -> str:
    """Return a text as ASCII: metadata are sent in a header."""
    return quote(text, safe=_ASCII)


def metadata_of(page: PageCopy) -> dict[str, str]:
    """Return what is stored with a page besides its body."""
    url = quoted(page.url)
    cut = {"url-cut": "true"} if len(url) > MAX_URL_CHARS else {}
    fetched_at = datetime.fromtimestamp(page.crawled_at, UTC).isoformat(timespec="milliseconds")
    return {
        "url": url[:MAX_URL_CHARS],
        "fetched-at": fetched_at,
        "content-hash": page.content_hash,
        "size": str(page.size),
        "mime-type": quoted(page.content_type)[:100],
        **cut,
    }
