"""How many new hosts may the pages of a domain at one address lead to?

A page can name a thousand hosts that nobody has seen, and each costs rows, a name look-up and requests, before anything
of it is known. So the pages of a domain may lead to `FREE_HOSTS` new hosts, and to `EARNED_HOSTS` more for each of
these that has answered a request. A site that links to the web earns more than it needs, unless two thirds of its links
are dead; a farm of domains at one address, or a page of names that do not exist, leads to few more hosts than are
contacted.

The domains at one address share twice as many free hosts: each may have half of what the others have left, and one at
least; what is earned is free again. So whoever wastes them delays nobody else for long, and a farm, each of whose
domains answers, gets `EARNED_HOSTS` and one per domain.

What is beyond waits (`engine/admission/introduced_links`), by domain and address, and as long as something waits, the
hosts at that address get a quarter of the connections at most (`gates`). Counted per run, for the domains and hosts
that were seen last. Pure. O(1) per page with links to new hosts, and per host that answers for the first time.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.address_crowds import MAX_ADDRESSES
from gossamer.core.politeness.networks import network_of
from gossamer.model.records import HostId, QueuedUrl

FREE_HOSTS = 200  # or `max_hosts_per_address`, if that is less; 0: no limit
EARNED_HOSTS = 3
UNLIMITED = 1 << 30


class Introducer(Struct, frozen=True):
    """A domain at an address, whose pages lead to new hosts."""

    network: str
    domain: str


class _Account(Struct, eq=False):
    introducer: Introducer
    hosts: int = 0  # that its pages led to
    answered: int = 0  # of these
    drawn: int = 0  # of the free hosts of its address
    has_waiting: bool = False  # whether links of its pages wait


class Introductions:
    """The new hosts that the pages of each domain at each address led to."""

    def __init__(self, limits: FrontierLimits, crowding: set[str]) -> None:
        self._limits = limits
        self._crowding = crowding  # addresses whose links wait: see `gates`
        self._accounts: OrderedDict[Introducer, _Account] = OrderedDict()
        self._drawn: dict[str, int] = {}  # of the free hosts, by address
        self._waiting: dict[str, int] = {}  # introducers whose links wait, by address
        self._hosts: OrderedDict[HostId, _Account] = OrderedDict()
        # Whose links wait and which may lead to more hosts now, by turns.
        self.earned: OrderedDict[Introducer, None] = OrderedDict()

    @property
    def _free(self) -> int:
        return min(FREE_HOSTS, self._limits.max_hosts_per_address)

    def room(self, introducer: Introducer) -> int:
        """Return how many more hosts the pages of a domain may lead to; negative if it was exceeded."""
        if not self._free:
            return UNLIMITED
        account = self._accounts.get(introducer)
        if account is None:
            return self._allowance(introducer.network, 0)
        allowance = self._allowance(introducer.network, account.drawn)
        return allowance + EARNED_HOSTS * account.answered - account.hosts

    def _allowance(self, network: str, drawn: int) -> int:
        """Return how many free hosts a domain may have that has drawn some: half of what the others left."""
        return max(1, (2 * self._free - self._drawn.get(network, 0) + drawn + 1) // 2)

    def count(self, host: HostId, introducer: Introducer, hosts: int) -> None:
        """Count new hosts that a page of a host led to."""
        account = self._account(introducer)
        account.hosts += hosts
        self._draw(account)
        if self.earned and self.room(introducer) <= 0:
            self.earned.pop(introducer, None)
        self._hosts[host] = account
        self._hosts.move_to_end(host)
        if len(self._hosts) > MAX_ADDRESSES:
            self._hosts.popitem(last=False)

    def _draw(self, account: _Account) -> None:
        """Count what a domain has of the free hosts: what it has not earned, and never more than it may."""
        network = account.introducer.network
        unearned = max(0, account.hosts - EARNED_HOSTS * account.answered)
        drawn = min(unearned, self._allowance(network, account.drawn))
        self._drawn[network] = self._drawn.get(network, 0) + drawn - account.drawn
        account.drawn = drawn

    def set_waiting(self, introducer: Introducer, *, has_waiting: bool) -> None:
        account = self._account(introducer)
        network = introducer.network
        left = self._waiting.get(network, 0) + has_waiting - account.has_waiting
        account.has_waiting = has_waiting
        if left:
            self._waiting[network] = left
            self._crowding.add(network)
        else:
            self._waiting.pop(network, None)
            self._crowding.discard(network)
        self.earned.pop(introducer, None)
        self.check(introducer)

    def has_waiting(self, network: str) -> bool:
        """Return whether links of pages at an address wait."""
        return network in self._waiting

    def check(self, introducer: Introducer) -> None:
        """Add a domain to those that have earned more hosts, if it has."""
        account = self._accounts.get(introducer)
        if account is not None and account.has_waiting and self.room(introducer) > 0:
            self.earned[introducer] = None

    def count_answer(self, url: QueuedUrl) -> None:
        """Count that the host of a URL has answered for the first time, to the credit of the page that led to it."""
        account = self._hosts.get(url.parent[:8])
        if account is not None:
            account.answered += 1
            self._draw(account)
            if account.has_waiting:
                self.check(account.introducer)

    def _account(self, introducer: Introducer) -> _Account:
        account = self._accounts.get(introducer)
        if account is None:
            account = self._accounts[introducer] = _Account(introducer)
            if len(self._accounts) > MAX_ADDRESSES:
                self._forget(self._accounts.popitem(last=False)[1])
        else:
            self._accounts.move_to_end(introducer)
        return account

    def _forget(self, account: _Account) -> None:
        network = account.introducer.network
        self._drawn[network] -= account.drawn
        account.drawn = 0
        if not self._drawn[network]:
            del self._drawn[network]


def introducer_of(name: str, domain: str, addresses: tuple[str, ...]) -> Introducer:
    """Return who leads to what a host's pages name; its name stands for its address if names are not looked up here."""
    return Introducer(network_of(addresses[0]) if addresses and addresses[0] else name, domain)
