"""Does a kind of URL at a host still bring anything new? Decided by the content of its pages.

A URL has two patterns: its path with numbers replaced and the names of its parameters, and a coarser one, so that
neither numbers nor ever new combinations of parameters escape. Of each pattern windows of `WINDOW` pages are judged;
one that brought nothing new puts the pattern into quarantine: its URLs are held, not forgotten, and the operator may
release it.

**What is new?** What a reader would call new. Two measures of a page, neither of which is sufficient:

- Its *words*: a hash of the text without digits and without the echo of its own URL. Pages that differ only in digits
  have equal words: a calendar, a page with the time of day, but also a table of measurements, or numbered records.
- Its *shingles*: 8 lanes of the page's MinHash. A lane is the minimum of all shingles (five words, with digits) in
  one permutation, so it is a random shingle of the page. A lane value that no earlier page of the pattern had is
  new text; one that nearly all pages have is boilerplate and ignored. If products are shown in ever new
  combinations the words differ each time, but the shingles come from a closed set, and so the lanes repeat soon.

A window is new if one of these holds:

1. Pages with new words, at least `MIN_NEW_SHARE` of the window, have at least `MIN_NEW_LANES` new lanes among those
   that are not boilerplate; or at least as many pages consist nearly wholly of new lanes.
2. Pages that differ in digits only have, on average, at least `MIN_NEW_SHINGLES` new shingles: a table of numbers has
   many, a counter or a date has few.

Measured on generated sites (`benchmarks/traps.py`). Without lanes (no MinHash) only a text that is repeated exactly
counts as nothing new.

Pure. Only hosts with `MIN_PAGES` pages are watched. Memory: at most `MAX_PATTERNS` patterns of 22 kB each; 7 µs per
page in a window, 4 in between, 0.05 µs per link of a host without quarantine.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection
from struct import Struct as Layout

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

from gossamer.core.identity import host_id, shard_of
from gossamer.core.url import path_of
from gossamer.kernel import kernel

WINDOW = 50
FEW = 5
WARM_UP = 10  # pages until boilerplate is known
MIN_NEW_SHARE = 0.05
MIN_NEW_LANES = 0.25
MIN_LANES = 8  # of a window that are no boilerplate: fewer prove nothing
MIN_NEW_SHINGLES = 7.5
MIN_PAGES = 50
MAX_PATTERNS = 5_000
SAMPLES = 5
WATCHED_WINDOWS = 4
MAX_SKIPPED_WINDOWS = 7  # a pattern that proves new again and again is looked at ever less: every eighth window
LANES = 8
_WHOLLY_NEW = 0.8  # of a page's lanes
_BOILERPLATE = 0.8  # of the pages have the lane's value
_CLEARLY_NEW_LANES = 0.35
_FORGETTING = 0.25  # what another value takes from a lane's most frequent one
_SEEN_SLOTS = 1 << 14
_SEEN_MASK = _SEEN_SLOTS - 1
_SEEN_WINDOWS = 4  # in one generation of values
_AFTER_THE_LAST = bytes(255) + b"\1"  # generation 255 is the one before generation 2; older values are forgotten
_SALT = 0x9E3779B1  # times the lane: equal values of two lanes have two slots
_LAYOUT = Layout(f"<{LANES}I")

SPAM_PATTERN = ":spam"  # no pattern of URLs: all links to a host most of whose pages are spam
_NUMBER = re.compile(r"\d+")
_TOKEN = re.compile(r"(?<![^/])(?=[^/]*\d)[0-9A-Za-z_-]{16,}(?![^/])")


class Quarantine(Struct, array_like=True):
    """A pattern whose URLs are held. `is_released`: the operator released it; it is no longer watched."""

    host: str
    pattern: str
    since: float
    fetched: int
    new: int
    samples: list[str]
    held: int = 0
    is_released: bool = False
    reason: str = ""  # if it is not that pages said nothing new
    demotes_only: bool = False  # the host is demoted, and its links are not held

    @property
    def name(self) -> str:
        """The name that the operator reads and writes."""
        return self.host + self.pattern

    @property
    def rule(self) -> str:
        """The rule that holds its links, see `state.HoldRule`."""
        return "spam" if self.pattern == SPAM_PATTERN else "quarantine"


class PageMark(Struct, frozen=True):
    """What a page is compared by."""

    words: bytes  # hash of its text without digits and echoes
    lanes: bytes = b""  # the first `LANES` of its MinHash, or none
    size: int = 0  # of its text, in words
    is_copy: bool = False  # of another page of the host, byte for byte


def record_lanes(  # noqa: PLR0917 - as the kernel has it
    values: bytes, frequent: bytearray, hits: bytearray, seen: bytearray, generation: int, pages: int
) -> int:
    """Record a page's lanes in the fields of `_Lanes`: the new ones, and 256 times those that are no boilerplate.

    The kernel has the same in C: 0.3 µs instead of 8.
    """
    new = rest = 0
    forgotten = _FORGETTING * (pages + 1)
    limit = _BOILERPLATE * pages + forgotten
    common, counts = memoryview(frequent).cast("I"), memoryview(hits).cast("d")
    for lane, value in enumerate(_LAYOUT.unpack(values)):
        if value == common[lane]:
            counts[lane] += 1.0 + _FORGETTING
            if counts[lane] >= limit:
                continue  # boilerplate
        elif counts[lane] <= forgotten:
            common[lane], counts[lane] = value, 1.0 + forgotten
        rest += 1
        at = (value ^ lane * _SALT) & (len(seen) - 1)
        last = seen[at]
        if last != generation:
            seen[at] = generation
            new += last != generation - 1
    return rest << 8 | new


class _Lanes(Struct):
    """The lane values that a pattern's pages had, and how frequent the most frequent one is."""

    pages: int = 0
    frequent: bytearray = field(default_factory=lambda: bytearray(4 * LANES))  # unsigned numbers
    # How often the most frequent value occurred, less `_FORGETTING` for every page with another value. So that such a
    # page changes nothing here, the number is stored with `_FORGETTING` times the pages so far added to it.
    hits: bytearray = field(default_factory=lambda: bytearray(8 * LANES))  # double precision
    seen: bytearray = field(default_factory=lambda: bytearray(_SEEN_SLOTS))  # the generation that last had the value
    generation: int = 2  # values of this one and the one before are known

    def add(self, values: bytes) -> tuple[int, int]:
        """Record a page's lanes; return how many were new, and how many are no boilerplate."""
        record = record_lanes if kernel is None else kernel.record_lanes
        packed = record(values, self.frequent, self.hits, self.seen, self.generation, self.pages)
        self.pages += 1
        return packed & 0xFF, packed >> 8

    def age(self) -> None:
        """Forget the older half of the values."""
        self.generation += 1
        if self.generation > 255:
            self.generation = 2
            self.seen = self.seen.translate(_AFTER_THE_LAST)


