"""Where rows about pages, dead letters and hosts go outside of the crawl folder: tables that people query.

A catalog store receives what a commit changes before the commit makes it durable in the ledger, so it has everything
that the ledger has. It holds facts, no bodies: those are in the archive, at the place that a row names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from types import NoneType
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import Struct

from gossamer.model.records import UrlId

FORMAT = 1  # of the tables: another one if a column is added


class Kind(Enum):
    """What a column has. Each catalog says how it stores that."""

    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"  # of 32 bits
    COUNT = "count"  # of 64 bits
    REAL = "real"
    FLAG = "flag"
    TIME = "time"  # in seconds since 1970; 0 is none


Count: TypeAlias = Annotated[int, Kind.COUNT]
Time: TypeAlias = Annotated[float, Kind.TIME]
_KINDS = {str: Kind.TEXT, bytes: Kind.BYTES, int: Kind.NUMBER, float: Kind.REAL, bool: Kind.FLAG}


class Column(Struct, frozen=True):
    """A column, as a field of a row declares it."""

    name: str
    kind: Kind
    is_optional: bool = False


def columns_of(row: type[Struct]) -> tuple[Column, ...]:
    """Return the columns of a table: its catalogs follow from the fields of its rows."""
    return tuple(_column(name, hint) for name, hint in get_type_hints(row, include_extras=True).items())


def _column(name: str, hint: Any) -> Column:  # noqa: ANN401 - a type
    is_optional = NoneType in get_args(hint)
    plain = get_args(hint)[0] if is_optional else hint
    kind = plain.__metadata__[0] if get_origin(plain) is Annotated else _KINDS[plain]
    return Column(name, kind, is_optional)


class CatalogPage(Struct, frozen=True, gc=False):
    """A visit that brought a page."""

    url_id: UrlId
    visit: int  # from 1
    url: str
    host: str
    domain: str  # registrable
    title: str
    status: int
    content_type: str
    language: str  # as declared; may be empty
    depth: int
    size: Count  # of the decoded body, in bytes
    words: Count
    links: Count
    content_hash: str  # of the decoded body, hexadecimal, as in exports
    duplicate_of: UrlId | None  # the first page with this content
    near_duplicate_of: UrlId | None
    fetched_at: Time
    archive_file: str | None  # None: the crawl has no archive
    archive_offset: Count | None
    node: str  # that fetched it; empty if the crawl runs on one machine
    worker: int


class DeadLetter(Struct, frozen=True, gc=False):
    """A URL that failed for good."""

    url_id: UrlId
    url: str
    host: str
    outcome: str
    status: int | None
    reason: str
    attempts: int  # 0: it was never requested
    found_on: str | None  # the URL of the page that led to it; None: a seed, or not known here
    at: Time
    node: str  # that recorded it


class CatalogHost(Struct, frozen=True):
    """A host, as of its last change."""

    name: str
    domain: str
    pages: Count
    fetches: Count
    errors: Count
    queued: Count
    bytes: Count
    rank: float
    delay_s: float
    latency_s: float
    is_blocked: bool
    is_dead: bool  # it has no address
    park_reason: str
    parked_until: Time | None
    first_seen_at: Time | None
    last_fetch_at: Time | None
    node: str  # that recorded it


class CatalogChanges(Struct, frozen=True):
    """What a part of a commit changes. Each row occurs once."""

    committed_at: float
    pages: Sequence[CatalogPage] = ()
    dead_letters: Sequence[DeadLetter] = ()
    not_dead: Sequence[UrlId] = ()  # URLs that are no dead letters, perhaps any more
    hosts: Sequence[CatalogHost] = ()


class CatalogStore(Protocol):
    """Stores rows. Used by one thread at a time."""

    def put(self, changes: CatalogChanges) -> None:
        """Store rows; on return they are durable. If it raises, some of them may be stored: none, in a database with
        transactions.

        Storing rows again changes nothing. On many nodes, rows of an earlier commit never replace those of a later
        one; the rows of one machine come in order. Raises StoreUnavailableError if the store cannot be reached or
        refuses to write. The call may be repeated.
        """
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


class CatalogVisit(NamedTuple):
    """A visit that a catalog store lists."""

    url_id: UrlId
    visit: int
    url: str
    content_hash: str
    archive_file: str | None
    archive_offset: int | None


class VisitKey(NamedTuple):
    """What names a visit in a catalog store. A store may have it by its host, which the URL says."""

    url_id: UrlId
    visit: int
    url: str


class HostCounts(NamedTuple):
    """What a catalog store has about a host."""

    pages: int
    fetches: int
    errors: int


class CatalogInventory(CatalogStore, Protocol):
    """A catalog store that can be compared with a ledger. All methods raise StoreUnavailableError as `put` does."""

    def visits(self) -> Iterator[CatalogVisit]:
        """Return all visits, sorted by URL id and number. Rows may be removed meanwhile.

        A visit whose rows in two tables do not agree has an empty content hash: it agrees with no page.
        """
        ...

    def dead_letters(self) -> Iterator[tuple[UrlId, str]]:
        """Return all dead letters with their outcomes, sorted by URL id. Rows may be removed meanwhile.

        A letter whose rows in two tables do not agree has an empty outcome.
        """
        ...

    def hosts(self, names: Sequence[str]) -> dict[str, HostCounts]:
        """Return those of some hosts that there are."""
        ...

    def host_names(self) -> Iterator[str]:
        """Return the names of all hosts, sorted. Rows may be removed meanwhile."""
        ...

    def remove(self, visits: Sequence[VisitKey], dead_letters: Sequence[UrlId], hosts: Sequence[str]) -> None:
        """Remove rows."""
        ...


class CheckedCatalog(CatalogInventory, Protocol):
    """A catalog that can be checked and created."""

    name: str  # for messages, without a password

    def is_there(self) -> bool:
        """Return whether it was created; raise UsageError if that cannot be found out."""
        ...

    def check(self, crawl: str) -> None:
        """Create what a crawl needs, unless it is there; raise UsageError if it cannot be used."""
        ...

    def check_empty(self) -> None:
        """Raise UsageError if there are rows."""
        ...
