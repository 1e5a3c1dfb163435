"""Objects in memory. See `gossamer.ports.object_store`. While `is_away` is set, every call fails."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from gossamer.model.errors import StoreUnavailableError
from gossamer.ports.object_store import MIN_PART_BYTES, Part, StoredObject


class _Object(Struct, frozen=True):
    data: bytes
    metadata: Mapping[str, str]


class MemoryObjectStore:
    """A store for one process."""

    def __init__(self) -> None:
        self._objects: dict[str, _Object] = {}
        self.is_away = False
        self.copied_bytes = 0  # by `compose`, within the store

    @property
    def url(self) -> str:
        return "memory:"

    def put(self, key: str, data: bytes, metadata: Mapping[str, str] | None = None) -> StoredObject:
        self._answer()
        self._objects[key] = _Object(bytes(data), dict(metadata or {}))
        return self._described(key)

    def compose(
        self, key: str, read: Callable[[int, int], bytes], parts: Sequence[Part], metadata: Mapping[str, str]
    ) -> StoredObject:
        self._answer()
        if any(part.end - part.start < MIN_PART_BYTES for part in parts[:-1]):
            raise StoreUnavailableError(f"{self.url}: a part of {key} is too small")
        self.copied_bytes += sum(part.end - part.start for part in parts if part.source)
        return self.put(key, b"".join(self._part(part, read) for part in parts), metadata)

    def _part(self, part: Part, read: Callable[[int, int], bytes]) -> bytes:
        if not part.source:
            return read(part.start, part.end)
        if part.source not in self._objects:
            raise FileNotFoundError(f"{self.url}: no {part.source}")
        return self._objects[part.source].data[part.source_start : part.source_start + part.end - part.start]

    def read(self, key: str, start: int, end: int) -> bytes:
        self._answer()
        if key not in self._objects:
            raise FileNotFoundError(f"{self.url}: no {key}")
        return self._objects[key].data[start:end]

    def find(self, key: str) -> StoredObject | None:
        self._answer()
        return self._described(key) if key in self._objects else None

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        self._answer()
        for key in sorted(self._objects):
            if key.startswith(prefix):
                yield StoredObject(key, len(self._objects[key].data), self._described(key).tag)

    def remove(self, keys: Iterable[str]) -> None:
        self._answer()
        for key in keys:
            self._objects.pop(key, None)

    def abort_unfinished(self, prefix: str) -> int:
        """Return 0: `compose` leaves nothing unfinished."""
        self._answer()
        return 0

    def _described(self, key: str) -> StoredObject:
        found = self._objects[key]
        tag = hashlib.sha256(found.data).hexdigest()
        return StoredObject(key, len(found.data), tag, found.metadata)

    def _answer(self) -> None:
        if self.is_away:
            raise StoreUnavailableError(f"{self.url} cannot be reached")
