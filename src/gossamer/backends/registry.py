"""Which backend serves a URL, and which client library does it need? A backend is added by an entry in `BACKENDS`.

Modules of backends are imported only when they are used: client libraries are extras of the package. The form of URLs
is in `settings/stores`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import check_catalogs, check_feeds, complete_catalog, complete_store, scheme_of

if TYPE_CHECKING:
    from gossamer.ports.catalog_store import CheckedCatalog
    from gossamer.ports.document_topic import DocumentTopic
    from gossamer.ports.object_store import ObjectStore
    from gossamer.ports.page_store import PageInventory
    from gossamer.ports.setup import SetupOptions
    from gossamer.ports.shared_ledger import SharedLedger


class Purpose(Enum):
    """What a URL is for."""

    LEDGER = "ledger"  # `--ledger`
    CATALOG = "catalog"  # `--catalog`
    FEED = "feed"  # `--feed`
    PAGES = "pages"  # `--store`: pages from the archive, before the commit (`ports/page_store`)
    OBJECTS = "objects"  # `--store`: the archive's files (`ports/object_store`)


class Backend(Struct, frozen=True):
    """What serves the URLs of a scheme for one purpose. Functions are named as `folder.module:function`."""

    clients: tuple[str, ...]  # packages that are imported
    extra: str  # of this package, which has them
    opens: str
    checks: str = ""  # of stores: raises UsageError if pages cannot be stored there, or replace those of another crawl
    creates: str = ""  # what it needs on its servers: `gossamer.ports.setup.Setup`
    options: tuple[str, ...] = ()  # fields of SetupOptions


BACKENDS: Mapping[tuple[Purpose, str], Backend] = {
    (Purpose.LEDGER, "redis"): Backend(("redis",), "redis", "redis.connect:connect", creates="redis.setup:init"),
    (Purpose.LEDGER, "postgresql"): Backend(
        ("psycopg",), "postgresql", "postgresql.connect:connect", creates="postgresql.setup:init"
    ),
    (Purpose.LEDGER, "kafka"): Backend(
        ("confluent_kafka", "cassandra"),
        "kafka",
        "kafka.connect:connect",
        creates="kafka.setup:init",
        options=("replication", "partitions", "buckets"),
    ),
    (Purpose.CATALOG, "cassandra"): Backend(
        ("cassandra",),
        "cassandra",
        "cassandra.catalog:CassandraCatalog",
        creates="cassandra.setup:init",
        options=("replication", "buckets"),
    ),
    (Purpose.CATALOG, "mongodb"): Backend(
        ("pymongo",), "mongodb", "mongodb.catalog:MongoCatalog", creates="mongodb.setup:init"
    ),
    (Purpose.CATALOG, "postgresql"): Backend(
        ("psycopg",), "postgresql", "postgresql.catalog:PostgresCatalog", creates="postgresql.setup:init_catalog"
    ),
    (Purpose.FEED, "kafka"): Backend(
        ("confluent_kafka",),
        "kafka",
        "kafka_feed.topic:KafkaTopic",
        creates="kafka_feed.setup:init",
        options=("replication", "partitions"),
    ),
    (Purpose.PAGES, "mongodb"): Backend(
        ("pymongo",), "mongodb", "mongodb.store:open_store", checks="mongodb.store:check"
    ),
    (Purpose.OBJECTS, "s3"): Backend(("boto3",), "s3", "s3.store:S3Store", checks="s3.store:check"),
}
CREATED = [purpose for purpose in Purpose if any(of is purpose and each.creates for (of, _), each in BACKENDS.items())]
_EXPECTED = (
    "expected redis://host:port/db/NAME, postgresql://host:port/database/NAME, "
    "kafka://broker:port,…/NAME?cassandra=host:port,…/keyspace, cassandra://host:port,…/keyspace, "
    "mongodb://host:port/database or kafka://broker:port,…/topic"
)


def _load(backend: Backend, scheme: str, function: str) -> Callable[..., Any]:
    """Return a function of a backend; raise UsageError if a client library is not installed."""
    for client in backend.clients:
        if find_spec(client) is None:
            raise UsageError(f"{scheme}:// needs the package {client}: {pip_install(backend.extra)}")
    module, _, name = function.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(f"gossamer.backends.{module}"), name)
    return loaded


def _open(purpose: Purpose, url: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - the callers say
    scheme = scheme_of(url)
    backend = BACKENDS[purpose, scheme]
    return _load(backend, scheme, backend.opens)(url, *arguments, **options)


# -- ledgers --------------------------------------------------------------------------------------


def open_shared(url: str, warn: Callable[[str], None] = lambda _: None) -> SharedLedger:
    """Open the ledger that nodes share, by its URL; the caller closes it. A node warns of what may go wrong."""
    scheme = url.partition(":")[0]
    backend = BACKENDS.get((Purpose.LEDGER, scheme)) or BACKENDS[Purpose.LEDGER, "redis"]  # or rediss; it says if not
    ledger: SharedLedger = _load(backend, scheme, backend.opens)(url, warn)
    return ledger


# -- stores ---------------------------------------------------------------------------------------


def page_store_in(stores: Sequence[str]) -> str:
    """Return the page store among some stores; empty if there is none."""
    return next((store for store in stores if (Purpose.PAGES, scheme_of(store)) in BACKENDS), "")


def open_page_store(store: str, *, is_patient: bool) -> PageInventory:
    """Open a page store. A caller who does not try again is patient: it waits longer for a server."""
    pages: PageInventory = _open(Purpose.PAGES, complete_store(store, os.environ), is_patient=is_patient)
    return pages


def object_store_in(stores: Sequence[str]) -> str:
    """Return the store among several that gets the archive's files; empty if there is none."""
    return next((store for store in stores if (Purpose.OBJECTS, scheme_of(store)) in BACKENDS), "")


