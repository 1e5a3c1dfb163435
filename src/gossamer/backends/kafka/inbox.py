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


class Letter(Struct):
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
        self._open: dict[int, dict[int, int]] = {}  # partition -> offset -> letters that are not read
        self._letters: dict[int, list[Letter]] = {}  # by shard, those that were offered first
        self._begun: dict[tuple[int, bytes], Letter] = {}  # of which parts are missing
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
            for letter in self._letters.pop(shard, ()):
                self._begun.pop((shard, letter.id), None)
                self._close(letter)
        used = {self._layout.range_of(shard) for shard in self._first}
        self._next = {number: offset for number, offset in self._next.items() if number in used}

    def add(self, partition: int, offset: int, key: bytes, parts: Sequence[tuple[int, bytes, bool]]) -> None:
        """Add a message. A part has the shard, links, and whether they go on in a later message."""
        for shard, links, has_more in parts:
            if shard in self._first and offset >= self._first[shard]:
                sender, _, number = key.decode().rpartition("/")
                self._add_part(shard, Letter(key, partition, offset, sender, int(number), links, not has_more))
        self._next[partition] = offset + 1

    def _add_part(self, shard: int, part: Letter) -> None:
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
        self._letters.setdefault(shard, []).append(part)
        opened = self._open.setdefault(part.partition, {})
        opened[part.offset] = opened.get(part.offset, 0) + 1

    def _close(self, letter: Letter) -> None:
        self.waiting_bytes -= len(letter.links)
        opened = self._open[letter.partition]
        opened[letter.offset] -= 1
        if not opened[letter.offset]:
            del opened[letter.offset]

    def letters(self) -> Iterator[tuple[int, Letter]]:
        """Yield all letters that wait, with their shards."""
        for shard, letters in self._letters.items():
            for letter in letters:
                yield shard, letter

    def drop(self, is_void: Callable[[Letter], bool]) -> None:
        """Remove letters whose commits were never made."""
        for shard, letters in list(self._letters.items()):
            for letter in [each for each in letters if is_void(each)]:
                letters.remove(letter)
                self._close(letter)
            if not letters:
                del self._letters[shard]

    # -- reading ----------------------------------------------------------------------------------

    def begins_with(self, shard: int, ids: Sequence[bytes]) -> bool:
        """Return whether these are the first letters of a shard."""
        return [letter.id for letter in self._letters.get(shard, ())[: len(ids)]] == list(ids)

    def offer(
        self, read: Mapping[int, Sequence[bytes]], is_made: Callable[[Letter], bool], max_bytes: int
    ) -> dict[int, list[Message]]:
        """Return letters after those that were read; those of a commit that is not made yet come later."""
        offered: dict[int, list[Message]] = {}
        size = 0
        for shard, letters in self._letters.items():
            count = len(read.get(shard, ()))
            if not self.begins_with(shard, read.get(shard, ())):
                continue
            ready: list[Letter] = []
            for letter in letters[count:]:
                if size < max_bytes and letter.is_whole and is_made(letter):
                    ready.append(letter)
                    size += len(letter.links)
            if ready:
                chosen = {id(letter) for letter in ready}
                rest = [letter for letter in letters[count:] if id(letter) not in chosen]
                letters[count:] = ready + rest
                offered[shard] = [Message(letter.id, letter.links) for letter in ready]
        return offered

    def positions_after(self, read: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Return from where on the links of each shard are not done with, when some more were read."""
        found: dict[int, int] = {}
        for shard, first in self._first.items():
            left = self._letters.get(shard, ())[len(read.get(shard, ())) :]
            seen = max(first, self._next[self._layout.range_of(shard)])
            found[shard] = min((letter.offset for letter in left), default=seen)
        return found

    def remove(self, read: Mapping[int, Sequence[bytes]]) -> None:
        """Remove letters that were read."""
        for shard, ids in read.items():
            letters = self._letters.get(shard, [])
            for letter in letters[: len(ids)]:
                self._close(letter)
            del letters[: len(ids)]
            if not letters:
                self._letters.pop(shard, None)

    def done_offsets(self) -> dict[int, int]:
        """Return up to where each partition is done with, as far as the shards here are concerned."""
        return {
            number: min(self._open.get(number) or (offset,), default=offset) for number, offset in self._next.items()
        }
