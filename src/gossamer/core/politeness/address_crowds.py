"""How soon may a new host be contacted whose address has very many hosts?

Shared hosting has hundreds of hosts at one address, and a farm of domains an infinite number: each of its pages leads
to more of them. The first `max_hosts_per_address` hosts that resolve to an address are contacted at once; after that
one more per `NEW_HOST_S`, the others wait in order. So a farm gets a small, constant share of a crawl, whatever it
links to, and nothing honest is lost: it is only later. Counted per run, for the addresses that were seen last; an IPv6
address counts by its first 64 bits, since whoever has one has all of them. Pure. O(1) per host.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits

NEW_HOST_S = 1.0
MAX_ADDRESSES = 100_000
CROWDED = "max_hosts_per_address"  # begins the reason why such a host is parked


class _Crowd(Struct):
    hosts: int = 0
    next_at: float = 0.0


class AddressCrowds:
    """The hosts per address, as far as they are known in this run."""

    def __init__(self, limits: FrontierLimits) -> None:
        self._limits = limits
        self._crowds: OrderedDict[str, _Crowd] = OrderedDict()

    def first_contact_at(self, address: str, now: float) -> float:
        """Count a new host at an address; return when it may be contacted."""
        if not self._limits.max_hosts_per_address:
            return now
        key = network_of(address)
        crowd = self._crowds.get(key)
        if crowd is None:
            crowd = self._crowds[key] = _Crowd()
            if len(self._crowds) > MAX_ADDRESSES:
                self._crowds.popitem(last=False)
        else:
            self._crowds.move_to_end(key)
        crowd.hosts += 1
        if crowd.hosts <= self._limits.max_hosts_per_address:
            return now
        crowd.next_at = max(crowd.next_at, now) + NEW_HOST_S
        return crowd.next_at


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the first 64 bits."""
    return str(int(IPv6Address(address)) >> 64) if ":" in address else address
