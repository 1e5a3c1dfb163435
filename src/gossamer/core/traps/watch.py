"""Which sections of a host make themselves without end? What their pages say and what they lead to decide together.

A section that people made is finite, however dull: fewer and fewer new URLs are found per page. A trap leads to ever
new URLs of its own pattern. So a pattern is suspected if a window of its pages

- says nothing new (`core/traps/novelty`) and grows: `GROWTH` new URLs of the pattern per page; or
- is a tree of noise: every page leads to several new URLs, which no other page knows, and no page has sentences.

    watched --evidence--> suspected --ENOUGH--> held --what it brings is new, or it grows no more--> watched
                              |--two windows without--> watched

| state     | its URLs                                                                                           |
|-----------|----------------------------------------------------------------------------------------------------|
| suspected | are queued behind everything else, all but one in `TURNS`                                          |
| held      | are held back, but for samples (one in `SAMPLED`) and, when nothing else is left, as many as the   |
|           | budget allows: so a finite section is complete in the end                                          |
| released  | by the operator: are queued like others, and not watched any more                                  |

Only URLs that were found *on pages of such patterns of the host* are affected: what another page or a sitemap names
is fetched. A pattern is the narrowest one that contains the judged pages; of a tree it is the deepest folder that
does, and only if they lie in many folders, none of which has most of them.

Evidence survives a restart with the ledger's rows of quarantines, the window at hand does not. Pure. Only hosts with
`MIN_PAGES` pages are watched. At most `MAX_PATTERNS` patterns; 2 µs per new link of a host that is watched.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from gossamer.core.traps.novelty import WINDOW, PageLinks, PageMark, PageWindow
from gossamer.core.traps.quarantine import BUDGET, ENOUGH, SPAM_PATTERN, Quarantine
from gossamer.core.traps.url_patterns import TREE, contains, folder_of, is_tree, patterns_of
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import QueuedUrl

MIN_PAGES = 50  # of a host
MAX_PATTERNS = 5_000
SAMPLES = 5
GROWTH = 0.5  # new URLs of the pattern per page: less ends by itself
DECLINE = 0.4  # of the growth at the beginning: so little is left of a finite section
REPEATS = ENOUGH // 3  # what a window weighs: three that say nothing new, eight of noise
NOISE = ENOUGH // 8
MAX_MISSES = 2  # windows without evidence in a row
MATURE_PAGES = 200  # until then what a pattern says is not known well enough to call more of it new
TURNS = 10
SAMPLED = 20
MAX_SAMPLES = 100  # of a pattern, until nothing else is left
GRANT = 50  # held URLs of a pattern at a time


class PatternChange(Enum):
    SUSPECTED = "suspected"
    HELD = "held"
    CLEARED = "cleared"  # it was suspected
    REFUTED = "refuted"  # it was held
    COUNTED = "counted"  # only the row is to be stored


class PatternVerdict(Struct, frozen=True):
    quarantine: Quarantine
    change: PatternChange


class TrapWatch:
    """What the pages of each pattern brought, and which patterns are suspected or held."""

    def __init__(self, window: int = WINDOW, max_patterns: int = MAX_PATTERNS, budget: int = BUDGET) -> None:
        self._window = window
        self._max_patterns = max_patterns
        self.budget = budget
        self._windows: OrderedDict[tuple[str, str], PageWindow] = OrderedDict()  # by host and pattern
        self._watched: Counter[str] = Counter()  # windows per host
        self._quarantines: dict[str, dict[str, Quarantine]] = {}
        self._turns: Counter[tuple[str, str]] = Counter()  # URLs of a suspected pattern
        self._granted = 0  # URLs of patterns that are held, since nothing else was left
        self._grants: dict[str, Counter[str]] = {}  # of them, those that were not offered yet, by host and pattern
        self.holds_spam = False  # whether links to hosts with spam are held

    def load(self, quarantine: Quarantine) -> None:
        """Restore what an earlier run decided."""
        self._quarantines.setdefault(quarantine.host, {})[quarantine.pattern] = quarantine

    def release(self, shards: Collection[int]) -> None:
        for host in [name for name in self._quarantines if shard_of(host_id(name)) in shards]:
            del self._quarantines[host]
            self._grants.pop(host, None)
        for key in [key for key in self._windows if shard_of(host_id(key[0])) in shards]:
            self._forget_window(key)

    # -- links ------------------------------------------------------------------------------------

    def refusal(self, url: str, host: str, found_on: str) -> str | None:
        """Return the rule that holds a link back, or None."""
        if host not in self._quarantines:
            return None
        if self.is_held_as_spam(host):
            return self._quarantines[host][SPAM_PATTERN].rule
        held = self._of_link(url, host, found_on)
        return held.rule if held is not None and held.is_held else None

    def is_suspected(self, url: str, host: str, found_on: str) -> bool:
        """Return whether a link belongs to a suspected pattern, and was found on its pages."""
        return host in self._quarantines and self._of_link(url, host, found_on) is not None

    def gets_a_turn(self, url: str, host: str) -> bool:
        """Return whether a link of a suspected pattern is not queued behind everything else: one in `TURNS`."""
        suspected = self.pattern_in_force(url, host)
        pattern = suspected.pattern if suspected is not None else ""
        self._turns[host, pattern] += 1
        return self._turns[host, pattern] % TURNS == 0

    def _of_link(self, url: str, host: str, found_on: str) -> Quarantine | None:
        """Return the suspected or held pattern that a link belongs to and was found on."""
        found = self.pattern_in_force(url, host)
        if found is None or not found_on or host_of(found_on) != host:
            return None
        return found if self.pattern_in_force(found_on, host) is not None else None

    def pattern_in_force(self, url: str, host: str) -> Quarantine | None:
        """Return the narrowest pattern of a URL that is suspected or held; None if one of them was released."""
        of_host = self._quarantines.get(host)
        if of_host is None:
            return None
        of_url = list(_matching(of_host, url))
        return of_url[0] if of_url and not any(each.is_released for each in of_url) else None

    def record_links(self, found_on: str, host: str, new: Iterable[QueuedUrl]) -> None:
        """Record the new URLs that a page led to. Call before `record`."""
        if host not in self._watched:
            return
        growths = [
            (pattern, window.growth)
            for pattern in self._patterns_of(found_on, host)
            if (window := self._windows.get((host, pattern))) is not None and not window.skipped
        ]
        if growths:
            found = [(url.url, patterns_of(url.url)) for url in new if url.host == host]
            for pattern, growth in growths:
                if pattern == TREE:
                    growth.new += len(found)
                elif is_tree(pattern):
                    growth.new += sum(pattern in patterns or contains(pattern, url) for url, patterns in found)
                else:
                    growth.new += sum(pattern in patterns for _, patterns in found)

    def record_held(self, url: str, host: str) -> bool:
        """Record a link that is held back and was not known; return whether it is a sample that is to be queued."""
        quarantine = self.pattern_in_force(url, host)
        if quarantine is None:
            return False
        window = self._windows.get((host, quarantine.pattern))
        if window is not None:
            window.growth.new += 1
        quarantine.found += 1
        is_enough = quarantine.samples_taken >= MAX_SAMPLES or self._left(host) < MAX_SAMPLES
        if quarantine.found % SAMPLED or is_enough:
            return False
        quarantine.samples_taken += 1
        return True

    def count_moved(self, url: str, host: str, count: int, *, is_spam: bool) -> Quarantine | None:
        """Count URLs that are held from now on, or no longer (a negative number); return the pattern."""
        quarantine = self.of_spam(host) if is_spam else self.pattern_in_force(url, host)
        if quarantine is not None:
            quarantine.held = max(0, quarantine.held + count)
        return quarantine

    # -- hosts with spam --------------------------------------------------------------------------

    def of_spam(self, host: str) -> Quarantine | None:
        return self._quarantines.get(host, {}).get(SPAM_PATTERN)

    def is_held_as_spam(self, host: str) -> bool:
        spam = self.of_spam(host)
        return self.holds_spam and spam is not None and not spam.is_released and not spam.demotes_only

    # -- pages ------------------------------------------------------------------------------------

    def record(  # noqa: PLR0917 - called for every page
        self, url: str, host: str, mark: PageMark, links: PageLinks, now: float, host_pages: int = MIN_PAGES
    ) -> PatternVerdict | None:
        """Record a page; return what follows for a pattern."""
        of_host = self._quarantines.get(host)
        if of_host is not None:
            of_url = list(_matching(of_host, url))
            if any(each.is_released for each in of_url):
                return None
            if of_url:
                return self._record_suspect(of_url[0], url, mark, links)
        verdict = None
        windows = self._windows
        for pattern in patterns_of(url):
            key = (host, pattern)
            window = windows.get(key)
            if window is None:
                window = self._add_window(key)
            else:
                windows.move_to_end(key)
                if window.skipped:
                    window.skipped -= 1
                    continue
            self._add(window, pattern, url, mark, links)
            if window.fetched >= self._window:
                verdict = verdict or self._judge(host, pattern, window, now, host_pages)
        return verdict

    def _patterns_of(self, url: str, host: str) -> Sequence[str]:
        quarantine = self.pattern_in_force(url, host)
        return patterns_of(url) if quarantine is None else (quarantine.pattern,)

    @staticmethod
    def _add(window: PageWindow, pattern: str, url: str, mark: PageMark, links: PageLinks) -> None:
        if len(window.samples) < SAMPLES:
            window.samples.append(url)
        is_dull = window.add(mark)
        window.growth.add(links, folder_of(url) if is_tree(pattern) else "", is_dull=is_dull)

    def _add_window(self, key: tuple[str, str]) -> PageWindow:
        window = self._windows[key] = PageWindow()
        self._watched[key[0]] += 1
        if len(self._windows) > self._max_patterns:
            self._forget_window(next(iter(self._windows)))
        return window

    def _forget_window(self, key: tuple[str, str]) -> None:
        if self._windows.pop(key, None) is not None:
            self._watched[key[0]] -= 1
            if not self._watched[key[0]]:
                del self._watched[key[0]]

    def _judge(self, host: str, pattern: str, window: PageWindow, now: float, host_pages: int) -> PatternVerdict | None:
        weight = _weight(window, pattern)
        if not weight:
            window.restart()
            return None
        narrow = f"{window.growth.folder}**" if is_tree(pattern) else pattern
        before = self._quarantines.get(host, {}).get(narrow)
        suspect = Quarantine(
            host,
            narrow,
            now,
            window.fetched,
            window.new_pages(),
            window.samples.copy(),
            reason=_reason(window),
            weight=weight,
            pages=before.pages + window.fetched if before is not None else _pages_so_far(window, host_pages),
            growth=window.growth.per_page,
            first_growth=window.growth.per_page,
        )
        self.load(suspect)
        window.restart(is_watched=True)
        if narrow != pattern:
            self._watched[host] += (host, narrow) not in self._windows
            self._windows[host, narrow] = window
            self._forget_window((host, pattern))
        return PatternVerdict(suspect, PatternChange.SUSPECTED)

    def _record_suspect(self, suspect: Quarantine, url: str, mark: PageMark, links: PageLinks) -> PatternVerdict | None:
        if suspect.pattern == SPAM_PATTERN:
            return None
        key = (suspect.host, suspect.pattern)
        window = self._windows.get(key) or self._add_window(key)
        self._windows.move_to_end(key)
        window.skipped = 0
        suspect.pages += 1
        self._add(window, suspect.pattern, url, mark, links)
        if not suspect.is_held:
            return self._judge_suspect(suspect, window) if window.fetched >= self._window else None
        if window.fetched >= self._window:
            return self._judge_held(suspect, window)
        return PatternVerdict(suspect, PatternChange.COUNTED)

    def _judge_suspect(self, suspect: Quarantine, window: PageWindow) -> PatternVerdict | None:
        weight = _weight(window, suspect.pattern)
        change = PatternChange.COUNTED
        if weight:
            suspect.fetched += window.fetched
            suspect.new += window.new_pages()
            suspect.weight += weight
            suspect.misses = 0
            suspect.growth = window.growth.per_page
            suspect.reason = _reason(window)
            suspect.samples = window.samples.copy()
            change = PatternChange.HELD if suspect.is_held else PatternChange.COUNTED
        elif window.growth.pages:
            suspect.misses += 1
            change = PatternChange.CLEARED if suspect.misses >= MAX_MISSES else PatternChange.COUNTED
        window.restart(is_watched=True)
        if change is PatternChange.CLEARED:
            self._clear(suspect)
        return PatternVerdict(suspect, change)

    def _judge_held(self, held: Quarantine, window: PageWindow) -> PatternVerdict | None:
        """Close a window of samples: what is finite after all, or says something new, is not held any longer."""
        growth = window.growth
        if growth.pages:
            held.growth = growth.per_page
            is_finite = held.growth < GROWTH or held.growth < DECLINE * held.first_growth
            # What was held as noise said new things all the time.
            is_new = window.pages >= MATURE_PAGES and window.is_new() and 2 * held.new < held.fetched
            held.misses = held.misses + 1 if is_finite or is_new else 0
        window.restart(is_watched=True)
        if held.misses >= MAX_MISSES:
            self._clear(held)
            return PatternVerdict(held, PatternChange.REFUTED)
        return PatternVerdict(held, PatternChange.COUNTED)

    def _clear(self, suspect: Quarantine) -> None:
        """Watch a pattern as if it had never been suspected, except that what it took counts against the budget."""
        suspect.weight = suspect.misses = 0
        self._turns.pop((suspect.host, suspect.pattern), None)

    # -- what is held, when nothing else is left -------------------------------------------------------

    def hosts_with_held(self) -> list[str]:
        return [host for host in self._quarantines if self.held(host)]

    def grant(self, host: str, host_pages: int, crawl_pages: int) -> int:
        """Allow some held URLs of a host to be fetched since nothing else is left; return how many."""
        left = min(self._left(host, host_pages), max(self.budget, crawl_pages // 10) - self._granted)
        grants = self._grants.setdefault(host, Counter())
        grants.clear()
        for held in self.held(host):
            grants[held.pattern] = max(0, min(GRANT, left - grants.total(), held.held))
        return grants.total()

    def _left(self, host: str, host_pages: int = 0) -> int:
        """Return how many more pages of patterns that were suspected or held may be fetched from a host."""
        of_host = self._quarantines.get(host, {}).values()
        spent = sum(each.pages for each in of_host if each.pattern != SPAM_PATTERN)
        return max(self.budget, host_pages // 10) - spent if self.budget else 0

    def held(self, host: str) -> list[Quarantine]:
        known = self._quarantines.get(host, {}).values()
        return [each for each in known if each.is_held and each.pattern != SPAM_PATTERN]

    def granted(self, host: str) -> int:
        """Return how many held URLs of a host may be offered now."""
        return self._grants[host].total() if host in self._grants else 0

    def end_grants(self, host: str) -> None:
        """Record that all held URLs of a host were gone through: of a pattern with grants left, no more are held."""
        for pattern, left in self._grants.pop(host, Counter()).items():
            if left > 0 and (held := self._quarantines.get(host, {}).get(pattern)) is not None:
                held.held = 0

    def may_offer(self, url: str, host: str) -> bool:
        """Return whether a held URL may be queued now; one that may is counted against what was granted."""
        held = self.pattern_in_force(url, host)
        if held is None or not held.is_held:
            return True
        grants = self._grants.get(host)
        if grants is None or grants[held.pattern] <= 0:
            return False
        grants[held.pattern] -= 1
        self._granted += 1
        return True

    def held_of(self, host: str) -> int:
        """Return how many URLs of a host the patterns in quarantine hold."""
        return sum(each.held for each in self.held(host))

    def has_released(self, host: str) -> bool:
        return any(each.is_released for each in self._quarantines.get(host, {}).values())


def _matching(of_host: dict[str, Quarantine], url: str) -> Iterator[Quarantine]:
    """Return the patterns of a host that contain a URL, the narrowest first."""
    for pattern in patterns_of(url):
        found = of_host.get(pattern)
        if found is not None and found.is_in_force and not is_tree(pattern):
            yield found
    trees = [each for each in of_host.values() if is_tree(each.pattern) and each.is_in_force]
    yield from sorted((each for each in trees if contains(each.pattern, url)), key=lambda each: -len(each.pattern))


def _pages_so_far(window: PageWindow, host_pages: int) -> int:
    """Return about how many pages of a pattern were fetched before it was suspected: a restart forgets windows."""
    return min(host_pages, 2 * (MIN_PAGES + window.pages))


def _weight(window: PageWindow, pattern: str) -> int:
    """Return how much a full window speaks for a trap; 0 if it does not."""
    growth = window.growth
    if is_tree(pattern) and not growth.is_spread:
        return 0
    if not growth.pages or growth.per_page < GROWTH:
        return 0
    if not window.is_new():
        return REPEATS
    return NOISE if growth.is_a_tree_of_noise else 0


def _reason(window: PageWindow) -> str:
    said = "no page has sentences" if window.is_new() else "the pages say nothing new"
    return f"{said}, and each leads to {window.growth.per_page:.1f} more of its kind"
