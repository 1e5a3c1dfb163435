"""Who may use an address, of several nodes: what a shared ledger knows of it, and the rules of its `reserve`."""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules

HELD_S = 10.0  # what a node holds counts this long after it said so
WAITING_S = 1.0
TURN_S = 2.0  # how long permits are held at least, if others wait


class _Held(Struct, array_like=True):
    permits: int  # including those that are still in use
    granted: int
    said_at: float
    since: float


class _Waiting(Struct, array_like=True):
    said_at: float
    since: float


class SharedAddress(Struct, array_like=True):
    """An address that several nodes contact; nodes are texts that name an incarnation."""

    held: dict[str, _Held] = {}
    waiting: dict[str, _Waiting] = {}
    holder: str = ""
    until: float = 0.0
    following: str = ""
    followed_at: float = 0.0

    def grant(self, node: str, rules: AddressRules, ask: AddressAsk, now: float, *, is_new: bool) -> AddressGrant:
        """Return what a node gets. `is_new`: the ledger has started just now, and may have lost what it granted."""
        permits = self.permits(node, ask, rules.pool, now, is_new=is_new)
        seconds = self.slice(node, rules.slice_s, now, is_new=is_new) if rules.slice_s and ask.wanted else 0.0
        return AddressGrant(permits, seconds)

    def permits(self, node: str, ask: AddressAsk, pool: int, now: float, *, is_new: bool) -> int:
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
        if ask.kept > granted and not waiting and not is_new:
            granted = max(granted, min(ask.kept, pool - others)) if pool else ask.kept
        held = max(granted, ask.in_use)
        self.held.pop(node, None)
        self.waiting.pop(node, None)
        if held:
            since = now if not mine.granted or granted < mine.granted else mine.since
            self.held[node] = _Held(held, granted, now, since)
        if ask.wanted and not granted:
            self.waiting[node] = _Waiting(now, wait.since)
        return granted

    def slice(self, node: str, slice_s: float, now: float, *, is_new: bool) -> float:
        """Return for how long the address is this node's."""
        is_waited_for = self.following not in ("", node) and now - self.followed_at < WAITING_S
        if self.until > now and self.holder != node:
            if not is_waited_for:
                self.following = node
                self.followed_at = now
            return 0.0
        if is_waited_for:
            return max(0.0, self.until - now)
        if is_new:
            return 0.0
        self.holder = node
        self.until = now + slice_s
        self.following = ""
        return slice_s


def is_new(rules: AddressRules, since_start_s: float) -> bool:
    """Return whether what a ledger granted before its last start may still be in use."""
    return since_start_s <= max(rules.slice_s, TURN_S)
