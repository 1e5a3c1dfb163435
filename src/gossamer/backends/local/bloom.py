"""Was this URL surely never seen? A Bloom filter in layers, in front of the exact set.

A "no" is certain and spares a look into the ledger; a "yes" is wrong at most once in a thousand
and is always checked there, so no new URL is lost. Each layer holds four times as many as the
one before: 1.8 bytes a URL that there is room for, 0.35 µs a look-up and layer. A layer gives way
to the next when it is four fifths full: it is then wrong once in five thousand, and several
layers together still less than once in a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from rbloom import Bloom

FALSE_POSITIVES = 0.0009  # of a layer that is full: what chance adds keeps it below one in a thousand
FIRST_LAYER_URLS = 1_000_000
GROWTH = 4
FULL = 0.8


class SeenFilter:
    """The filter; grows without bound, never forgets."""

    def __init__(self, first_layer_urls: int = FIRST_LAYER_URLS) -> None:
        self._capacity = first_layer_urls
        self._layers = [Bloom(first_layer_urls, FALSE_POSITIVES)]
        self._in_last = 0

    def fill(self, count: int, ids: Iterable[bytes]) -> None:
        """Take in what was seen before; `count` sizes the first layer for it at once."""
        self._capacity = max(self._capacity, int(count * 1.5))
        self._layers = [Bloom(self._capacity, FALSE_POSITIVES)]
        rest = iter(ids)
        while batch := list(islice(rest, 10_000)):
            self._layers[-1].update(batch)
            self._in_last += len(batch)

    def add(self, url_id: bytes) -> None:
        """Remember an id."""
        if self._in_last >= FULL * self._capacity:
            self._capacity *= GROWTH
            self._layers.append(Bloom(self._capacity, FALSE_POSITIVES))
            self._in_last = 0
        self._layers[-1].add(url_id)
        self._in_last += 1

    def __contains__(self, url_id: bytes) -> bool:
        for layer in self._layers:  # noqa: SIM110 - any() takes 1 µs more
            if url_id in layer:
                return True
        return False

    @property
    def size_in_bytes(self) -> int:
        """Memory of all layers."""
        return sum(layer.size_in_bits for layer in self._layers) // 8
