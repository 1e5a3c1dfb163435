"""What values of `--store`, `--catalog` and `--feed` mean: a name (`warc`, `files`), or a URL on other machines.

    s3://bucket/prefix                             credentials come from the environment only
    mongodb://[user[:password]@]host:port,…/database[?options]                  (also a catalog)
    cassandra://[user[:password]@]host:port,…/keyspace[?dc=NAME]                (a catalog)
    postgresql://[user[:password]@]host:port,…/database[/SCHEMA][?options]      (a catalog)
    kafka://[user[:password]@]broker:port,…/topic[?options]                     (a feed)

A password is never written anywhere: `masked_store` replaces it by `***` in crawl.toml, in messages and in what nodes
share. `complete_store` and `complete_catalog` put it back from the environment (`PASSWORD_VARIABLES`)
when a crawl continues; PostgreSQL's client looks for it itself (PGPASSWORD, `~/.pgpass`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from gossamer.model.errors import UsageError

NAMES = ("warc", "files")
S3 = "s3"
MONGODB = "mongodb"
POSTGRESQL = "postgresql"
CASSANDRA = "cassandra"
KAFKA = "kafka"
DEFAULT_SCHEMA = "gossamer_catalog"
MASK = "***"
PASSWORD_VARIABLES: Mapping[str, str] = {
    CASSANDRA: "GOSSAMER_CASSANDRA_PASSWORD",
    KAFKA: "GOSSAMER_KAFKA_PASSWORD",
    MONGODB: "GOSSAMER_MONGODB_PASSWORD",
}
_EXPECTED = {S3: "s3://bucket/prefix", MONGODB: "mongodb://host:port/database"}
_ALL_EXPECTED = f"{', '.join(NAMES)}, {' or '.join(_EXPECTED.values())}"
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_PREFIX = r"[A-Za-z0-9!_.*'()=/-]*"
_UNSAFE_PART = r"//|/\.{1,2}(?:/|$)"
_HOST = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_DATABASE = r"[A-Za-z0-9_-]{1,63}"
_SCHEMA = r"(?!pg_|information_schema$)[A-Za-z0-9._-]{1,63}"
_KEYSPACE = r"[a-z][a-z0-9_]{0,47}"
_CATALOG_EXPECTED = {
    CASSANDRA: "expected cassandra://host:port,…/keyspace",
    MONGODB: "expected mongodb://host:port/database",
    POSTGRESQL: "expected postgresql://host:port/database or postgresql://host:port/database/SCHEMA",
}
_ANY_CATALOG_EXPECTED = (
    "expected postgresql://host:port/database, cassandra://host:port/keyspace or mongodb://host:port/database"
)
_TOPIC = r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"
_USER_INFO = r"(?<=://)([^\s'\":@]*):[^\s'\"]*@"  # up to the last @, should the password have more


def scheme_of(store: str) -> str:
    """Return the scheme of a store's URL; empty for a name."""
    scheme, found, _ = store.partition("://")
    return scheme if found else ""


def has_url_stores(stores: Sequence[str]) -> bool:
    """Return whether pages leave this machine."""
    return any(scheme_of(store) for store in stores)


def has_archive(stores: Sequence[str]) -> bool:
    """Return whether pages are stored in WARC files: what goes to a store with a URL comes from them."""
    return any(store == "warc" or scheme_of(store) for store in stores)


def masked_store(text: str) -> str:
    """Return a store, or a text with its URL, without passwords."""
    return re.sub(_USER_INFO, rf"\1:{MASK}@", text)


def check_stores(stores: Sequence[str]) -> None:
    """Refuse a value that is not a store, and two stores of one kind."""
    for store in stores:
        scheme = scheme_of(store)
        if scheme == S3:
            _check_s3(store)
        elif scheme == MONGODB:
            _check_mongodb(store)
        elif store not in NAMES:
            raise UsageError(f"store = {masked_store(store)!r}: unknown store; expected {_ALL_EXPECTED}")
    kinds = Counter(scheme_of(store) or store for store in dict.fromkeys(stores))
    for kind, times in kinds.items():
        if times > 1:
            raise UsageError(f"store: {times} stores of the kind {kind}://; expected one of each kind")


