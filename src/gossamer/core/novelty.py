"""Does a kind of URL at a host still bring anything new? Decided by the content of its pages.

A URL has two patterns: its path with numbers replaced and the names of its parameters, and a
coarser one, so that neither numbers nor ever new combinations of parameters escape. Of every
`WINDOW` pages of a pattern at least `MIN_NEW` must have text that was not seen before; else the
pattern goes into quarantine: its URLs are held, not forgotten, and the operator may release it.
Numbered pages with new content are never held.

Pure. Only hosts with `MIN_PAGES` pages are watched. Memory: at most `MAX_PATTERNS` patterns
with `KNOWN` fingerprints each (10 kB per pattern); 4 µs per page, 0.05 µs per link of a host without quarantine.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from msgspec import Struct

from gossamer.core.identity import host_id, shard_of
from gossamer.core.url import path_of

WINDOW = 100
MIN_NEW = 5
MIN_PAGES = 50
MAX_PATTERNS = 10_000
KNOWN = 48
SAMPLES = 5

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

    @property
    def name(self) -> str:
        """The name that the operator reads and writes."""
        return self.host + self.pattern


@dataclass(slots=True)
class _Window:
    fetched: int = 0
    new: int = 0
    known: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    samples: list[str] = field(default_factory=list)


def patterns_of(url: str) -> tuple[str, str]:
    """Return the two patterns of a canonical URL: by its shape, and the coarser one."""
    path, mark, query = path_of(url).partition("?")
    shape = _NUMBER.sub("#", _TOKEN.sub("*", path))
    if mark:
        names = sorted({part.partition("=")[0] for part in query.split("&")})
        return f"{shape}?{'&'.join(names)[:200]}", f"{shape}?*"
    first, slash, rest = path[1:].partition("/")
    return shape, f"/{first}/**" if slash and rest else "/*"


class Novelty:
    """What each pattern brought, and which are in quarantine."""

    def __init__(self, window: int = WINDOW, min_new: int = MIN_NEW, max_patterns: int = MAX_PATTERNS) -> None:
        self._window = window
        self._max_patterns = max_patterns
        self._min_new = min_new
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()  # by host and pattern
        self._held: dict[str, dict[str, Quarantine]] = {}

    def load(self, quarantine: Quarantine) -> None:
        """Restore what an earlier run decided."""
        self._held.setdefault(quarantine.host, {})[quarantine.pattern] = quarantine

    def release(self, shard: int) -> None:
        """Forget the hosts of a shard."""
        for host in [name for name in self._held if shard_of(host_id(name)) == shard]:
            del self._held[host]
        for host, pattern in [key for key in self._windows if shard_of(host_id(key[0])) == shard]:
            del self._windows[host, pattern]

    def refusal(self, url: str, host: str) -> str | None:
        """Return the name of the trap if a URL matches a pattern in quarantine, else None."""
        held = self._held.get(host)
        if held is None:
            return None
        for pattern in patterns_of(url):
            quarantine = held.get(pattern)
            if quarantine is not None and not quarantine.is_released:
                return "quarantine"
        return None

    def record(self, url: str, host: str, fingerprint: bytes, *, is_copy: bool, now: float) -> Quarantine | None:
        """Record a page; return the quarantine that begins with it, or None."""
        begun = None
        for pattern in patterns_of(url):
            if pattern in self._held.get(host, ()):
                continue
            window = self._window_of((host, pattern))
            window.fetched += 1
            if len(window.samples) < SAMPLES:
                window.samples.append(url)
            if not is_copy and fingerprint not in window.known:
                window.new += 1
            window.known[fingerprint] = None
            if len(window.known) > KNOWN:
                window.known.popitem(last=False)
            if window.fetched >= self._window:
                begun = self._judge(host, pattern, window, now) or begun
        return begun

    def _window_of(self, name: tuple[str, str]) -> _Window:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = _Window()
            if len(self._windows) > self._max_patterns:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(name)
        return window

    def _judge(self, host: str, pattern: str, window: _Window, now: float) -> Quarantine | None:
        """Close a full window: begin a quarantine, or reset the counts and retain the known fingerprints."""
        if window.new >= self._min_new:
            window.fetched = window.new = 0
            window.samples.clear()
            return None
        del self._windows[host, pattern]
        quarantine = Quarantine(host, pattern, now, window.fetched, window.new, window.samples)
        self._held.setdefault(host, {})[pattern] = quarantine
        return quarantine


class SoftNotFound:
    """Which hosts answer "not found" with status 200? Suspected by repeated text, proven by one probe.

    If `suspicious` URLs of a host have the same text, a page that cannot exist is requested from it. The
    text of that answer is its "not found", whatever the status. No host is probed without such a reason.
    At most `max_hosts` hosts are watched, each with `texts` fingerprints.
    """

    def __init__(self, suspicious: int = 10, max_hosts: int = 2000, texts: int = 32) -> None:
        self._suspicious = suspicious
        self._max_hosts = max_hosts
        self._texts = texts
        self._counts: OrderedDict[str, dict[bytes, int]] = OrderedDict()
        self._probed: OrderedDict[str, None] = OrderedDict()
        self._changed: set[str] = set()

    def record(self, host: str, fingerprint: bytes) -> bool:
        """Record a page; return whether its host should be probed now (once)."""
        if host in self._probed:
            return False
        counts = self._counts.get(host)
        if counts is None:
            counts = self._counts[host] = {}
            if len(self._counts) > self._max_hosts:
                self._counts.popitem(last=False)
        count = counts.get(fingerprint, 0) + 1
        if count < self._suspicious:
            if count > 1 or len(counts) < self._texts:
                counts[fingerprint] = count
            if count > 1:
                self._changed.add(host)
            return False
        del self._counts[host]
        self._set_probed(host)
        self._changed.add(host)
        return True

    def _set_probed(self, host: str) -> None:
        self._probed[host] = None
        if len(self._probed) > 10 * self._max_hosts:
            self._probed.popitem(last=False)

    # -- what survives a restart ------------------------------------------------------------------

    def is_probed(self, host: str) -> bool:
        """Return whether a host was probed."""
        return host in self._probed

    def repeated(self, host: str) -> dict[bytes, int]:
        """Return the texts that a host sent more than once, and how often. A text sent once is no suspicion."""
        return {text: count for text, count in self._counts.get(host, {}).items() if count > 1}

    def restore(self, host: str, repeated: dict[bytes, int], *, is_probed: bool) -> None:
        """Restore the suspicion of an earlier run."""
        if is_probed:
            self._set_probed(host)
        elif repeated:
            self._counts[host] = dict(repeated)

    def take_changed(self) -> set[str]:
        """Return the hosts whose suspicion changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def release(self, shard: int) -> None:
        """Forget the hosts of a shard."""
        for host in [name for name in self._counts if shard_of(host_id(name)) == shard]:
            del self._counts[host]
