"""Which URL needs what on its servers: `gossamer init-cluster`. Another kind of server is added by a line here.

The module of a backend is imported only if it is used: its client library is an extra of the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.ports.setup import SetupOptions
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import check_catalogs, check_feeds, complete_catalog, complete_store, scheme_of


class Purpose(Enum):
    """What a URL is for."""

    LEDGER = "ledger"
    CATALOG = "catalog"
    FEED = "feed"


class _Needs(Struct, frozen=True):
    """The function that creates something (see `gossamer.ports.setup.Setup`), its libraries and options."""

    function: str  # module:name
    libraries: tuple[str, ...]
    extra: str
    options: tuple[str, ...] = ()


_NEEDS: Mapping[tuple[Purpose, str], _Needs] = {
    (Purpose.CATALOG, "cassandra"): _Needs(
        "gossamer.backends.cassandra.setup:init", ("cassandra",), "cassandra", ("replication", "buckets")
    ),
    (Purpose.CATALOG, "mongodb"): _Needs("gossamer.backends.mongodb.setup:init", ("pymongo",), "mongodb"),
    (Purpose.CATALOG, "postgresql"): _Needs(
        "gossamer.backends.postgresql.setup:init_catalog", ("psycopg",), "postgresql"
    ),
    (Purpose.FEED, "kafka"): _Needs(
        "gossamer.backends.kafka_feed.setup:init", ("confluent_kafka",), "kafka", ("replication", "partitions")
    ),
    (Purpose.LEDGER, "kafka"): _Needs(
        "gossamer.backends.kafka.setup:init",
        ("confluent_kafka", "cassandra"),
        "kafka",
        ("replication", "partitions", "buckets"),
    ),
    (Purpose.LEDGER, "postgresql"): _Needs("gossamer.backends.postgresql.setup:init", ("psycopg",), "postgresql"),
    (Purpose.LEDGER, "redis"): _Needs("gossamer.backends.redis.setup:init", ("redis",), "redis"),
}
EXPECTED = (
    "expected redis://host:port/db/NAME, postgresql://host:port/database/NAME, "
    "kafka://broker:port,…/NAME?cassandra=host:port,…/keyspace, cassandra://host:port,…/keyspace, "
    "mongodb://host:port/database or kafka://broker:port,…/topic"
)


def init(url: str, purpose: Purpose | None, options: SetupOptions) -> Sequence[str]:
    """Create what a URL needs; return lines that say what was created and what was there."""
    scheme = scheme_of(url).replace("rediss", "redis")
    purpose = purpose or _likely_purpose(scheme, url)
    needs = _NEEDS.get((purpose, scheme))
    if needs is None:
        raise UsageError(f"no {purpose.value} has a URL like this; {EXPECTED}")
    for name in ("replication", "partitions", "buckets"):
        if getattr(options, name) is not None and name not in needs.options:
            raise UsageError(f"--{name} has no meaning for a {purpose.value} at {scheme}://")
    missing = [library for library in needs.libraries if find_spec(library) is None]
    if missing:
        raise UsageError(f"{scheme}:// needs the package {missing[0]}: {pip_install(needs.extra)}")
    module, _, name = needs.function.partition(":")
    function = cast(Callable[[str, SetupOptions], Sequence[str]], getattr(import_module(module), name))
    return function(_complete(url, purpose), options)


def _likely_purpose(scheme: str, url: str) -> Purpose:
    """Return what a URL is for, by its form. A schema in PostgreSQL may be either: then it is that of a ledger."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2].strip("/")
    if scheme == "kafka":
        return Purpose.LEDGER if "?cassandra=" in url or "&cassandra=" in url else Purpose.FEED
    if scheme in {"cassandra", "mongodb"} or (scheme == "postgresql" and "/" not in path):
        return Purpose.CATALOG
    return Purpose.LEDGER


def _complete(url: str, purpose: Purpose) -> str:
    """Return a URL with its password; raise UsageError if it is not one of its purpose. Ledgers check their own."""
    if purpose is Purpose.CATALOG:
        check_catalogs([url])
        return complete_catalog(url, os.environ)
    if purpose is Purpose.FEED:
        check_feeds([url], ["warc"])
        return complete_store(url, os.environ, "feed")
    return url
