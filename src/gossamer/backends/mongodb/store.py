"""Pages in two collections of a database, written in batches.

A batch costs two round trips, whatever its size: its bodies, then its metadata. Both are unordered inserts that wait
until a majority of the servers has them. What is there already is replaced only by what was fetched later. So a batch
can be repeated as often as necessary, and no page is visible before its body is.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

from pymongo import ASCENDING, DeleteMany, DeleteOne, ReplaceOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, PyMongoError

from gossamer.backends.mongodb.connect import (
    CHOOSE_S,
    CONNECT_S,
    Document,
    errors_at_the_start,
    errors_while_it_runs,
    name_of,
    open_database,
)
from gossamer.foundation import failpoints
from gossamer.model.errors import UsageError
from gossamer.ports.page_store import PageCopy, StoredBody, StoredVisit, visit_name

# The documents of a page: one in `metadata`, and its body in one or more in `content`.
#
#     metadata   _id, url, host, domain, title, content_hash, status, crawl_time, depth, size, links, content_type,
#                worker, node, duplicate_of
#     content    _id, page_id (the `_id` in metadata), part, parts, html_compressed, compression_ratio, crawl_time
#
# `_id` in metadata is the URL's id in hexadecimal and the number of the visit, as `1f…0c-1`: sorted as in the ledger. A
# body that is larger when compressed than a document may be is cut into parts; joined in their order they are one zlib
# stream.

ZLIB_LEVEL = 6
MAX_PART_BYTES = 15 << 20  # a document has at most 16 MiB


def part_id(page: str, part: int) -> str:
    """Return the id of a part of a page in `content`."""
    return f"{page}/{part:03d}"


def date_of(page: PageCopy) -> datetime:
    """Return when a page was fetched, as precisely as the database stores it."""
    return datetime.fromtimestamp(int(1000 * page.crawled_at) / 1000, UTC)


def metadata_document(page: PageCopy) -> Document:
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


METADATA = "metadata"
CONTENT = "content"
INDEXED = ("url", "host", "crawl_time", "status", "content_hash")
_THREADS = min(4, os.cpu_count() or 1)  # zlib takes most of a page's time, and lets other threads run
_KNOWN = 11000  # error code of the server: there is a document with this id
_Change: TypeAlias = DeleteOne | ReplaceOne[Document]


class MongoPages:
    """See `gossamer.ports.page_store.PageInventory`."""

    def __init__(self, url: str, *, choose_s: float = CHOOSE_S, max_part_bytes: int = MAX_PART_BYTES) -> None:
        self.name = name_of(url)
        self._errors = errors_while_it_runs(self.name)
        self._max_part_bytes = max_part_bytes
        self._compressing = ThreadPoolExecutor(_THREADS, "compress")
        self._database = open_database(url, choose_s)
        self.metadata: Collection[Document] = self._database[METADATA]
        self.content: Collection[Document] = self._database[CONTENT]

    def check(self, *, is_new: bool = False) -> None:
        """Create the indexes; raise UsageError if the database cannot be written to.

        Pages of a new crawl would replace those of another: there must be none.
        """
        with errors_at_the_start(f"store = {self.name}"):
            for field in INDEXED:
                self.metadata.create_index(field)
            self.content.create_index("page_id")
            for collection in (self.metadata, self.content):  # with the rights that a crawl needs, and without effect
                collection.update_one({"_id": ""}, {"$set": {"checked": True}})
                collection.delete_many({"_id": ""})
            has_pages = is_new and self.metadata.find_one({}, {"_id": True}) is not None
        if has_pages:
            raise UsageError(
                f"store = {self.name}: has pages of another crawl, which a new one would replace; expected an empty "
                "database, or the folder of that crawl (gossamer resume DIR)"
            )

    def put(self, pages: Sequence[PageCopy]) -> None:
        """Store pages, bodies first."""
        compressed = self._compressing.map(lambda page: content_documents(page, self._max_part_bytes), pages)
        bodies = [document for documents in compressed for document in documents]
        self._write(self.content, bodies)
        failpoints.reach("in_store")
        replaced = self._write(self.metadata, [metadata_document(page) for page in pages])
        self._remove_bodies_of_copies(replaced)

    def visits(self) -> Iterator[StoredVisit]:
        fields = {"url": True, "content_hash": True, "duplicate_of": True}
        for found in self._sorted(self.metadata, fields):
            is_copy = found.get("duplicate_of") is not None
            yield StoredVisit(found["_id"], found.get("url", ""), found.get("content_hash", ""), is_copy)

    def bodies(self) -> Iterator[StoredBody]:
        parts = self._sorted(self.content, {"page_id": True, "part": True, "parts": True})
        for name, group in groupby(parts, key=lambda part: str(part["page_id"])):
            numbers = [(part["part"], part["parts"]) for part in group]
            yield StoredBody(name, numbers == [(number, numbers[0][1]) for number in range(numbers[0][1])])

    def first_visits(self, content_hashes: Sequence[str]) -> set[str]:
        wanted = {"content_hash": {"$in": list(content_hashes)}, "duplicate_of": None}
        with self._errors:
            return {found["content_hash"] for found in self.metadata.find(wanted, {"content_hash": True})}

    def remove_bodies(self, names: Sequence[str]) -> None:
        with self._errors:
            self.content.delete_many({"page_id": {"$in": list(names)}})

    def _sorted(self, collection: Collection[Document], fields: Mapping[str, bool]) -> Iterator[Document]:
        with self._errors:
            yield from collection.find({}, fields).sort("_id", ASCENDING)

    def close(self) -> None:
        self._compressing.shutdown()
        self._database.client.close()

    def _write(self, collection: Collection[Document], documents: Sequence[Document]) -> Sequence[Document]:
        """Write documents, and try once more if that fails; return those that were to replace others."""
        if not documents:
            return ()
        try:
            return _insert(collection, documents)
        except PyMongoError:
            with self._errors:
                return _insert(collection, documents)

    def _remove_bodies_of_copies(self, replaced: Sequence[Document]) -> None:
        """Remove the bodies of pages that were the first with their content, and are copies now."""
        removals = [
            DeleteMany({"page_id": document["_id"], "crawl_time": {"$lt": document["crawl_time"]}})
            for document in replaced
            if document["duplicate_of"] is not None
        ]
        if removals:
            with self._errors:
                self.content.bulk_write(removals, ordered=False)


def check(url: str, *, is_new: bool) -> None:
    """Raise UsageError if pages of a crawl cannot be stored there."""
    with closing(MongoPages(url, choose_s=CONNECT_S)) as store:
        store.check(is_new=is_new)


def open_store(url: str, *, is_patient: bool) -> MongoPages:
    """Return the pages of a database; a caller who does not come back is patient."""
    return MongoPages(url, choose_s=CONNECT_S if is_patient else CHOOSE_S)


def _insert(collection: Collection[Document], documents: Sequence[Document]) -> Sequence[Document]:
    """Insert documents; of those that are there already, replace the ones that were fetched earlier: return these."""
    try:
        collection.insert_many(documents, ordered=False)
        return ()
    except BulkWriteError as error:
        errors = error.details["writeErrors"]
        if error.details["writeConcernErrors"] or any(each["code"] != _KNOWN for each in errors):
            raise
        there = [documents[each["index"]] for each in errors]
        known = {each["_id"]: each for each in _versions(collection, there)}
        if len(known) < len(there):
            raise  # somebody has just removed some of them
        later = [each for each in there if known[each["_id"]]["crawl_time"] < each["crawl_time"]]
        changes = [change for document in later for change in _replacing(document, known[document["_id"]])]
        if changes:
            collection.bulk_write(changes, ordered=False)
        return later


def _versions(collection: Collection[Document], documents: Sequence[Document]) -> Iterable[Document]:
    ids = [document["_id"] for document in documents]
    return collection.find({"_id": {"$in": ids}}, {"crawl_time": True, "parts": True})


def _replacing(document: Document, known: Document) -> list[_Change]:
    """Return what replaces a document that was fetched earlier, and the parts of it that the new one does not have."""
    earlier = {"$lt": document["crawl_time"]}  # still, when the server does it
    changes: list[_Change] = [ReplaceOne({"_id": document["_id"], "crawl_time": earlier}, document)]
    for part in range(document.get("parts", 0), known.get("parts", 0)):
        changes.append(DeleteOne({"_id": part_id(document["page_id"], part), "crawl_time": earlier}))
    return changes
