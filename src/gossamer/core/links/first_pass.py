"""The first pass for breadth: which links would add a new registrable domain?

A domain is pending while one URL of it is queued; up to three more are in reserve and tried if that
one fails. Redirect targets are always admitted. The pass is over when enough domains have a page.
Reserves are stored with the domain's record: `take_changed` returns the domains whose reserves changed.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field

from gossamer.core.url.identity import shard_of_domain
from gossamer.model.records import Link, Reserve

RESERVES_PER_DOMAIN = 3


class _Pending(Struct):
    queued: int = 0
    reserves: list[Reserve] = field(default_factory=list)


class FirstPass:
    """The domains reached, and those pending."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._reached: set[str] = set()
        self._pending: dict[str, _Pending] = {}
        self._changed: set[str] = set()  # domains whose reserves are to be stored
        self._sent: dict[str, int] = {}  # links to domains of other nodes
        self.reached_by_all = 0  # domains with a page in the commits of all nodes

    @property
    def domains_left(self) -> int:
        """How many domains are still to be reached."""
        return max(0, self._target - max(len(self._reached), self.reached_by_all))

    @property
    def is_over(self) -> bool:
        return not self.domains_left

    def admits(self, link: Link, domain: str, depth: int, seed: int = 0) -> bool:
        """Return whether a link is to be queued; one that is not may become a reserve."""
        if domain in self._reached:
            return False
        pending = self._pending.get(domain)
        if pending is None:
            self._pending[domain] = _Pending()
            return True
        is_known = any(reserve.url == link.url for reserve in pending.reserves)
        if len(pending.reserves) < RESERVES_PER_DOMAIN and not is_known:
            pending.reserves.append(Reserve(link.url, depth, seed))
            self._changed.add(domain)
        return False

    def sends(self, domain: str) -> bool:
        """Return whether a link is to be sent to the node that owns its domain, which needs only a few."""
        sent = self._sent.get(domain, 0)
        self._sent[domain] = sent + 1
        return sent <= RESERVES_PER_DOMAIN

    def forget_unqueued(self, domain: str) -> None:
        """Record that the admitted link was known already, so that nothing of its domain is queued."""
        pending = self._pending.get(domain)
        if pending is not None and not pending.queued:
            del self._pending[domain]

    def queue(self, domain: str, count: int = 1) -> None:
        if domain not in self._reached:
            self._pending.setdefault(domain, _Pending()).queued += count

    def reach(self, domain: str) -> None:
        self._reached.add(domain)
        pending = self._pending.pop(domain, None)
        if pending is not None and pending.reserves:
            self._changed.add(domain)

    def fail(self, domain: str) -> Reserve | None:
        """Record that a queued URL brought no page; return a reserve to try if none is queued any more."""
        pending = self._pending.get(domain)
        if pending is None:
            return None
        pending.queued = max(0, pending.queued - 1)
        if pending.queued:
            return None
        if pending.reserves:
            self._changed.add(domain)
            return pending.reserves.pop(0)
        del self._pending[domain]
        return None

    # -- what survives a restart ------------------------------------------------------------------

    def restore(self, domain: str, reserves: tuple[Reserve, ...]) -> None:
        """Restore the reserves of an earlier run; what is queued of the domain is counted by `queue`."""
        if reserves and domain not in self._reached:
            self._pending.setdefault(domain, _Pending()).reserves = list(reserves)

    def take_changed(self) -> dict[str, tuple[Reserve, ...]]:
        """Return the reserves of the domains whose reserves changed since the last call."""
        changed = self._changed
        self._changed = set()
        return {domain: tuple(self._pending[domain].reserves) if domain in self._pending else () for domain in changed}

    def release(self, shards: Collection[int]) -> None:
        """Forget the pending domains of shards; those reached still count for the target."""
        for domain in [name for name in self._pending if shard_of_domain(name) in shards]:
            del self._pending[domain]
