"""Objects on other machines, by key: what the page stores need of S3.

Keys are relative to the store's prefix. An object appears whole or not at all, and is there for every reader once the
call that wrote it has returned. Every call raises StoreUnavailableError if the store cannot be reached or does not
accept it now; all of them may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

MIN_PART_BYTES = 5 << 20  # of every part of a composed object except the last


class StoredObject(Struct, frozen=True):
    """What a store says of an object. The tag changes with the bytes; the metadata are those it was written with."""

    key: str
    size: int
    tag: str = ""
    metadata: Mapping[str, str] = {}


class Part(Struct, frozen=True):
    """A range of an object that is composed: read by the caller, or copied from an object that the store has."""

    start: int
    end: int
    source: str = ""  # key of the object to copy from; empty: read by the caller
    source_start: int = 0


class ObjectStore(Protocol):
    """See the module. All methods may be called from several threads."""

    @property
    def url(self) -> str:
        """The store, for people."""
        ...

    def put(self, key: str, data: bytes, metadata: Mapping[str, str] | None = None) -> StoredObject:
        """Write an object, with a checksum that the store compares."""
        ...

    def compose(
        self, key: str, read: Callable[[int, int], bytes], parts: Sequence[Part], metadata: Mapping[str, str]
    ) -> StoredObject:
        """Write an object from parts, in order. `read` returns the bytes from a start to an end."""
        ...

    def read(self, key: str, start: int, end: int) -> bytes:
        """Return a range of an object; FileNotFoundError if there is none."""
        ...

    def find(self, key: str) -> StoredObject | None:
        """Return what the store has under a key."""
        ...

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with a prefix, in the order of keys, without metadata."""
        ...

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there do not matter."""
        ...

    def abort_unfinished(self, prefix: str) -> int:
        """Remove parts of objects that were never composed, below a prefix; return of how many objects."""
        ...
