"""Do the pages of a kind still say anything new, and do they lead to ever more of their kind? Measured in windows.

**What is new?** What a reader would call new. Two measures of a page, neither of which is sufficient:

- Its *words*: a hash of the text without digits and without the echo of its own URL. Pages that differ only in digits
  have equal words: a calendar, a page with the time of day, but also a table of measurements, or numbered records.
  Its *numbers* tell these apart from pages whose numbers are those of their URL.
- Its *shingles*: 8 lanes of the page's MinHash. A lane is the minimum of all shingles (five words, with digits) in
  one permutation, so it is a random shingle of the page. A lane value that no earlier page of the pattern had is
  new text; one that nearly all pages have is boilerplate and ignored. If products are shown in ever new
  combinations the words differ each time, but the shingles come from a closed set, and so the lanes repeat soon.

A window is new if one of these holds:

1. Pages with new words, at least `MIN_NEW_SHARE` of the window, have at least `MIN_NEW_LANES` new lanes among those
   that are not boilerplate; or at least as many pages consist nearly wholly of new lanes.
2. Pages that differ in digits only have, on average, at least `MIN_NEW_SHINGLES` new shingles: a table of numbers has
   many, a counter or a date has few. Numbers that a page takes from its own URL do not count.

Without lanes (no MinHash) only a text that is repeated exactly counts as nothing new.

**What is growth?** The new URLs of the window's own pattern that its pages lead to, per page. In a finite section it
falls to nothing; what makes itself goes on. `core/traps/watch` decides from both measures.

Pure. 7 µs per page in a window, 4 in between. A window takes 22 kB once it has `FEW` pages.
"""

from __future__ import annotations

from functools import reduce
from struct import Struct as Layout

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

from gossamer.core.traps.url_patterns import common_folder
from gossamer.foundation.kernel import kernel

WINDOW = 50
FEW = 5
WARM_UP = 10  # pages until boilerplate is known
MIN_NEW_SHARE = 0.05
MIN_NEW_LANES = 0.25
MIN_LANES = 8  # of a window that are no boilerplate: fewer prove nothing
MIN_NEW_SHINGLES = 7.5
WATCHED_WINDOWS = 4
MAX_SKIPPED_WINDOWS = 7  # a pattern that proves new again and again is looked at ever less: every eighth window
LANES = 8
MAX_MIRRORS = 2  # copies of a page in one pattern: more of them are no mirrors
MIN_BRANCHES = 1.5  # new URLs per page: what leads to one new page each is cut by its depth
MOST = 0.95
MIN_FOLDERS = 8  # of the pages of a tree, none of which has most of them: that would be a section of its own
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


class PageMark(Struct, frozen=True):
    words: bytes  # hash of its text without digits and echoes
    lanes: bytes = b""  # the first `LANES` of its MinHash, or none
    size: int = 0  # of its text, in words
    is_copy: bool = False  # of another page, byte for byte
    numbers: bytes = b""  # hash of the numbers in it that its URL has not; empty if that has none
    original: bytes = b""  # which page of the host it copies, if that is to be considered


def record_lanes(  # noqa: PLR0917 - as the kernel has it
    values: bytes, frequent: bytearray, hits: bytearray, seen: bytearray, generation: int, pages: int
) -> int:
    """Record a page's lanes in the fields of `_Lanes`: the new ones, and 256 times those that are no boilerplate.

    The kernel has the same in C: 0.3 µs instead of 8.
    """
    new = rest = 0
    forgotten = _FORGETTING * (pages + 1)
    limit = _BOILERPLATE * pages + forgotten
    common = memoryview(frequent).cast("I")
    counts = memoryview(hits).cast("d")
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


