"""What a commit adds to the crawl's record: what extends the scope.

Seeds, and the targets of their redirects, extend the scope of the crawl or that of a seed. The next owner of a shard
knows of it only from the record. So a shared ledger changes the record together with the commit whose rows depend on
it: an engine that goes back in time loses both or neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gossamer.model.state import CrawlRecord, SeedRecord


class Additions(Struct, frozen=True, array_like=True):
    """What extended the scope on a node since its last commit."""

    scope: Sequence[str] = ()
    joined: Mapping[int, Sequence[str]] = {}  # by the number of the seed that has a scope of its own

    def __bool__(self) -> bool:
        return bool(self.scope or self.joined)


NOTHING = Additions()


def extended(record: CrawlRecord, added: Additions) -> CrawlRecord:
    """Return the next version of a crawl's record, with what extends the scope."""
    known = set(record.scope)
    scope = [*record.scope, *(url for url in added.scope if url not in known)]
    seeds = with_joined(record.seeds, added.joined)
    return replace(record, scope=scope, seeds=seeds, version=record.version + 1)


def with_joined(records: Sequence[SeedRecord], joined: Mapping[int, Sequence[str]]) -> list[SeedRecord]:
    """Return the seeds of a crawl's record with targets of redirects that extend their scopes."""
    seeds = list(records)
    for number, urls in joined.items():
        record = seeds[number - 1]
        new = [url for url in urls if url not in record.joined]
        if new:
            seeds[number - 1] = replace(record, joined=[*record.joined, *new])
    return seeds
