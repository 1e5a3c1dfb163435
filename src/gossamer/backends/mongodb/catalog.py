"""A catalog of what a crawl has fetched, as collections of a database: `mongodb://host:port/database`.

    pages          _id: URL id in hexadecimal and the number of the visit, as in `metadata`; one per visit
    dead_letters   _id: URL id in hexadecimal
    hosts          _id: the name
    catalog        one document: format, crawl, created_at

A document that is there is replaced under a condition: not by an earlier commit of another node (`committed_at`). A
call that fails has stored some of its documents, and is repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct
from pymongo import ASCENDING, ReplaceOne
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, PyMongoError

from gossamer.backends.mongodb.connect import (
    CONNECT_S,
    Document,
    errors_at_the_start,
    errors_while_it_runs,
    name_of,
    open_database,
)
from gossamer.foundation import failpoints
from gossamer.model.errors import UsageError
from gossamer.model.records import UrlId
from gossamer.ports.catalog_store import (
    FORMAT,
    CatalogChanges,
    CatalogHost,
    CatalogPage,
    CatalogVisit,
    DeadLetter,
    HostCounts,
    Kind,
    VisitKey,
    columns_of,
)
from gossamer.ports.page_store import visit_name

_ROWS = ("pages", "dead_letters", "hosts")
_INDEXED: Mapping[str, Sequence[str]] = {
    "pages": ("url", "host", "fetched_at", "status", "content_hash"),
    "dead_letters": ("host", "outcome"),
    "hosts": ("domain",),
}
_TIMES = frozenset(
    column.name
    for row in (CatalogPage, DeadLetter, CatalogHost)
    for column in columns_of(row)
    if column.kind is Kind.TIME
)
_ANOTHER = "name another database, as mongodb://host:port/DATABASE"
_AT_ONCE = 250  # documents in one call, each of which has a limit
_KNOWN = 11000  # error code of the server: there is a document with this id
_Done = TypeVar("_Done")


class MongoCatalog:
    """See `gossamer.ports.catalog_store.CatalogInventory`."""

    def __init__(self, url: str) -> None:
        self.name = name_of(url)
        self._label = f"catalog {self.name}"
        self._at_the_start = errors_at_the_start(self._label)
        self._while_it_runs = errors_while_it_runs(self._label)
        self._database = open_database(url, CONNECT_S, self._label)
        self._crawl: str | None = None

    # -- at the start -----------------------------------------------------------------------------

    def is_there(self) -> bool:
        """Return whether the catalog was created; raise UsageError if that cannot be found out."""
        with self._at_the_start:
            return self._has_catalog()

    def check(self, crawl: str) -> None:
        with self._at_the_start:
            is_new = not self._has_catalog()
            for collection, fields in _INDEXED.items():
                for field in fields:
                    self._database[collection].create_index(field)
            self._database["pages"].create_index([("url_id", ASCENDING), ("visit", ASCENDING)])
            if is_new:
                first = {"format": FORMAT, "crawl": crawl, "created_at": _date(time.time())}
                self._database["catalog"].update_one({"_id": "catalog"}, {"$setOnInsert": first}, upsert=True)
            elif crawl:  # what init-cluster has created has no name yet
                self._database["catalog"].update_one({"_id": "catalog", "crawl": ""}, {"$set": {"crawl": crawl}})
            for name in _ROWS:  # with the rights that a crawl needs, and without effect
                self._database[name].update_one({"_id": ""}, {"$set": {"node": ""}})
                self._database[name].delete_many({"_id": ""})

    def check_empty(self) -> None:
        """Raise UsageError if there are rows: those of another crawl would be replaced."""
        with self._at_the_start:
            for name in _ROWS:
                if self._database[name].find_one({}, {"_id": True}) is not None:
                    raise UsageError(
                        f"{self._label}: its database has the catalog of another crawl, which a new one would replace; "
                        f"{_ANOTHER}"
                    )

    def _has_catalog(self) -> bool:
        found = self._database["catalog"].find_one({"_id": "catalog"})
        if found is None:
            for name in _ROWS:
                other = self._database[name].find_one({}, {"_id": True})
                if other is not None:
                    raise UsageError(
                        f"{self._label}: its database has a collection {name} that is not a catalog's; {_ANOTHER}"
                    )
            return False
        if found.get("format") != FORMAT:
            raise UsageError(
                f"{self._label}: has a catalog of format {found.get('format')}, this version writes format {FORMAT}; "
                f"{_ANOTHER}"
            )
        return True

    # -- rows -------------------------------------------------------------------------------------

    def put(self, changes: CatalogChanges) -> None:
        """Store rows; if that fails, try once more."""
        self._repeated(lambda: self._put(changes))

    def _put(self, changes: CatalogChanges) -> None:
        at = changes.committed_at
        self._replace("pages", [_page(page, self._crawl_name()) for page in changes.pages], at)
        failpoints.reach("in_catalog")
        if changes.not_dead:
            later = {"$or": [{"node": ""}, {"committed_at": {"$lte": _date(at)}}]}
            ids = [url_id.hex() for url_id in changes.not_dead]
            self._database["dead_letters"].delete_many({"_id": {"$in": ids}, **later})
        self._replace("dead_letters", [_letter(letter) for letter in changes.dead_letters], at)
        self._replace("hosts", [_host(host) for host in changes.hosts], at)

    def _replace(self, name: str, documents: Sequence[Document], committed_at: float) -> None:
        """Insert documents, and replace those that are there, unless a later commit has written them."""
        date = _date(committed_at)
        for start in range(0, len(documents), _AT_ONCE):
            some = [{**document, "committed_at": date} for document in documents[start : start + _AT_ONCE]]
            known = _inserted(self._database[name], some)
            earlier = {"committed_at": {"$lte": date}}
            changes = [
                ReplaceOne({"_id": document["_id"], **(earlier if document["node"] else {})}, document)
                for document in known
            ]
            if changes:
                self._database[name].bulk_write(changes, ordered=False)

    def remove(self, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]) -> None:
        gone: Mapping[str, list[str]] = {
            "pages": [visit_name(key.url_id, key.visit) for key in visits],
            "dead_letters": [url_id.hex() for url_id in dead_letters],
            "hosts": list(hosts),
        }
        for name, ids in gone.items():
            if ids:
                self._repeated(lambda: self._database[name].delete_many({"_id": {"$in": ids}}))  # noqa: B023

    def _crawl_name(self) -> str:
        if self._crawl is None:
            found = self._database["catalog"].find_one({"_id": "catalog"})
            self._crawl = "" if found is None else str(found["crawl"])
        return self._crawl

    # -- lists ------------------------------------------------------------------------------------

    def visits(self) -> Iterator[CatalogVisit]:
        fields = ("url_id", "visit", "url", "content_hash", "archive_file", "archive_offset")
        for found in self._sorted("pages", fields, "url_id", "visit"):
            yield CatalogVisit(bytes.fromhex(found["url_id"]), *(found[field] for field in fields[1:]))

    def dead_letters(self) -> Iterator[tuple[UrlId, str]]:
        for found in self._sorted("dead_letters", ("outcome",), "_id"):
            yield bytes.fromhex(found["_id"]), found["outcome"]

    def hosts(self, names: Sequence[str]) -> dict[str, HostCounts]:
        wanted = {"_id": {"$in": list(names)}}
        fields = ("pages", "fetches", "errors")
        rows = self._repeated(lambda: list(self._database["hosts"].find(wanted, dict.fromkeys(fields, True))))
        return {row["_id"]: HostCounts(*(row[field] for field in fields)) for row in rows}

    def host_names(self) -> Iterator[str]:
        return (str(found["_id"]) for found in self._sorted("hosts", ("_id",), "_id"))

    def _sorted(self, name: str, fields: Sequence[str], *keys: str) -> Iterator[Document]:
        with self._while_it_runs:
            order = [(key, ASCENDING) for key in keys]
            yield from self._database[name].find({}, dict.fromkeys(fields, True)).sort(order)

    def close(self) -> None:
        self._database.client.close()

    def _repeated(self, act: Callable[[], _Done]) -> _Done:
        """Do something; if the server cannot be used, try once more: connections may be stale."""
        try:
            return act()
        except PyMongoError:
            with self._while_it_runs:
                return act()


def _inserted(collection: Collection[Document], documents: Sequence[Document]) -> Sequence[Document]:
    """Insert documents; return those whose ids are there already."""
    try:
        collection.insert_many(documents, ordered=False)
        return ()
    except BulkWriteError as error:
        failures = error.details["writeErrors"]
        if error.details["writeConcernErrors"] or any(each["code"] != _KNOWN for each in failures):
            raise
        return [documents[each["index"]] for each in failures]


def _date(at: float) -> datetime:
    """Return a time, as precisely as the database stores it."""
    return datetime.fromtimestamp(int(1000 * at) / 1000, UTC)


def _document(row: Struct, name: str, *without: str) -> Document:
    document: Document = {"_id": name}
    for field in row.__struct_fields__:
        if field not in without:
            document[field] = _value(field, getattr(row, field))
    return document


def _value(field: str, value: Any) -> Any:  # noqa: ANN401 - of any field
    if field in _TIMES:
        return _date(value) if value else None
    return value.hex() if isinstance(value, bytes) else value


def _page(page: CatalogPage, crawl: str) -> Document:
    return {**_document(page, visit_name(page.url_id, page.visit)), "crawl": crawl}


def _letter(letter: DeadLetter) -> Document:
    return _document(letter, letter.url_id.hex(), "url_id")


def _host(host: CatalogHost) -> Document:
    return _document(host, host.name, "name")
