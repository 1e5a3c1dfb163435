"""How many date-shaped URLs may a host have? Forty that bring nothing new, and any number that does.

An endless calendar and an archive by date have the same URLs, so pages decide. Only dated URLs that were found on
dated pages count: what an index or a sitemap names is finite. Such a URL is admitted while fewer than `MAX_UNPROVEN`
of its host's are unproven; further ones are held back. Every `JUDGED_PAGES` dated pages of a host are judged as a
window, by the measure of `novelty`: the share of them that brought something new is proven. Each of those makes room
for itself and for one that brings nothing, since a calendar of events has pages for months, too. So a calendar with a
share `s` of new pages (the first January, and so on) ends after about 40 / (1 - 2 s) pages. A dated URL that brought
no page (an error, a redirect, robots.txt) is withdrawn: it proves nothing about a calendar. The first judgement comes
after 34 pages, since boilerplate must be known before; so forty suffice.

The window is in memory only. Pages that were not judged when a crawl ends are withdrawn by the next run, unless the
last judgement was "nothing new": so a restart neither stops an archive nor gives a calendar a new budget.
Pure. Costs one look-up per link of a host without dated URLs.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field

from gossamer.core.traps.novelty import PageMark, PageWindow
from gossamer.core.traps.shapes import is_dated
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.state import HostEvidence

MAX_UNPROVEN = 40
JUDGED_PAGES = 20


class _Dated(Struct):
    admitted: int = 0
    proven: int = 0
    unjudged: int = 0
    is_calendar: bool = False  # the last window brought nothing new
    window: PageWindow = field(default_factory=PageWindow)

    def room(self) -> int:
        return MAX_UNPROVEN - self.admitted + 2 * self.proven


class DateBudget:
    """The dated URLs of each host: how many were admitted, and how many of them proved to be new."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Dated] = {}
        self._full: set[str] = set()
        self._changed: set[str] = set()

    def refusal(self, url: str, host: str, found_on: str) -> str | None:
        """Return the rule that holds a dated URL back for now, or None."""
        return "calendar" if host in self._full and is_dated(url) and is_dated(found_on) else None

    def has_dated(self, host: str) -> bool:
        return host in self._hosts

    def room(self, host: str) -> int:
        """Return how many more dated URLs of a host may be admitted now."""
        dated = self._hosts.get(host)
        return MAX_UNPROVEN if dated is None else max(0, dated.room())

    def admit(self, host: str) -> None:
        """Count a dated URL that is about to be queued."""
        dated = self._hosts.get(host)
        if dated is None:
            dated = self._hosts[host] = _Dated()
        dated.admitted += 1
        self._change(host, dated)

    def withdraw(self, host: str) -> None:
        """Count a dated URL that was known already, or that brought no page."""
        dated = self._hosts.get(host)
        if dated is not None:
            dated.admitted = max(dated.proven, dated.admitted - 1)
            self._change(host, dated)

    def record(self, host: str, mark: PageMark) -> None:
        """Record a dated page; judge the window if it is full."""
        dated = self._hosts[host]
        dated.window.add(mark)
        dated.unjudged += 1
        if dated.window.fetched >= JUDGED_PAGES:
            new = dated.unjudged * dated.window.new_pages() // dated.window.fetched
            dated.is_calendar = not new
            dated.proven = min(dated.admitted, dated.proven + new)
            dated.unjudged = 0
            dated.window.restart()
        self._change(host, dated)

    def _change(self, host: str, dated: _Dated) -> None:
        self._changed.add(host)
        if dated.room() <= 0:
            self._full.add(host)
        else:
            self._full.discard(host)

    # -- what survives a restart ------------------------------------------------------------------

    def restore(self, evidence: HostEvidence) -> None:
        if not evidence.dated_urls:
            return
        given_back = 0 if evidence.is_calendar else evidence.dated_unjudged
        admitted = max(evidence.dated_new, evidence.dated_urls - given_back)
        dated = _Dated(admitted, evidence.dated_new, is_calendar=evidence.is_calendar)
        self._hosts[evidence.host] = dated
        if dated.room() <= 0:
            self._full.add(evidence.host)

    def store(self, evidence: HostEvidence) -> None:
        dated = self._hosts.get(evidence.host)
        if dated is not None:
            evidence.dated_urls = dated.admitted
            evidence.dated_new = dated.proven
            evidence.dated_unjudged = dated.unjudged
            evidence.is_calendar = dated.is_calendar

    def take_changed(self) -> set[str]:
        """Return the hosts whose counts changed since the last call."""
        changed = self._changed
        self._changed = set()
        return changed

    def release(self, shards: Collection[int]) -> None:
        for host in [name for name in self._hosts if shard_of(host_id(name)) in shards]:
            del self._hosts[host]
            self._full.discard(host)
