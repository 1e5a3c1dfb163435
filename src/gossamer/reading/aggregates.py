"""Statistics over many values in fixed memory.

The memory of each is bounded, however long the crawl: a histogram of sizes or times (classes 4 %
wide), the most frequent names (rare ones may be dropped once there are thousands), the top rows by
a score, and a series over time whose bins double in width as time goes on.
Costs: `Spread.add` 0.4 µs, `Frequent.add` 0.2, `RateSeries.bin_at` 0.2.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from math import floor, log2
from typing import Generic, TypeVar

from msgspec import Struct

_CLASSES_PER_OCTAVE = 16
_MAX_BINS = 240
_FIRST_BIN_S = 0.25

Row = TypeVar("Row")


class NamedCount(Struct, frozen=True):
    """How often something was counted."""

    name: str
    count: int


class Percentiles(Struct, frozen=True):
    """A distribution in a few numbers; the percentiles are within 2 %."""

    count: int = 0
    mean: float = 0.0
    p10: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    most: float = 0.0


class SizeClass(Struct, frozen=True):
    """How many were at least `least` and less than `below`."""

    least: int
    below: int
    count: int


class Spread:
    """The distribution of a number that is not negative."""

    def __init__(self) -> None:
        self._classes: defaultdict[int, int] = defaultdict(int)
        self._zeros = 0
        self._total = 0.0
        self._max = 0.0
        self.count = 0

    def add(self, number: float) -> None:
        """Add a number."""
        self.count += 1
        if number <= 0:
            self._zeros += 1
            return
        self._total += number
        if number > self._max:  # noqa: PLR1730 - a call less, for each of three numbers per page
            self._max = number
        self._classes[floor(log2(number) * _CLASSES_PER_OCTAVE)] += 1

    def percentiles(self) -> Percentiles:
        """Return the distribution in a few numbers."""
        if not self.count:
            return Percentiles()
        return Percentiles(
            count=self.count,
            mean=round(self._total / self.count, 1),
            p10=self._at(0.1),
            p50=self._at(0.5),
            p90=self._at(0.9),
            p99=self._at(0.99),
            most=self._max,
        )

    def _at(self, share: float) -> float:
        """Return the number that the given share of all does not exceed."""
        rest = share * self.count - self._zeros
        if rest <= 0:
            return 0.0
        for place in sorted(self._classes):
            rest -= self._classes[place]
            if rest <= 0:
                return round(min(self._max, 2 ** ((place + 0.5) / _CLASSES_PER_OCTAVE)), 1)
        return self._max

    def octaves(self) -> list[SizeClass]:
        """Return how many fall in each doubling, without gaps."""
        found: dict[int, int] = {}
        for place, count in self._classes.items():
            octave = place // _CLASSES_PER_OCTAVE
            found[octave] = found.get(octave, 0) + count
        wide = [octave for octave in found if octave >= 0]
        classes = [
            SizeClass(1 << octave, 2 << octave, found.get(octave, 0))
            for octave in (range(min(wide), max(wide) + 1) if wide else ())
        ]
        return ([SizeClass(0, 1, self._zeros)] if self._zeros else []) + classes


class Frequent:
    """The most frequent names. Exact up to `max_names` different ones; then the rarest half is dropped."""

    def __init__(self, max_names: int = 10_000) -> None:
        self._max_names = max_names
        self._counts: dict[str, int] = {}

    def add(self, name: str, count: int = 1) -> None:
        """Count a name."""
        counts = self._counts
        if name in counts:
            counts[name] += count
            return
        counts[name] = count
        if len(counts) > self._max_names:
            kept = heapq.nlargest(self._max_names // 2, counts.items(), key=lambda item: item[1])
            self._counts = dict(kept)

    def __getitem__(self, name: str) -> int:
        return self._counts.get(name, 0)

    @property
    def total(self) -> int:
        """The sum of all counts, without what was dropped."""
        return sum(self._counts.values())

    def top(self, count: int = 1 << 30) -> list[NamedCount]:
        """Return the most frequent names, ties by name."""
        best = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [NamedCount(name, number) for name, number in best[:count]]


class Leaders(Generic[Row]):
    """The rows with the highest scores above zero."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._heap: list[tuple[float, int, Row]] = []
        self._offered = 0

    def offer(self, score: float, row: Row) -> None:
        """Add a row if it is among the best so far; of equals, the first stays."""
        self._offered += 1
        if score <= 0:
            return
        entry = (score, -self._offered, row)
        if len(self._heap) < self._max_rows:
            heapq.heappush(self._heap, entry)
        elif score > self._heap[0][0]:
            heapq.heapreplace(self._heap, entry)

    def rows(self) -> list[Row]:
        """Return the rows, highest score first."""
        return [row for _, _, row in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)]


class Bin(Struct):
    """What happened in one bin of crawl time. Domains and queued are the last values recorded in it."""

    pages: int = 0
    errors: int = 0
    bytes: int = 0
    domains: int = 0
    queued: int = 0


class RateSeries:
    """Counts over crawl time in at most 240 bins: beyond that, each two become one."""

    def __init__(self) -> None:
        self.width_s = _FIRST_BIN_S
        self.bins: list[Bin] = []

    def bin_at(self, t_s: float) -> Bin:
        """Return the bin of a moment, in seconds of crawl time."""
        index = int(t_s / self.width_s)
        while index >= _MAX_BINS:
            self._double()
            index = int(t_s / self.width_s)
        while len(self.bins) <= index:
            self.bins.append(Bin())
        return self.bins[index]

    def _double(self) -> None:
        pairs = [self.bins[start : start + 2] for start in range(0, len(self.bins), 2)]
        self.bins = [
            Bin(
                pages=sum(part.pages for part in pair),
                errors=sum(part.errors for part in pair),
                bytes=sum(part.bytes for part in pair),
                domains=max(part.domains for part in pair),
                queued=pair[-1].queued or pair[0].queued,
            )
            for pair in pairs
        ]
        self.width_s *= 2
