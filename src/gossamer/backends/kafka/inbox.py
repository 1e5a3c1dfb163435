"""What a node has read of the topic for its shards, and up to where each shard's links are done with.

A partition of the topic has the links for a range of shards, in the order in which they were sent. A node that takes a
shard goes on where the last owner had read: the consumer of the partition goes back as far as that, and what other
shards have had already is passed over. Links wait here until a commit says that they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from gossamer.backends.kafka.layout import Layout
from gossamer.ports.shared_ledger import Message


class InboxMessage(Struct):
    """Links for a shard, from one commit."""

    id: bytes
    partition: int
    offset: int  # of the first message with a part of it
    sender: str  # an incarnation
    number: int  # of the commit
    links: bytes
    is_whole: bool


class Inbox:
    """See the module."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._first: dict[int, int] = {}  # shard -> offset from which its links are new
        self._next: dict[int, int] = {}  # partition -> offset of the next message
        self._open: dict[int, dict[int, int]] = {}  # partition -> offset -> messages that are not read
        self._messages: dict[int, list[InboxMessage]] = {}  # by shard, those that were offered first
        self._begun: dict[tuple[int, bytes], InboxMessage] = {}  # of which parts are missing
        self.waiting_bytes = 0

    @property
    def shards(self) -> Collection[int]:
        """The shards whose links are collected."""
        return self._first.keys()

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """The next message of each partition."""
        return self._next

    def add_shards(self, positions: Mapping[int, int]) -> None:
        """Collect links for shards, each from a position on."""
        starts: dict[int, int] = {}
        for shard, position in positions.items():
            number = self._layout.range_of(shard)
            starts[number] = min(starts.get(number, position), position)
        for shard, first in self._first.items():
            number = self._layout.range_of(shard)
            if starts.get(number, self._next[number]) < self._next[number]:
                self._first[shard] = max(first, self._next[number])
        for number, start in starts.items():
            self._next[number] = min(start, self._next.get(number, start))
        self._first.update(positions)

    def remove_shards(self, shards: Collection[int]) -> None:
        """Collect no more links for shards."""
        for shard in shards:
            self._first.pop(shard, None)
            for message in self._messages.pop(shard, ()):
                self._begun.pop((shard, message.id), None)
                self._close(message)
        used = {self._layout.range_of(shard) for shard in self._first}
        self._next = {number: offset for number, offset in self._next.items() if number in used}

    def add(self, partition: int, offset: int, key: bytes, parts: Sequence[tuple[int, bytes, bool]]) -> None:
        """Add a message. A part has the shard, links, and whether they go on in a later message."""
        for shard, links, has_more in parts:
            if shard in self._first and offset >= self._first[shard]:
                sender, _, number = key.decode().rpartition("/")
                self._add_part(shard, InboxMessage(key, partition, offset, sender, int(number), links, not has_more))
        self._next[partition] = offset + 1

    def _add_part(self, shard: int, part: InboxMessage) -> None:
        self.waiting_bytes += len(part.links)
        begun = self._begun.pop((shard, part.id), None) if self._begun else None
        whole = begun or part
        if begun is not None:
            begun.links = begun.links + part.links
            begun.is_whole = part.is_whole
        if not whole.is_whole:
            self._begun[shard, part.id] = whole
        if begun is not None:
            return
        self._messages.setdefault(shard, []).append(part)
        opened = self._open.setdefault(part.partition, {})
        opened[part.offset] = opened.get(part.offset, 0) + 1

    def _close(self, message: InboxMessage) -> None:
        self.waiting_bytes -= len(message.links)
        opened = self._open[message.partition]
        opened[message.offset] -= 1
        if not opened[message.offset]:
            del opened[message.offset]

    def messages(self) -> Iterator[tuple[int, InboxMessage]]:
        """Yield all messages that wait, with their shards."""
        for shard, messages in self._messages.items():
            for message in messages:
                yield shard, message

    def drop(self, is_void: Callable[[InboxMessage], bool]) -> None:
        """Remove messages whose commits were never made."""
        for shard, messages in list(self._messages.items()):
            for message in [each for each in messages if is_void(each)]:
                messages.remove(message)
                self._close(message)
            if not messages:
                del self._messages[shard]

    # -- reading ----------------------------------------------------------------------------------

    def begins_with(self, shard: int, ids: Sequence[bytes]) -> bool:
        """Return whether these are the first messages of a shard."""
        return [message.id for message in self._messages.get(shard, ())[: len(ids)]] == list(ids)

    def offer(
        self, read: Mapping[int, Sequence[bytes]], is_made: Callable[[InboxMessage], bool], max_bytes: int
    ) -> dict[int, list[Message]]:
        """Return messages after those that were read; those of a commit that is not made yet come later."""
        offered: dict[int, list[Message]] = {}
        size = 0
        for shard, messages in self._messages.items():
            count = len(read.get(shard, ()))
            if not self.begins_with(shard, read.get(shard, ())):
                continue
            ready: list[InboxMessage] = []
            for message in messages[count:]:
                if size < max_bytes and message.is_whole and is_made(message):
                    ready.append(message)
                    size += len(message.links)
            if ready:
                chosen = {id(message) for message in ready}
                rest = [message for message in messages[count:] if id(message) not in chosen]
                messages[count:] = ready + rest
                offered[shard] = [Message(message.id, message.links) for message in ready]
        return offered

    def positions_after(self, read: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Return from where on the links of each shard are not done with, when some more were read."""
        found: dict[int, int] = {}
        for shard, first in self._first.items():
            left = self._messages.get(shard, ())[len(read.get(shard, ())) :]
            seen = max(first, self._next[self._layout.range_of(shard)])
            found[shard] = min((message.offset for message in left), default=seen)
        return found

    def remove(self, read: Mapping[int, Sequence[bytes]]) -> None:
        """Remove messages that were read."""
        for shard, ids in read.items():
            messages = self._messages.get(shard, [])
            for message in messages[: len(ids)]:
                self._close(message)
            del messages[: len(ids)]
            if not messages:
                self._messages.pop(shard, None)

    def done_offsets(self) -> dict[int, int]:
        """Return up to where each partition is done with, as far as the shards here are concerned."""
        return {
            number: min(self._open.get(number) or (offset,), default=offset) for number, offset in self._next.items()
        }
