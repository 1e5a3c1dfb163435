"""What counts as one address? Of IPv6 the first 64 bits: whoever has one address has all of these.

An IPv6 address that stands for an IPv4 address counts as that, or a server could be reached through gates of its own.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network

_NAT64 = ip_network("64:ff9b::/96")  # RFC 6052
_IPV6_BITS = 64


def network_of(address: str) -> str:
    """Return what counts as one address with this one: "192.0.2.1", "2001:db8:0:1::/64"."""
    return _network_of_ipv6(address) if ":" in address else address


@lru_cache(maxsize=10_000)
def _network_of_ipv6(address: str) -> str:
    parsed = IPv6Address(address)
    embedded = parsed.ipv4_mapped or parsed.sixtofour
    if embedded is None and parsed in _NAT64:
        embedded = IPv4Address(int(parsed) & 0xFFFF_FFFF)
    if embedded is not None:
        return str(embedded)
    return f"{IPv6Address(int(parsed) >> _IPV6_BITS << _IPV6_BITS)}/{_IPV6_BITS}"
