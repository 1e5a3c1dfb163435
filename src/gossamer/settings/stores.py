"""What a value of `--store` means: a name (`warc`, `files`), or the URL of a store on other machines.

    s3://bucket/prefix                             credentials come from the environment only
    mongodb://[user[:password]@]host:port,…/database[?options]

A password is never written anywhere: `masked_store` replaces it by `***` in crawl.toml, in messages and in what nodes
share. `complete_store` puts it back from GOSSAMER_MONGODB_PASSWORD when a crawl continues.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from gossamer.errors import UsageError

NAMES = ("warc", "files")
S3, MONGODB = "s3", "mongodb"
MASK = "***"
PASSWORD_VARIABLES: Mapping[str, str] = {MONGODB: "GOSSAMER_MONGODB_PASSWORD"}
_EXPECTED = {S3: "s3://bucket/prefix", MONGODB: "mongodb://host:port/database"}
_ALL_EXPECTED = f"{', '.join(NAMES)}, {' or '.join(_EXPECTED.values())}"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()=/-]*")
_UNSAFE_PART = re.compile(r"//|/\.{1,2}(?:/|$)")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_DATABASE = re.compile(r"[A-Za-z0-9_-]{1,63}")
_USER_INFO = re.compile(r"(?<=://)([^\s'\":@]*):[^\s'\"]*@")  # up to the last @, should the password have more


def scheme_of(store: str) -> str:
    """Return the scheme of a store's URL; empty for a name."""
    scheme, found, _ = store.partition("://")
    return scheme if found else ""


def has_archive(stores: Sequence[str]) -> bool:
    """Return whether pages are stored in WARC files: what goes to a store with a URL comes from them."""
    return any(store == "warc" or scheme_of(store) for store in stores)


def masked_store(text: str) -> str:
    """Return a store, or a text with its URL, without passwords."""
    return _USER_INFO.sub(rf"\1:{MASK}@", text)


def check_stores(stores: Sequence[str]) -> None:
    """Refuse what is no store, and two stores of one kind."""
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
    if not _BUCKET.fullmatch(bucket):
        raise _refusal(store, "not the name of a bucket (3 to 63 lower-case letters, digits, dots and hyphens)")
    if not _PREFIX.fullmatch(prefix) or _UNSAFE_PART.search(f"/{prefix}"):
        raise _refusal(store, "a prefix has letters, digits and !_.*'()=- between single slashes")


def _check_mongodb(store: str) -> None:
    try:
        parts = urlsplit(store)
    except ValueError as error:  # brackets that do not match
        raise _refusal(store, "not a host with a port") from error
    if "@" in parts.path + parts.query + parts.fragment:
        raise _refusal(store, "an @ that does not end user and password is written %40, a slash in a password %2F")
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise _refusal(store, "not a host with a port")
    if not _DATABASE.fullmatch(parts.path.removeprefix("/")) or parts.fragment:
        raise _refusal(store, "not the name of a database (letters, digits, _ and -)")


def _refusal(store: str, what: str) -> UsageError:
    return UsageError(f"store = {masked_store(store)!r}: {what}; expected {_EXPECTED[scheme_of(store)]}")


def complete_store(store: str, environment: Mapping[str, str]) -> str:
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
            f"store = {store!r}: its password is not stored; set {variable}, or pass --store with the password again"
        )
    return f"{scheme_of(store)}://{user}:{quote(known, safe='')}@{rest}" if known else store
