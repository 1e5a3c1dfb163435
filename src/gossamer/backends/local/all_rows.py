"""All rows of a table, or those of one shard: committed, not committed yet, and live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from gossamer.backends.local.store import Item, Store
from gossamer.core.url.identity import shard_of, shard_range

T = TypeVar("T")


def all_rows(
    store: Store, table: str, live: Mapping[bytes, T], decode: Callable[[bytes], T], shard: int | None
) -> Iterator[T]:
    """Yield all records of a table; `live` ones replace those in the store."""
    changed = {key for key in store.changed_keys(table) if shard in (None, shard_of(key))}
    yield from (record for key, record in live.items() if shard in (None, shard_of(key)))
    for key in changed:
        if key not in live and (value := store.get(table, key)) is not None:
            yield decode(value)
    for key, value in committed_of(store, table, shard):
        if key not in changed and key not in live:
            yield decode(value)


def committed_of(store: Store, table: str, shard: int | None) -> Iterator[Item]:
    """Yield the committed entries of a table, of one shard or of all."""
    start, end = (b"", None) if shard is None else shard_range(shard)
    return store.committed(table, b"", start, end)
