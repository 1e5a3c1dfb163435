"""Links of long pages and sitemaps, which are offered in slices.

One answer may have 50,000 links, and to admit one takes up to 100 µs. So the first `FIRST_LINKS` are offered when the
answer arrives; the rest is stored with it, in batches, and offered one batch per turn. A batch is a record of the
ledger: it is written in the commit that finishes its page, and removed in the commit that queues its links, so nothing
is lost or offered twice after a kill. Memory: a key per batch. Links that wait are counted as held back, by the rule
`link_backlog`; while more than `MAX_BATCHES` wait, no requests are made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.ledger.tables import BACKLOG, batch_key
from gossamer.core.links.intake import LinkContext
from gossamer.core.url.identity import shard_of
from gossamer.engine.admission.admission import Admission, Offered
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.shards.shard_memory import ShardMemory
from gossamer.model.figures import MAX_LINKS_PER_PAGE
from gossamer.model.records import Link, UrlId
from gossamer.model.state import CrawlState, LinkBatch

if TYPE_CHECKING:
    from gossamer.ports import RecordStore

FIRST_LINKS = 2000
BATCH_LINKS = 500
MAX_BATCHES = 200
LINK_BACKLOG = "link_backlog"


class LinkBacklog(ShardMemory):
    def __init__(self, ledger: RecordStore, admission: Admission, emitter: EventEmitter, state: CrawlState) -> None:
        self._ledger = ledger
        self._admission = admission
        self._events = emitter
        self._state = state
        self.keys: deque[bytes] = deque()
        self._progress: dict[UrlId, tuple[int, int]] = {}  # links of a page: added, and over its limit, so far

    @property
    def is_empty(self) -> bool:
        return not self.keys

    @property
    def is_full(self) -> bool:
        """Whether so many wait that no requests should be made."""
        return len(self.keys) > MAX_BATCHES

    def load(self, shard: int | None) -> None:
        """Continue with what an earlier run or owner left."""
        batches = self._ledger.records(BACKLOG, shard)
        self.keys += sorted(batch_key(batch.parent, batch.number) for batch in batches)

    def forget(self, shards: Collection[int]) -> None:
        """Forget the batches of shards: their next owner offers them."""
        self.keys = deque(key for key in self.keys if shard_of(key) not in shards)

    def offer(
        self, links: Sequence[Link], context: LinkContext, now: float, lastmods: Mapping[UrlId, str] | None = None
    ) -> Offered:
        """Offer the links of an answer, the first ones at once; return what became of these."""
        if len(links) <= FIRST_LINKS:
            offered = self._admission.offer(links, context, now, lastmods)
            if offered.capped:
                self._count_capped(context.parent, context.found_on, offered.capped, now)
            return offered
        offered = self._admission.offer(links[:FIRST_LINKS], context, now, lastmods)
        number = self._first_free(context.parent)
        for first in range(FIRST_LINKS, len(links), BATCH_LINKS):
            batch_links = list(links[first : first + BATCH_LINKS])
            dates = {link.id: lastmods[link.id] for link in batch_links if link.id in lastmods} if lastmods else {}
            batch = LinkBatch(
                context.parent,
                number,
                batch_links,
                context.depth,
                context.source,
                context.kind,
                context.found_on,
                context.seed,
                len(offered.new),
                dates,
                offered.capped,
            )
            self._ledger.put_record(BACKLOG, batch)
            self.keys.append(batch_key(context.parent, number))
            number += 1
        self._state.totals.count_held(LINK_BACKLOG, len(links) - FIRST_LINKS)
        return replace(offered, is_final=False)

    def _first_free(self, parent: UrlId) -> int:
        """Return the number of the next batch of a page: an earlier visit may have left some."""
        numbers = (int.from_bytes(key[len(parent) :]) for key in self.keys if key.startswith(parent))
        return 1 + max(numbers, default=-1)

    def offer_batch(self, now: float) -> None:
        key = self.keys.popleft()
        batch = self._ledger.record(BACKLOG, key)
        if batch is None:
            return
        self._ledger.remove_record(BACKLOG, key)
        self._state.totals.count_held(LINK_BACKLOG, -len(batch.links))
        context = LinkContext(
            batch.depth, batch.source, batch.parent, kind=batch.kind, found_on=batch.found_on, seed=batch.seed
        )
        added, capped = self._progress.pop(batch.parent, (batch.added, batch.capped))
        offered = self._admission.offer(batch.links, replace(context, added=added), now, batch.lastmods)
        added += len(offered.new)
        capped += offered.capped
        if self.keys and self.keys[0].startswith(batch.parent):
            self._progress[batch.parent] = added, capped
        elif capped:
            self._count_capped(batch.parent, batch.found_on, capped, now)

    def _count_capped(self, page: UrlId, url: str, links: int, now: float) -> None:
        """Count and report the links of a page that were over the limit for one page."""
        self._state.totals.count_cut(MAX_LINKS_PER_PAGE, links)
        self._events.capped(page, url, links, now)
