"""Was this URL certainly never seen? A Bloom filter in layers, in front of the exact set.

A "no" is certain and saves a look-up in the ledger; a "yes" is wrong at most once in a thousand
and is always checked there, so no new URL is lost. Each layer has room for four times as many as the
previous one: 1.8 bytes per URL of capacity, 0.35 µs per look-up and layer. The next layer is added
when one is four fifths full: it is then wrong once in five thousand, and several layers together
still less than once in a thousand.

With a limit in bytes the last layer that fits continues to be filled: it is wrong more and more often, up to
always, and each time costs a look-up in the ledger, 2 µs. When a crawl is resumed, the known URLs are put into
one layer of the right size, or of the limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import exp, log

from rbloom import Bloom

FALSE_POSITIVES = 0.0009  # of a full layer: with random variation still below one in a thousand
FIRST_LAYER_URLS = 1_000_000
GROWTH = 4
FULL = 0.8


_BITS_PER_URL = -log(FALSE_POSITIVES) / log(2) ** 2
_MIN_GAIN = 0.5  # of the last layer: a smaller one would not be worth its look-ups
_MAX_WRONG = 0.99  # a filter that is wrong more often than this is useless
_MIN_BITS = 64


class SeenFilter:
    """The filter; never forgets. Without `max_bytes` it grows without bound."""

    def __init__(self, first_layer_urls: int = FIRST_LAYER_URLS, max_bytes: int | None = None) -> None:
        self._max_bits = None if max_bytes is None else 8 * max_bytes
        self._capacity = first_layer_urls
        self._layers = [self._layer(first_layer_urls)]
        self._in_last = 0
        self._is_at_limit = False

    def _layer(self, urls: int) -> Bloom:
        """Return an empty layer for this many URLs, as precise as the limit allows."""
        wrong = FALSE_POSITIVES
        if self._max_bits is not None:
            wrong = max(wrong, min(_MAX_WRONG, exp(-max(_MIN_BITS, self._max_bits) / urls * log(2) ** 2)))
        return Bloom(urls, wrong)

    def fill(self, count: int, ids: Iterable[bytes]) -> None:
        """Add what was seen before; `count` sets the size of the first layer."""
        self._capacity = max(self._capacity, int(count * 1.5))
        self._layers = [self._layer(self._capacity)]
        rest = iter(ids)
        while batch := list(islice(rest, 10_000)):
            self._layers[-1].update(batch)
            self._in_last += len(batch)

    def add(self, url_id: bytes) -> None:
        """Add an id."""
        if self._in_last >= FULL * self._capacity and not self._is_at_limit:
            self._add_layer()
        self._layers[-1].add(url_id)
        self._in_last += 1

    def _add_layer(self) -> None:
        urls = GROWTH * self._capacity
        if self._max_bits is not None:
            room = int((self._max_bits - 8 * self.size_in_bytes) / _BITS_PER_URL)
            if room < _MIN_GAIN * self._capacity:
                self._is_at_limit = True
                return
            urls = min(urls, room)
        self._capacity = urls
        self._layers.append(self._layer(urls))
        self._in_last = 0

    def __contains__(self, url_id: bytes) -> bool:
        for layer in self._layers:  # noqa: SIM110 - any() takes 1 µs more
            if url_id in layer:
                return True
        return False

    @property
    def size_in_bytes(self) -> int:
        """Memory of all layers."""
        return sum(layer.size_in_bits for layer in self._layers) // 8
