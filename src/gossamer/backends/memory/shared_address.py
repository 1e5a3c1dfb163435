"""Who may use an address, of several nodes: the rules of `reserve` in the shared ledger in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from gossamer.core.address_permits import AddressAsk
from gossamer.ports.shared_ledger import NodeId

HELD_S = 10.0  # what a node holds counts this long after it said so
WAITING_S = 1.0
TURN_S = 2.0  # how long permits are held at least, if others wait


@dataclass(slots=True)
class _Held:
    permits: int  # including those that are still in use
    granted: int
    said_at: float
    since: float


@dataclass(slots=True)
class _Waiting:
    said_at: float
    since: float


@dataclass(slots=True)
class SharedAddress:
    """An address that several nodes contact."""

    held: dict[NodeId, _Held] = field(default_factory=dict)
    waiting: dict[NodeId, _Waiting] = field(default_factory=dict)
    holder: NodeId | None = None
    until: float = 0.0
    following: NodeId | None = None
    followed_at: float = 0.0

    def permits(self, node: NodeId, ask: AddressAsk, pool: int, now: float, *, is_new: bool) -> int:
        """Return how many permits a node has from now on."""
        others = sum(each.permits for name, each in self.held.items() if name != node and now - each.said_at < HELD_S)
        waiting = [each for name, each in self.waiting.items() if name != node and now - each.said_at < WAITING_S]
        mine = self.held.get(node) or _Held(0, 0, now, now)
        wait = self.waiting.get(node) or _Waiting(now, now)
        granted = ask.wanted
        if is_new:
            granted = min(ask.wanted, ask.in_use)
        elif pool:
            free = pool - others
            if not mine.granted:
                free -= sum(each.since < wait.since for each in waiting)
            elif waiting:
                free = min(free, mine.granted - len(waiting) if now - mine.since >= TURN_S else mine.granted)
            granted = max(0, min(ask.wanted, free))
        held = max(granted, ask.in_use)
        self.held.pop(node, None)
        self.waiting.pop(node, None)
        if held:
            since = now if not mine.granted or granted < mine.granted else mine.since
            self.held[node] = _Held(held, granted, now, since)
        if ask.wanted and not granted:
            self.waiting[node] = _Waiting(now, wait.since)
        return granted

    def slice(self, node: NodeId, slice_s: float, now: float, *, is_new: bool) -> float:
        """Return for how long the address is this node's."""
        is_waited_for = self.following not in (None, node) and now - self.followed_at < WAITING_S
        if self.until > now and self.holder != node:
            if not is_waited_for:
                self.following, self.followed_at = node, now
            return 0.0
        if is_waited_for:
            return max(0.0, self.until - now)
        if is_new:
            return 0.0
        self.holder, self.until, self.following = node, now + slice_s, None
        return slice_s