_record_lanes = record_lanes if kernel is None else kernel.record_lanes


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
        pages = self.pages
        packed = _record_lanes(values, self.frequent, self.hits, self.seen, self.generation, pages)
        self.pages = pages + 1
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
        byte = at >> 3
        bit = 1 << (at & 7)
        if self.seen[byte] & bit:
            return True
        self.seen[byte] |= bit
        return bool(self.older[byte] & bit)

    def age(self) -> None:
        """Forget the older half."""
        self.older = self.seen
        self.seen = bytearray(_SEEN_SLOTS // 8)


class PageLinks(Struct, frozen=True):
    """What a page leads to, and whether its text is one that people write."""

    found: int = 0  # links on the page
    new: int = 0  # of them, those that were not known, of any pattern
    are_followed: bool = True  # not beyond the greatest depth
    is_prose: bool = True  # its text repeats some words, as sentences do


class Growth(Struct):
    pages: int = 0  # whose links are followed
    new: int = 0  # URLs of the pattern that were not known
    fertile: int = 0  # pages that led to some
    prose: int = 0  # pages with sentences
    others: int = 0  # links to what is known or of another pattern, in all
    least_others: int = 1 << 30  # on one page: its menu
    folders: dict[str, int] = field(default_factory=dict)  # pages in each, of a tree
    dull_folders: dict[str, int] = field(default_factory=dict)  # of them, those with a text that was seen before
    _before: int = 0  # `new` before the page at hand

    def add(self, links: PageLinks, folder: str, *, is_dull: bool) -> None:
        """Record a page after its links."""
        if not links.are_followed:
            return
        self.pages += 1
        others = links.found - links.new
        new = self.new - self._before  # with those that are held back
        if new > 0:
            if new > links.new:
                others = links.found - new
            self._before = self.new
            self.fertile += 1
        if links.is_prose:
            self.prose += 1
        self.others += others
        if others < self.least_others:  # noqa: PLR1730 - a call less, for every page
            self.least_others = others
        if folder:
            self.folders[folder] = self.folders.get(folder, 0) + 1
            if is_dull:
                self.dull_folders[folder] = self.dull_folders.get(folder, 0) + 1

    @property
    def per_page(self) -> float:
        """How many new URLs of the pattern a page led to."""
        return self.new / self.pages if self.pages else 0.0

    @property
    def judged_folders(self) -> dict[str, int]:
        """Where the pages lie that are evidence: those that repeat others, if they are most of them."""
        return self.dull_folders if 2 * sum(self.dull_folders.values()) >= self.pages else self.folders

    @property
    def folder(self) -> str:
        """The deepest folder that contains the judged pages."""
        return reduce(common_folder, self.judged_folders)

    @property
    def is_spread(self) -> bool:
        """Return whether the judged pages lie in many folders."""
        folders = self.judged_folders
        return len(folders) >= MIN_FOLDERS and 2 * max(folders.values()) <= sum(folders.values())

    @property
    def is_a_tree_of_noise(self) -> bool:
        """Return whether every page led to new URLs that no other page knows, and none has a text that people write.

        All pages have the links of the menu, which are known. Pages that people make refer to each other beyond that.
        """
        known = self.others - self.pages * max(0, self.least_others)
        return (
            self.new >= MIN_BRANCHES * self.pages
            and self.fertile >= MOST * self.pages
            and self.prose <= (1 - MOST) * self.pages
            and known <= (1 - MOST) * self.new
        )


class PageWindow(Struct):
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
    pages: int = 0  # in all windows
    copies: bytearray | None = None  # how often a page was copied here, by a hash of its id
    values: _Lanes | None = None
    samples: list[str] = field(default_factory=list)
    growth: Growth = field(default_factory=Growth)

    def add(self, mark: PageMark) -> bool:
        """Record a page; return whether its text was seen before."""
        self.pages += 1
        is_copy = mark.is_copy and self._is_copied_often(mark.original)
        known = self.known
        is_repeated = (self._is_known(mark.words) if known is None else known.add(mark.words)) or is_copy
        new = rest = 0
        if mark.lanes and not is_copy:
            if self.values is None:
                if self.pages < FEW:
                    return is_repeated
                self.values = _Lanes()
            new, rest = self.values.add(mark.lanes)
            if self.values.pages <= WARM_UP:
                return is_repeated
        self.fetched += 1
        if is_repeated:
            self.repeated += 1
            if not mark.numbers or not self._is_known(mark.words + mark.numbers):
                self.new_shingles += new * mark.size / LANES
            return True
        self.new_lanes += new
        self.lanes += rest
        self.wholly_new += not mark.lanes or (rest > 0 and new >= _WHOLLY_NEW * rest)
        return False

    def _is_copied_often(self, original: bytes) -> bool:
        """Record a copy; return whether it says nothing: a mirror has each page once, and is as finite as they are."""
        if not original:
            return True
        if self.copies is None:
            self.copies = bytearray(_SEEN_SLOTS)
        at = xxh3_64_intdigest(original) & _SEEN_MASK
        self.copies[at] = min(self.copies[at] + 1, 255)
        return self.copies[at] > MAX_MIRRORS

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

    def restart(self, *, is_watched: bool = False) -> None:
        """Begin the next window; what was seen stays known.

        Only a pattern whose pages are clearly new is looked at less often: one that dries up is watched closely.
        """
        self.streak = 0 if is_watched or not self._is_clearly_new() else self.streak + 1
        self.fetched = self.repeated = self.wholly_new = self.new_lanes = self.lanes = 0
        self.new_shingles = 0.0
        self.samples.clear()
        self.growth = Growth()
        self.windows += 1
        self.skipped = WINDOW * max(0, min(self.streak - WATCHED_WINDOWS, MAX_SKIPPED_WINDOWS))
        if self.windows % _SEEN_WINDOWS == 0:
            for seen in (self.values, self.known):
                if seen is not None:
                    seen.age()
