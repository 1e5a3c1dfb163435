"""The first pass for breadth: which links would add a new registrable domain?

A domain is pending while one URL of it is queued; up to three more are kept aside and tried
where that one fails. Redirect targets are always let through. When enough domains have
a page the pass is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gossamer.records import Link

RESERVES_PER_DOMAIN = 3


@dataclass(slots=True)
class _Pending:
    queued: int = 0
    reserves: list[tuple[Link, int]] = field(default_factory=list)  # with their depth


class FirstPass:
    """The domains reached, and those on the way."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._reached: set[str] = set()
        self._pending: dict[str, _Pending] = {}

    @property
    def is_over(self) -> bool:
        """Tell whether the target is reached."""
        return len(self._reached) >= self._target

    @property
    def reached(self) -> int:
        """How many domains have a page."""
        return len(self._reached)

    def lets_in(self, link: Link, domain: str, depth: int) -> bool:
        """Tell whether a link is to be queued; one that is not may be kept in reserve."""
        if domain in self._reached:
            return False
        pending = self._pending.get(domain)
        if pending is None:
            self._pending[domain] = _Pending()
            return True
        if len(pending.reserves) < RESERVES_PER_DOMAIN and all(link.id != kept.id for kept, _ in pending.reserves):
            pending.reserves.append((link, depth))
        return False

    def forget_unqueued(self, domain: str) -> None:
        """Take note that the link that was let in was known already, so that nothing of its domain is queued."""
        pending = self._pending.get(domain)
        if pending is not None and not pending.queued:
            del self._pending[domain]

    def queue(self, domain: str) -> None:
        """Take note that a URL of a domain was queued."""
        if domain not in self._reached:
            self._pending.setdefault(domain, _Pending()).queued += 1

    def reach(self, domain: str) -> None:
        """Take note that a domain has a page."""
        self._reached.add(domain)
        self._pending.pop(domain, None)

    def fail(self, domain: str) -> tuple[Link, int] | None:
        """Take note that a queued URL brought no page; return a reserve to try, where none is queued any more."""
        pending = self._pending.get(domain)
        if pending is None:
            return None
        pending.queued = max(0, pending.queued - 1)
        if pending.queued:
            return None
        if pending.reserves:
            return pending.reserves.pop(0)
        del self._pending[domain]
        return None
