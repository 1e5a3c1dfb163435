"""What may this node of a cluster do at an address whose hosts belong to several nodes?

Hosts of one address are in different shards, so a limit per address concerns several nodes:

- **Requests at once.** Half of the limit is divided equally: each node may use its share unasked. The other half is a
  pool in the shared ledger: a node that needs more than its share asks for permits, and returns them when it needs
  them no longer. A node that has just joined has no share yet, since the others still count on theirs.
- **Pace.** A node asks for the address itself, for some seconds: only this node may send requests there until then,
  with the usual distance between them, and the last one that long before the end.

`asks` says what to ask for, `grant` records the answer. On one machine none of this exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.arrival import MAX_TRANSIT_S
from gossamer.core.limits import FrontierLimits

if TYPE_CHECKING:
    from gossamer.core.gates import AddressSlot

_SLICE_DELAYS, _MIN_SLICE_S = 4, 1.0
_NO_LIMIT = 1 << 30


class AddressRules(Struct, frozen=True):
    """What the shared ledger must know of the limits. The same for all nodes of a crawl."""

    pool: int  # requests at once, of all nodes together, beyond their shares; 0: no limit
    slice_s: float  # how long an address is granted at a time; 0: there is no pace


class AddressAsk(Struct, frozen=True):
    """What a node needs at an address."""

    in_use: int  # permits that it cannot return: requests are under way
    wanted: int  # permits in all; 0: it needs the address no longer


class AddressGrant(Struct, frozen=True):
    """What a node got at an address."""

    permits: int
    seconds: float = 0.0  # with a pace: how long the address is this node's, from when the answer was made


def rules_of(limits: FrontierLimits) -> AddressRules:
    """Return what the shared ledger must know of the limits per address."""
    connections, delay_s = limits.address_connections, limits.address_delay_s
    slice_s = max(_MIN_SLICE_S, _SLICE_DELAYS * delay_s) + MAX_TRANSIT_S if delay_s else 0.0
    return AddressRules(connections - connections // 2, slice_s)


@dataclass(slots=True)
class _Held:
    permits: int = 0
    until: float = 0.0  # with a pace: no request may be sent after this


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

    def is_closed(self, slot: AddressSlot, now: float) -> bool:
        """Return whether a request must wait for an answer of the shared ledger; then it is asked."""
        is_closed = slot.in_flight >= self.connections(slot.name)
        if self._limits.address_delay_s and not is_closed:
            held = self._held.get(slot.name)
            is_closed = held is None or held.until <= now
        if is_closed:
            self._held.setdefault(slot.name, _Held())
        return is_closed

    def needs_slot(self) -> bool:
        """Return whether even the first request to an address must ask."""
        return bool(self._limits.address_delay_s) or (bool(self._limits.address_connections) and not self._share())

    def send_until(self, address: str) -> float:
        """Return until when a request to an address may be sent."""
        held = self._held.get(address)
        return held.until if held is not None and self._limits.address_delay_s else float("inf")

    def asks(self, slots: Mapping[str, AddressSlot]) -> dict[str, AddressAsk]:
        """Return what to ask the shared ledger for; what is needed no longer is returned, and then forgotten."""
        asks: dict[str, AddressAsk] = {}
        share, pool = self._share(), rules_of(self._limits).pool
        for address, held in list(self._held.items()):
            slot = slots.get(address)
            in_flight, waiting = (slot.in_flight, len(slot.blocked)) if slot is not None else (0, 0)
            in_use = max(0, min(in_flight - share, held.permits))
            wanted = min(pool, max(0, in_flight + waiting - share))
            if self._limits.address_delay_s:
                wanted = max(wanted, int(slot is not None))
            asks[address] = AddressAsk(in_use, wanted)
            if not wanted and not waiting:  # else the answer wakes those that the share is enough for now
                del self._held[address]
        return asks

    def grant(self, address: str, grant: AddressGrant, asked_at: float) -> None:
        """Record an answer to what was asked at a time."""
        held = self._held.get(address)
        if held is not None:
            held.permits = grant.permits
            if grant.seconds:
                held.until = asked_at + grant.seconds - self._limits.address_delay_s - MAX_TRANSIT_S
