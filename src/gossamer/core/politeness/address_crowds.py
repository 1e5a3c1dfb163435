"""Which domains have hosts at an address, and how soon may a new host be contacted if there are very many?

Shared hosting has hundreds of hosts at one address, and a farm of domains an infinite number: each of its pages leads
to more of them. `max_hosts_per_address` new hosts at an address are contacted at once; after that one more per
`NEW_HOST_S`, the others wait. So a farm gets a small, constant share of a crawl, whatever it links to, and nothing
honest is lost: it is only later.

Domains count, not names: one domain may take as many of these places as leave some for the others (by the same rule as
connections, see `gates`), and hosts that wait do so by turns of their domains: with n domains waiting, a host comes n
seconds after the one before it of its own domain, however many names the others have. A host's time is fixed when it is
found, so at first a domain that comes later makes it a little more than one host per second: at most the logarithm of
the domains.

Counted per run, for the addresses that were seen last, by network (`networks`). Pure. O(log domains) per host.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush

from msgspec import Struct, field

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.politeness.networks import network_of

NEW_HOST_S = 1.0
MAX_ADDRESSES = 100_000
MAX_TENANTS = 400_000  # domains at addresses with several
CROWDED = "max_hosts_per_address"  # begins the reason why such a host is parked


class _Tenant(Struct):
    """A domain at an address."""

    hosts: int = 0  # that are contacted at once
    next_at: float = 0.0  # when the last of those that wait may be contacted


class _Crowd(Struct):
    hosts: int = 0  # that are contacted at once
    first: str = ""  # the domain that was here first
    domains: dict[str, _Tenant] = field(default_factory=dict)  # empty as long as only that is here, and has few hosts
    waiting: list[tuple[float, str]] = field(default_factory=list)  # a heap of domains: until when

    def tenant(self, domain: str) -> _Tenant:
        if not self.domains:
            self.domains[self.first] = _Tenant(self.hosts)
        found = self.domains.get(domain)
        if found is None:
            found = self.domains[domain] = _Tenant()
        return found

    def waiting_domains(self, now: float) -> int:
        """Return how many domains have hosts that wait."""
        while self.waiting and self.waiting[0][0] <= now:
            _, name = heappop(self.waiting)
            if self.domains[name].next_at > now:  # more of its hosts have come since
                heappush(self.waiting, (self.domains[name].next_at, name))
        return len(self.waiting)


class AddressCrowds:
    """The hosts and domains per address, as far as they are known in this run."""

    def __init__(self, limits: FrontierLimits) -> None:
        self._limits = limits
        self._crowds: OrderedDict[str, _Crowd] = OrderedDict()
        self._tenants = 0  # in all `domains`

    def is_shared(self, network: str) -> bool:
        """Return whether hosts of several domains are at an address."""
        crowd = self._crowds.get(network)
        return crowd is not None and len(crowd.domains) > 1

    def record_tenant(self, address: str, domain: str) -> None:
        """Record that a domain has a host at an address."""
        crowd = self._crowd(address, domain)
        if crowd.first != domain and domain not in crowd.domains:
            self._tenant(crowd, domain)

    def first_contact_at(self, address: str, domain: str, now: float) -> float:
        """Count a new host at an address; return when it may be contacted."""
        most = self._limits.max_hosts_per_address
        crowd = self._crowd(address, domain)
        if not most:
            self.record_tenant(address, domain)
            return now
        if crowd.first == domain and not crowd.domains and self._has_place(crowd, crowd.hosts):
            crowd.hosts += 1
            return now
        tenant = self._tenant(crowd, domain)
        if tenant.next_at <= now and self._has_place(crowd, tenant.hosts):
            tenant.hosts += 1
            crowd.hosts += 1
            return now
        domains = crowd.waiting_domains(now)
        if tenant.next_at <= now:
            domains += 1
            tenant.next_at = now
            heappush(crowd.waiting, (now + NEW_HOST_S * domains, domain))
        tenant.next_at += NEW_HOST_S * domains
        return tenant.next_at

    def _has_place(self, crowd: _Crowd, of_domain: int) -> bool:
        """Return whether one more host of a domain may be contacted at once."""
        return of_domain < self._limits.share_of_free * (self._limits.max_hosts_per_address - crowd.hosts)

    def _crowd(self, address: str, domain: str) -> _Crowd:
        network = network_of(address)
        crowd = self._crowds.get(network)
        if crowd is None:
            crowd = self._crowds[network] = _Crowd(first=domain)
            while len(self._crowds) > MAX_ADDRESSES or self._tenants > MAX_TENANTS:
                self._tenants -= len(self._crowds.popitem(last=False)[1].domains)
        else:
            self._crowds.move_to_end(network)
        return crowd

    def _tenant(self, crowd: _Crowd, domain: str) -> _Tenant:
        before = len(crowd.domains)
        tenant = crowd.tenant(domain)
        self._tenants += len(crowd.domains) - before
        return tenant
