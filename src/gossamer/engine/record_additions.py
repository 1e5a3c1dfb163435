"""What a node adds to the crawl's record: what extends the scope.

Seeds, and the targets of their redirects, extend the scope of the crawl or that of a seed. The next owner of a shard
knows of it only from the record, so it is in the record before a commit whose rows depend on it, whatever the record
contained earlier: an engine that goes back in time may have lost it again. If it loses it later, it loses the commit
as well, which its node notices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gossamer.engine.seed_rules import with_joined
from gossamer.ports.shared_ledger import SharedLedger
from gossamer.state import CrawlRecord


class Additions(Struct, frozen=True):
    """What extended the scope on a node since its last commit."""

    scope: Sequence[str] = ()
    joined: Mapping[int, Sequence[str]] = {}  # by the number of the seed that has a scope of its own

    def __bool__(self) -> bool:
        return bool(self.scope or self.joined)


def add_to_record(shared: SharedLedger, added: Additions) -> bool:
    """Have the crawl's record contain what extends the scope; False if another node changed it meanwhile."""
    record = shared.record()
    if record is None or record.ended:
        return True  # the commit that follows is refused, or has nothing that is crawled
    wanted = _extended(record, added)
    return wanted == record or shared.change_record(replace(wanted, version=record.version + 1))


def _extended(record: CrawlRecord, added: Additions) -> CrawlRecord:
    known = set(record.scope)
    scope = [*record.scope, *(url for url in added.scope if url not in known)]
    return replace(record, scope=scope, seeds=with_joined(record.seeds, added.joined))
