"""The signatures of pages that repeat no other, on disk, and an index of them in memory.

A signature is appended under the page's number, after its URL's id, in the same commit as
everything else that follows from the page; so after a crash the index, rebuilt from the
table when it is first used, is exactly that of the committed pages. A page takes 150 to 250
bytes in memory and 590 on disk. A million pages are indexed again in three to four seconds.
With a limit on the pages in memory, pages are compared with the newest only.

The meta value `signatures` contains the edition that made them, and the number of its first
page: signatures of an earlier edition stay where they are and are never compared.
"""

from __future__ import annotations

from gossamer.backends.local.store import Store
from gossamer.core.dedup.index import NearIndex, NewestIndex, index_of
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError
from gossamer.model.records import Similar, UrlId

TABLE = "signatures"
META_KEY = b"signatures"
_ID_BYTES = 16
_SLICE = 2000


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")


def signatures_from(row: bytes | None) -> tuple[str, int]:
    """Return the edition of the signatures that are compared, and the number of the first of them."""
    edition, _, first = (row or b"").decode().rpartition(" ")
    return edition, int(first or 0)


def edition_row(edition: str, first: int) -> bytes:
    """Return the row of which `signatures_from` returns these."""
    return f"{edition} {first}".encode()


class SignatureTable:
    """Signatures by page number."""

    def __init__(self, store: Store, max_pages: int | None = None) -> None:
        self._store = store
        self._max_pages = max_pages
        self._newest: NewestIndex | None = None  # the index, if there is a limit
        self._left_out = 0  # first pages that are not in the index
        self._index: NearIndex | None = None
        self._next = 0

    def use(self, edition: str) -> None:
        """Compare by this edition from now on."""
        last = self._store.last(TABLE, b"", 1)
        self._next = int.from_bytes(last[0][0], "big") + 1 if last else 0
        known, number = signatures_from(self._store.get("meta", META_KEY))
        if known != edition:
            number = self._next
            self._store.put("meta", META_KEY, edition_row(edition, number))
        self._index = index_of(edition)
        if self._max_pages is not None:
            self._index = self._newest = NewestIndex(lambda: index_of(edition), self._max_pages)
            self._left_out = max(0, self._next - number - self._max_pages)
            number += self._left_out
        self._fill(self._index, number)

    def _fill(self, index: NearIndex, number: int) -> None:
        stride = _ID_BYTES + index.signature_bytes
        while entries := self._store.first(TABLE, b"", _key(number - 1) if number else b"", _SLICE):
            if any(len(value) != stride for _, value in entries):
                raise CorruptFolderError(f"a signature in the ledger is not {stride} bytes long{HOW_TO_REBUILD}")
            index.add_many(number, b"".join([value for _, value in entries]), stride)
            number += len(entries)

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page that a signature repeats."""
        assert self._index is not None, "call use() first"
        match = self._index.nearest(signature, lambda number: self._value(number)[_ID_BYTES:])
        return Similar(self._value(match.number)[:_ID_BYTES], match.similarity) if match is not None else None

    def _value(self, number: int) -> bytes:
        value = self._store.get(TABLE, _key(number))
        assert value is not None, f"signature {number} was stored"
        return value

    def put(self, url_id: UrlId, signature: bytes) -> None:
        """Store a page's signature."""
        assert self._index is not None, "call use() first"
        self._store.put(TABLE, _key(self._next), url_id + signature)
        self._index.add(self._next, signature)
        self._next += 1

    @property
    def has_forgotten(self) -> bool:
        """Return whether there are stored pages that are no longer compared."""
        return bool(self._left_out) or (self._newest is not None and self._newest.has_forgotten)

    def forget_older(self) -> None:
        """Compare with fewer pages: memory is short."""
        if self._newest is not None:
            self._newest.forget_older()
