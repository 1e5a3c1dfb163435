"""The change feed of a crawl on many machines.

Numbers of changes grow within a shard only, so a cursor is a number per shard. Entries come shard by shard, those of a
shard in order. Delivery is at least once and without gaps, as in `handover/feed/feed`: behind a page whose bytes lie
elsewhere the cursor of its shard stays, so that what follows is delivered again when the page can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gossamer.handover.feed.feed import EntryMaker, FeedEntry
from gossamer.model.errors import UsageError
from gossamer.reading.cluster import SharedReader

_decode = msgspec.json.Decoder(dict[int, int]).decode


class NodeFeed:
    """The changes of a crawl on many machines that is open for reading."""

    def __init__(self, crawl: SharedReader, *, has_copies: bool = False) -> None:
        self._crawl = crawl
        self._entries = EntryMaker(crawl, has_copies=has_copies)
        self.position: dict[int, int] = {}  # by shard: how far was read
        self._delivered: dict[int, int] = {}  # by shard: what the reader has
        self._behind_gap: dict[int, int] = {}  # by shard: the same, beyond a page that could not be read
        self.elsewhere = 0  # pages whose bytes could not be read

    @property
    def position_text(self) -> str:
        """How far was read, as it is stored."""
        return msgspec.json.encode(self.position).decode()

    def deliver(self, entry: FeedEntry) -> None:
        """Record that the reader has an entry."""
        shard, _, number = str(entry.cursor).partition("-")
        if int(shard) not in self._behind_gap:
            self._delivered[int(shard)] = int(number)

    @property
    def cursor_text(self) -> str:
        """The cursor of the reader, as it is stored."""
        return msgspec.json.encode(self._delivered).decode()

    def start_after(self, text: str, where: str) -> None:
        """Begin after a stored cursor; 0 is the beginning."""
        try:
            self.position = {} if text == "0" else _decode(text)
        except msgspec.DecodeError:
            raise UsageError(f"{where}: not a cursor of a crawl on many machines; expected 0, or none") from None
        self._delivered = dict(self.position)
        last = self._crawl.ledger.last_changes()
        if any(number > last.get(shard, 0) for shard, number in self.position.items()):
            raise UsageError(f"{where}: beyond the last change; does it belong to another crawl?")

    def read(self) -> Iterator[FeedEntry]:
        """Yield the committed entries after the position."""
        for shard, last in sorted(self._crawl.ledger.last_changes().items()):
            after = self._behind_gap.get(shard, self.position.get(shard, 0))
            if last <= after:
                continue
            for change in self._crawl.ledger.changes_of(shard, after):
                is_elsewhere = self._entries.is_elsewhere(change)
                entry = None if is_elsewhere else self._entries.make(change, f"{shard}-{change.seq}")
                self.elsewhere += is_elsewhere
                if is_elsewhere or shard in self._behind_gap:
                    self._behind_gap[shard] = change.seq
                else:
                    self.position[shard] = change.seq
                if entry is not None:
                    yield entry

    def follow(self, wait: Callable[[], Any]) -> Iterator[FeedEntry]:
        """Yield entries as long as any node is alive; `wait` is called whenever there is nothing new."""
        while True:
            is_running = self._crawl.is_running_now()  # before reading: what was committed before is read below
            yield from self.read()
            if not is_running:
                return
            wait()
