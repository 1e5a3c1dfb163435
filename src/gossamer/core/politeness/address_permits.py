"""What may this node of a cluster do at an address whose hosts belong to several nodes?

Hosts of one address are in different shards, so several nodes share a limit per address:

- **Requests at once.** Half of the limit is divided equally: each node may use its share unasked. The other half is a
  pool in the shared ledger: a node that needs more than its share asks for permits. It keeps them for some seconds
  after their last use, if no other node waits for them: with more nodes than connections there are no shares, and a
  host would otherwise wait for an answer before every request. A node that has just joined has no share yet, since the
  others still count on theirs.
- **Pace.** A node asks for the address itself, for some seconds: only this node may send requests there until then,
  with the usual distance between them, and the last one that long before the end.

`asks` says what to ask for, `grant` records the answer. On one machine none of this exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.arrival import MAX_TRANSIT_S

if TYPE_CHECKING:
    from gossamer.core.politeness.gates import SharedSlot

_SLICE_DELAYS = 4
_MIN_SLICE_S = 1.0
_NO_LIMIT = 1 << 30
LINGER_S = 5.0  # how long permits that are not used are kept
REPORT_AGAIN_S = 3.0  # what has not changed is reported again after this
VALID_S = 9.0  # how long a permit may be used after it was asked for: others count it for 10 s


class AddressRules(Struct, frozen=True):
    """What the shared ledger must know of the limits. The same for all nodes of a crawl."""

    pool: int  # requests at once, of all nodes together, beyond their shares; 0: no limit
    slice_s: float  # how long an address is granted at a time; 0: there is no pace


class AddressAsk(Struct, frozen=True):
    in_use: int  # permits that it cannot return: requests are under way
    wanted: int  # permits in all; 0: it needs none now
    kept: int = 0  # permits that it may soon need again: they stay if no other node waits


class AddressGrant(Struct, frozen=True):
    permits: int
    seconds: float = 0.0  # with a pace: how long the address is this node's, from when the answer was made


def rules_of(limits: FrontierLimits) -> AddressRules:
    """Return what the shared ledger must know of the limits per address."""
    connections = limits.address_connections
    delay_s = limits.address_delay_s
    slice_s = max(_MIN_SLICE_S, _SLICE_DELAYS * delay_s) + MAX_TRANSIT_S if delay_s else 0.0
    return AddressRules(connections - connections // 2, slice_s)


class _Held(Struct):
    permits: int = 0
    until: float = 0.0  # with a pace: no request may be sent after this
    valid_until: float = 0.0  # permits may be used until then
    kept: int = 0
    kept_at: float = 0.0  # when as many were needed
    reported: AddressAsk | None = None
    reported_at: float = 0.0


class AddressPermits:
    """What this node may do at addresses."""

    def __init__(self, limits: FrontierLimits) -> None:
        self._limits = limits
        self._held: dict[str, _Held] = {}  # of addresses that were closed for want of a permit
        self.members = 0  # nodes that divide the shares; 0: none for this node yet

    def _share(self) -> int:
        return self._limits.address_connections // 2 // self.members if self.members else 0

    def connections(self, address: str) -> int:
        """Return how many requests may be at an address at once."""
        if not self._limits.address_connections:
            return _NO_LIMIT
        held = self._held.get(address)
        return self._share() + (held.permits if held is not None else 0)

    def is_closed(self, slot: SharedSlot, now: float) -> bool:
        """Return whether a request must wait for an answer of the shared ledger; then it is asked."""
        held = self._held.get(slot.name)
        is_closed = slot.in_flight >= self.connections(slot.name)
        if held is not None and held.permits and held.valid_until <= now:
            is_closed = slot.in_flight >= self._share()
        if self._limits.address_delay_s and not is_closed:
            is_closed = held is None or held.until <= now
        if is_closed and held is None:
            self._held[slot.name] = _Held()
        return is_closed

    def needs_slot(self) -> bool:
        """Return whether even the first request to an address must ask."""
        return bool(self._limits.address_delay_s) or (bool(self._limits.address_connections) and not self._share())

    def send_until(self, address: str) -> float:
        """Return until when a request to an address may be sent."""
        held = self._held.get(address)
        return held.until if held is not None and self._limits.address_delay_s else float("inf")

    def asks(self, slots: Mapping[str, SharedSlot], now: float) -> dict[str, AddressAsk]:
        """Return what to ask the shared ledger for; what is needed no longer is returned, and then forgotten.

        What was reported a moment ago and has not changed is left out.
        """
        asks: dict[str, AddressAsk] = {}
        share = self._share()
        pool = rules_of(self._limits).pool
        for address, held in list(self._held.items()):
            slot = slots.get(address)
            in_flight, waiting = (slot.in_flight, slot.waiting) if slot is not None else (0, 0)
            wanted = min(pool, max(0, in_flight + waiting - share))
            if wanted >= held.kept or now - held.kept_at >= LINGER_S:
                held.kept = wanted
                held.kept_at = now
            if self._limits.address_delay_s:
                wanted = max(wanted, int(slot is not None))
            ask = AddressAsk(max(0, in_flight - share), wanted, held.kept)
            if self._must_report(held, ask, now) or (waiting and not wanted):
                asks[address] = ask
                held.reported = ask
                held.reported_at = now
            if not wanted and not held.kept and not waiting:  # else the answer wakes those that the share is enough for
                del self._held[address]
        return asks

    def _must_report(self, held: _Held, ask: AddressAsk, now: float) -> bool:
        """Return whether the shared ledger must hear it now, and not only for it to last."""
        if held.reported is None or now - held.reported_at >= REPORT_AGAIN_S or self._limits.address_delay_s:
            return True
        is_short = max(ask.wanted, ask.in_use, held.reported.in_use) > held.permits
        return is_short or (ask.wanted, ask.kept) != (held.reported.wanted, held.reported.kept)

    def grant(self, address: str, grant: AddressGrant, asked_at: float) -> None:
        """Record an answer to what was asked at a time."""
        held = self._held.get(address)
        if held is not None:
            held.permits = grant.permits
            held.valid_until = asked_at + VALID_S
            if grant.seconds:
                held.until = asked_at + grant.seconds - self._limits.address_delay_s - MAX_TRANSIT_S