def open_objects(store: str) -> ObjectStore:
    """Open a store that gets the archive's files."""
    objects: ObjectStore = _open(Purpose.OBJECTS, store)
    return objects


def check_url_stores(stores: Sequence[str], *, is_new: bool) -> None:
    """Raise UsageError if one of the stores with a URL cannot be used now. Before anything is started.

    A page store of a new crawl must have no pages: those of another crawl would be replaced.
    """
    for store in stores:
        for (_, scheme), backend in BACKENDS.items():
            if backend.checks and scheme == scheme_of(store):
                _load(backend, scheme, backend.checks)(complete_store(store, os.environ), is_new=is_new)


# -- catalogs -------------------------------------------------------------------------------------


def open_catalog(url: str) -> CheckedCatalog:
    """Return the catalog behind a URL. Nothing is sent before the first call."""
    catalog: CheckedCatalog = _open(Purpose.CATALOG, complete_catalog(url, os.environ))
    return catalog


def check_reachable_catalogs(urls: Sequence[str], crawl: str, *, is_new: bool, is_node: bool) -> None:
    """Raise UsageError if one of the catalogs cannot be used now. Before anything is started.

    The catalog of a new crawl must be empty: rows of another crawl would be replaced. That of a crawl which continues
    must be there, or else it would lack what was fetched before; nodes cannot know whether they are the first.
    """
    for url in urls:
        with closing(open_catalog(url)) as catalog:
            if not is_new and not is_node and not catalog.is_there():
                raise UsageError(
                    f"catalog {catalog.name}: its tables are gone; 'gossamer verify DIR --mend' creates and fills them"
                )
            catalog.check(crawl)
            if is_new:
                catalog.check_empty()


# -- feeds ----------------------------------------------------------------------------------------


def open_topic(url: str, option: str = "feed") -> DocumentTopic:
    """Return the topic behind a URL. Nothing is sent before the first call."""
    topic: DocumentTopic = _open(Purpose.FEED, complete_store(url, os.environ, option))
    return topic


def check_topics(urls: Sequence[str]) -> None:
    """Raise UsageError if one of the topics cannot be used now. Before anything is started."""
    for url in urls:
        with closing(open_topic(url)) as topic:
            topic.check()


# -- what is needed on servers --------------------------------------------------------------------


def create(url: str, purpose: Purpose | None, options: SetupOptions) -> Sequence[str]:
    """Create what a URL needs; return lines that say what was created and what was there."""
    scheme = scheme_of(url).replace("rediss", "redis")
    purpose = purpose or _likely_purpose(scheme, url)
    backend = BACKENDS.get((purpose, scheme))
    if backend is None:
        raise UsageError(f"no {purpose.value} has a URL like this; {_EXPECTED}")
    for name in options.__struct_fields__:
        if getattr(options, name) is not None and name not in backend.options:
            raise UsageError(f"--{name} has no meaning for a {purpose.value} at {scheme}://")
    function = _load(backend, scheme, backend.creates)
    if purpose is Purpose.CATALOG:
        check_catalogs([url])
        url = complete_catalog(url, os.environ)
    elif purpose is Purpose.FEED:
        check_feeds([url], ["warc"])
        url = complete_store(url, os.environ, "feed")
    lines: Sequence[str] = function(url, options)
    return lines


def _likely_purpose(scheme: str, url: str) -> Purpose:
    """Return what a URL is for, by its form. A schema in PostgreSQL may be either: then it is that of a ledger."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2].strip("/")
    if scheme == "kafka":
        return Purpose.LEDGER if "?cassandra=" in url or "&cassandra=" in url else Purpose.FEED
    if scheme in {"cassandra", "mongodb"} or (scheme == "postgresql" and "/" not in path):
        return Purpose.CATALOG
    return Purpose.LEDGER