def _check_s3(store: str) -> None:
    bucket, _, prefix = store.removeprefix("s3://").partition("/")
    if "@" in store:
        raise _refusal(store, "credentials in the URL; they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if not re.fullmatch(_BUCKET, bucket):
        raise _refusal(store, "not the name of a bucket (3 to 63 lower-case letters, digits, dots and hyphens)")
    if not re.fullmatch(_PREFIX, prefix) or re.search(_UNSAFE_PART, f"/{prefix}"):
        raise _refusal(store, "a prefix has letters, digits and !_.*'()=- between single slashes")


def _check_mongodb(store: str) -> None:
    path, fault = _path_and_fault(store)
    if fault:
        raise _refusal(store, fault)
    if not re.fullmatch(_DATABASE, path):
        raise _refusal(store, "not the name of a database (letters, digits, _ and -)")


def _path_and_fault(url: str) -> tuple[str, str]:
    """Return the path of a database's URL, and what is wrong with what precedes and follows it."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that do not match
        return "", "not a host with a port"
    path = parts.path.removeprefix("/")
    if "@" in parts.path + parts.query + parts.fragment:
        return path, "an @ that does not end user and password is written %40, a slash in a password %2F"
    if not all(re.fullmatch(_HOST, host) for host in parts.netloc.rpartition("@")[2].split(",")):
        return path, "not a host with a port"
    return path, "options follow a ?, not a #" if parts.fragment else ""


def check_catalogs(catalogs: Sequence[str]) -> None:
    """Refuse a value that is not a catalog, and one that is named twice."""
    for catalog in catalogs:
        if fault := _catalog_fault(catalog):
            expected = _CATALOG_EXPECTED.get(scheme_of(catalog), _ANY_CATALOG_EXPECTED)
            raise UsageError(f"catalog = {masked_store(catalog)!r}: {fault}; {expected}")
    places = Counter(_catalog_place(catalog) for catalog in catalogs)
    for place, times in places.items():
        if times > 1:
            raise UsageError(f"catalog: {place} is named {times} times; expected each catalog once")


def _catalog_fault(catalog: str) -> str:
    if scheme_of(catalog) not in _CATALOG_EXPECTED:
        return "unknown catalog"
    path, fault = _path_and_fault(catalog)
    if fault:
        return fault
    if scheme_of(catalog) == CASSANDRA:
        return _keyspace_fault(path)
    return _schema_fault(catalog, path) if scheme_of(catalog) == POSTGRESQL else _database_fault(path)


def _database_fault(database: str) -> str:
    return "" if re.fullmatch(_DATABASE, database) else "not the name of a database (letters, digits, _ and -)"


def _keyspace_fault(path: str) -> str:
    if not re.fullmatch(_KEYSPACE, path) or path.startswith("system"):
        return "not the name of a keyspace (up to 48 lower-case letters, digits and _, beginning with a letter)"
    return ""


def _schema_fault(catalog: str, path: str) -> str:
    database, has_schema, schema = path.removesuffix("/").partition("/")
    if fault := _database_fault(database):
        return fault
    if has_schema and not re.fullmatch(_SCHEMA, schema):
        return "not the name of a schema (up to 63 letters, digits and ._-, not beginning with pg_)"
    if "password" in urlsplit(catalog).query.lower():
        return "a password is written before the @, or is in PGPASSWORD"
    return ""


def _catalog_place(catalog: str) -> str:
    """Return where a catalog is, however its URL is written."""
    parts = urlsplit(catalog)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
    database, _, schema = parts.path.strip("/").partition("/")
    return f"{place}/{database}/{schema or DEFAULT_SCHEMA}" if parts.scheme == POSTGRESQL else f"{place}/{database}"


def check_feeds(feeds: Sequence[str], stores: Sequence[str], option: str = "feed") -> None:
    """Refuse a value that is not a topic for documents, and one that is named twice."""
    for feed in feeds:
        if fault := _feed_fault(feed, stores):
            raise UsageError(f"{option} = {masked_store(feed)!r}: {fault}; expected kafka://broker:port,…/topic")
    places = Counter(_catalog_place(feed) for feed in feeds)
    for place, times in places.items():
        if times > 1:
            raise UsageError(f"{option}: {place} is named {times} times; expected each topic once")


def _feed_fault(feed: str, stores: Sequence[str]) -> str:
    if scheme_of(feed) != KAFKA:
        return "unknown feed"
    path, fault = _path_and_fault(feed)
    if fault:
        return fault
    if not re.fullmatch(_TOPIC, path):
        return "not the name of a topic (up to 249 letters, digits and ._-)"
    if "password" in urlsplit(feed).query.lower():
        return "a password is written before the @, or is in GOSSAMER_KAFKA_PASSWORD"
    if not has_archive(stores):
        return "documents are made from the archive, which --store files does not have; add --store warc"
    return ""


def complete_catalog(catalog: str, environment: Mapping[str, str]) -> str:
    """Return a catalog's URL with its password, or without the mask of it: PostgreSQL's client looks for one itself.

    Raises UsageError if the password was masked and the environment has none.
    """
    if scheme_of(catalog) in PASSWORD_VARIABLES:
        return complete_store(catalog, environment, "catalog")
    scheme, _, rest = catalog.partition("://")
    user_info, found, place = rest.rpartition("@")
    return f"{scheme}://{user_info.removesuffix(f':{MASK}')}@{place}" if found else catalog


def _refusal(store: str, what: str) -> UsageError:
    return UsageError(f"store = {masked_store(store)!r}: {what}; expected {_EXPECTED[scheme_of(store)]}")


def complete_store(store: str, environment: Mapping[str, str], option: str = "store") -> str:
    """Return a store's URL with its password: the one in it, or else that in the environment.

    Raises UsageError if the password was masked and the environment has none.
    """
    variable = PASSWORD_VARIABLES.get(scheme_of(store))
    user_info, found, rest = store.partition("://")[2].rpartition("@")
    user, has_password, password = user_info.partition(":")
    if variable is None or not found or (has_password and password != MASK):
        return store
    known = environment.get(variable, "")
    if not known and has_password:
        raise UsageError(
            f"{option} = {store!r}: its password is not stored; set {variable}, or pass --{option} with the password "
            "again"
        )
    return f"{scheme_of(store)}://{user}:{quote(known, safe='')}@{rest}" if known else store
