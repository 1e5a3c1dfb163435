"""How many new hosts may the pages at one address lead to?

A page can name a thousand hosts that nobody has seen, and each costs rows, a name look-up and requests, before anything
of it is known. So the pages at an address may lead to `FREE_HOSTS` new hosts, and to `EARNED_HOSTS` more for each of
them that has answered a request. A site that links to the web earns more than it needs, unless two thirds of its links
are dead; a farm of domains at one address, or a page of names that do not exist, leads to few more hosts than are
contacted. What is beyond waits (`engine/admission/introduced_links`), and as long as something waits, the hosts at
that address get a quarter of the connections at most (`gates`). Counted per run, for the addresses and hosts that were
seen last. Pure. O(1) per page with links to new hosts, and per host that answers for the first time.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import MAX_ADDRESSES, network_of
from gossamer.model.records import HostId, QueuedUrl

FREE_HOSTS = 200  # or `max_hosts_per_address`, if that is less; 0: no limit
EARNED_HOSTS = 3
UNLIMITED = 1 << 30


class _Introducer(Struct, eq=False):
    """An address whose pages led to new hosts."""

    network: str
    hosts: int = 0  # that they led to
    answered: int = 0  # of these
    has_waiting: bool = False  # whether links of its pages wait


class Introductions:
    """The new hosts that the pages of each address led to."""

    def __init__(self, limits: FrontierLimits, slow: set[str]) -> None:
        self._limits = limits
        self._slow = slow  # addresses whose links wait: see `gates`
        self._addresses: OrderedDict[str, _Introducer] = OrderedDict()
        self._hosts: OrderedDict[HostId, _Introducer] = OrderedDict()
        self.earned: set[str] = set()  # networks whose links wait and which may lead to more hosts now

    def room(self, network: str) -> int:
        """Return how many more hosts the pages of an address may lead to; negative if it was exceeded."""
        free = min(FREE_HOSTS, self._limits.max_hosts_per_address)
        if not free:
            return UNLIMITED
        known = self._addresses.get(network)
        return free if known is None else free + EARNED_HOSTS * known.answered - known.hosts

    def count(self, host: HostId, network: str, hosts: int) -> None:
        """Count new hosts that a page of a host at an address led to."""
        known = self._at(network)
        known.hosts += hosts
        self._hosts[host] = known
        self._hosts.move_to_end(host)
        if len(self._hosts) > MAX_ADDRESSES:
            self._hosts.popitem(last=False)

    def set_waiting(self, network: str, *, has_waiting: bool) -> None:
        """Set whether links of pages at an address wait."""
        self._at(network).has_waiting = has_waiting
        if has_waiting:
            self._slow.add(network)
        else:
            self._slow.discard(network)
        self.earned.discard(network)
        self.check(network)

    def check(self, network: str) -> None:
        """Add an address to those that have earned more hosts, if it has."""
        known = self._addresses.get(network)
        if known is not None and known.has_waiting and self.room(network) > 0:
            self.earned.add(network)

    def count_answer(self, url: QueuedUrl) -> None:
        """Count that the host of a URL has answered for the first time, to the credit of the page that led to it."""
        known = self._hosts.get(url.parent[:8])
        if known is not None:
            known.answered += 1
            if known.has_waiting:
                self.check(known.network)

    def _at(self, network: str) -> _Introducer:
        known = self._addresses.get(network)
        if known is None:
            known = self._addresses[network] = _Introducer(network)
            if len(self._addresses) > MAX_ADDRESSES:
                self._addresses.popitem(last=False)
        else:
            self._addresses.move_to_end(network)
        return known


def network_of_host(name: str, addresses: tuple[str, ...]) -> str:
    """Return what stands for the address of a host: its name if names are not looked up here."""
    return network_of(addresses[0]) if addresses and addresses[0] else name