class _Words(Struct):
    """The words that a pattern's pages had: a bit each, of the last 4 to 8 windows."""

    seen: bytearray = field(default_factory=lambda: bytearray(_SEEN_SLOTS // 8))
    older: bytearray = field(default_factory=lambda: bytearray(_SEEN_SLOTS // 8))

    def add(self, words: bytes) -> bool:
        """Record a page's words; return whether an earlier page had them."""
        at = xxh3_64_intdigest(words) & _SEEN_MASK
        byte, bit = at >> 3, 1 << (at & 7)
        if self.seen[byte] & bit:
            return True
        self.seen[byte] |= bit
        return bool(self.older[byte] & bit)

    def age(self) -> None:
        """Forget the older half."""
        self.older, self.seen = self.seen, bytearray(_SEEN_SLOTS // 8)


class PageWindow(Struct):
    """The pages that are judged together."""

    fetched: int = 0
    repeated: int = 0  # pages whose words were seen before
    wholly_new: int = 0
    new_lanes: int = 0  # of pages with new words
    lanes: int = 0  # likewise, without boilerplate
    new_shingles: float = 0.0  # of pages whose words were seen before, estimated
    windows: int = 0
    streak: int = 0  # of windows whose pages were clearly new
    skipped: int = 0  # pages that are not looked at any more before the next window
    first: list[bytes] = field(default_factory=list)  # words of the first pages, as long as there is no `known`
    known: _Words | None = None  # made for the `FEW`th page, like the next: most patterns have one page only
    pages: int = 0
    values: _Lanes | None = None
    samples: list[str] = field(default_factory=list)

    def add(self, mark: PageMark) -> None:
        """Record a page."""
        self.pages += 1
        is_repeated = self._is_known(mark.words) or mark.is_copy
        new = rest = 0
        if mark.lanes and not mark.is_copy:
            if self.values is None:
                if self.pages < FEW:
                    return
                self.values = _Lanes()
            new, rest = self.values.add(mark.lanes)
            if self.values.pages <= WARM_UP:
                return
        self.fetched += 1
        if is_repeated:
            self.repeated += 1
            self.new_shingles += new * mark.size / LANES
            return
        self.new_lanes += new
        self.lanes += rest
        self.wholly_new += not mark.lanes or (rest > 0 and new >= _WHOLLY_NEW * rest)

    def _is_known(self, words: bytes) -> bool:
        if self.known is None:
            if self.pages < FEW:
                self.first.append(words)
                return words in self.first[:-1]
            self.known = _Words()
            for earlier in self.first:
                self.known.add(earlier)
            self.first.clear()
        return self.known.add(words)

    def new_pages(self) -> int:
        """Return how many pages of the window brought something new themselves: a stricter measure than `is_new`."""
        if 2 * self.repeated >= self.fetched and self.new_shingles >= MIN_NEW_SHINGLES * self.repeated:
            return self.fetched
        if self.lanes < MIN_LANES or self.new_lanes >= MIN_NEW_LANES * self.lanes:
            return self.fetched - self.repeated
        return self.wholly_new

    def is_new(self) -> bool:
        """Return whether the window's pages brought something new: see the module docstring."""
        fresh = self.fetched - self.repeated
        min_pages = MIN_NEW_SHARE * self.fetched
        if self.wholly_new >= min_pages:
            return True
        if fresh >= min_pages and (self.lanes < MIN_LANES or self.new_lanes >= MIN_NEW_LANES * self.lanes):
            return True
        return 2 * self.repeated >= self.fetched and self.new_shingles >= MIN_NEW_SHINGLES * self.repeated

    def _is_clearly_new(self) -> bool:
        """Return whether a window that is new is so beyond doubt."""
        if 2 * self.repeated >= self.fetched or self.wholly_new >= MIN_NEW_SHARE * self.fetched:
            return True
        return self.lanes < MIN_LANES or self.new_lanes >= _CLEARLY_NEW_LANES * self.lanes

    def restart(self) -> None:
        """Begin the next window; what was seen stays known.

        Only a pattern whose pages are clearly new is looked at less often: one that dries up is watched closely.
        """
        self.streak = self.streak + 1 if self._is_clearly_new() else 0
        self.fetched = self.repeated = self.wholly_new = self.new_lanes = self.lanes = 0
        self.new_shingles = 0.0
        self.samples.clear()
        self.windows += 1
        self.skipped = WINDOW * max(0, min(self.streak - WATCHED_WINDOWS, MAX_SKIPPED_WINDOWS))
        if self.windows % _SEEN_WINDOWS == 0:
            for seen in (self.values, self.known):
                if seen is not None:
                    seen.age()


def patterns_of(url: str) -> tuple[str, str]:
    """Return the two patterns of a canonical URL: by its shape, and the coarser one."""
    path, mark, query = path_of(url).partition("?")
    # Both contain digits, which most paths do not: a search is a third of the time of two substitutions.
    shape = path if _NUMBER.search(path) is None else _NUMBER.sub("#", _TOKEN.sub("*", path))
    if mark:
        names = sorted({part.partition("=")[0] for part in query.split("&")})
        return f"{shape}?{'&'.join(names)[:200]}", f"{shape}?*"
    first, slash, rest = path[1:].partition("/")
    return shape, f"/{first}/**" if slash and rest else "/*"


class Novelty:
    """What each pattern brought, and which are in quarantine."""

    def __init__(self, window: int = WINDOW, max_patterns: int = MAX_PATTERNS) -> None:
        self._window = window
        self._max_patterns = max_patterns
        self._windows: OrderedDict[tuple[str, str], PageWindow] = OrderedDict()  # by host and pattern
        self._held: dict[str, dict[str, Quarantine]] = {}
        self.holds_spam = False  # whether links to hosts with spam are held

    def load(self, quarantine: Quarantine) -> None:
        """Restore what an earlier run decided."""
        self._held.setdefault(quarantine.host, {})[quarantine.pattern] = quarantine

    def release(self, shards: Collection[int]) -> None:
        """Forget the hosts of shards."""
        for host in [name for name in self._held if shard_of(host_id(name)) in shards]:
            del self._held[host]
        for host, pattern in [key for key in self._windows if shard_of(host_id(key[0])) in shards]:
            del self._windows[host, pattern]

    def refusal(self, url: str, host: str) -> str | None:
        """Return the name of the trap if a URL matches a pattern in quarantine, else None."""
        quarantine = self._quarantine_of(url, host) if host in self._held else None
        return None if quarantine is None else quarantine.rule

    def of_spam(self, host: str) -> Quarantine | None:
        """Return what was decided about a host because of spam."""
        return self._held.get(host, {}).get(SPAM_PATTERN)

    def is_held_as_spam(self, host: str) -> bool:
        """Return whether all links to a host are held because of spam."""
        spam = self.of_spam(host)
        return self.holds_spam and spam is not None and not spam.is_released and not spam.demotes_only

    def _quarantine_of(self, url: str, host: str) -> Quarantine | None:
        """Return the quarantine that holds a URL; a released pattern wins over the other one of its URLs."""
        held = self._held.get(host, {})
        if SPAM_PATTERN in held and self.is_held_as_spam(host):
            return held[SPAM_PATTERN]
        of_url = [quarantine for pattern in patterns_of(url) if (quarantine := held.get(pattern)) is not None]
        return of_url[0] if of_url and not any(quarantine.is_released for quarantine in of_url) else None

    def count_held(self, url: str, host: str) -> Quarantine | None:
        """Count a link that is held back; return the quarantine that holds it."""
        quarantine = self._quarantine_of(url, host)
        if quarantine is not None:
            quarantine.held += 1
        return quarantine

    def has_released(self, host: str) -> bool:
        """Return whether the operator released a pattern of a host."""
        return any(quarantine.is_released for quarantine in self._held.get(host, {}).values())

    def record(self, url: str, host: str, mark: PageMark, now: float) -> Quarantine | None:
        """Record a page; return the quarantine that begins with it, or None."""
        begun = None
        patterns = patterns_of(url)
        held = self._held.get(host)
        if held is not None and (patterns[0] in held or patterns[1] in held):
            return None  # what is held or released is not watched any more, by neither pattern
        for pattern in dict.fromkeys(patterns):
            window = self._window_of((host, pattern))
            if window.skipped:
                window.skipped -= 1
                continue
            if len(window.samples) < SAMPLES:
                window.samples.append(url)
            window.add(mark)
            if window.fetched >= self._window:
                begun = self._judge(host, pattern, window, now) or begun
        if begun is not None:  # the coarser one, if both patterns bring nothing new
            self._held.setdefault(host, {})[begun.pattern] = begun
        return begun

    def _window_of(self, name: tuple[str, str]) -> PageWindow:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = PageWindow()
            if len(self._windows) > self._max_patterns:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(name)
        return window

    def _judge(self, host: str, pattern: str, window: PageWindow, now: float) -> Quarantine | None:
        """Close a full window: begin a quarantine, or the next window."""
        if window.is_new():
            window.restart()
            return None
        del self._windows[host, pattern]
        new = window.fetched - window.repeated
        return Quarantine(host, pattern, now, window.fetched, min(new, window.wholly_new), window.samples)
