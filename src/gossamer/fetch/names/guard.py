"""May we connect to this IP address?

Everything that is not a public unicast address is refused, unless the operator
allowed its network or a seed named exactly this address. Forms of IPv6 that contain an IPv4
address (mapped, compatible, 6to4, NAT64, Teredo, ISATAP) are checked by that address as well,
so that no spelling of a private address gets through. Allowing an address allows it
in its plain form only.

Pure. The first check of an address costs 6 µs (IPv6 10), a repeated one 0.07; the cache
contains at most `_CACHE_LIMIT` addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_CACHE_LIMIT: Final = 50_000

# IANA special-purpose registries (RFC 6890 and its updates), the ranges that contain no public web server.
# The first match names the reason, so narrower ranges come first.
_RANGES_V4: Final = tuple(
    (IPv4Network(network), name)
    for network, name in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared, carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_RANGES_V6: Final = tuple(
    (IPv6Network(network), name)
    for network, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("2001:2::/48", "benchmark"),
        ("2001:db8::/32", "documentation"),
        ("2001:10::/28", "ORCHID"),
        ("2001:20::/28", "ORCHID"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


class AddressPolicy:
    """Which addresses a crawl may connect to.

    `allowed_networks` are CIDR ranges that the operator allowed (`--allow-network`);
    `allowed_addresses` are single addresses that a seed named.
    """

    def __init__(self, allowed_networks: Sequence[str] = (), allowed_addresses: Iterable[str] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(ip_network(text, strict=False) for text in allowed_networks)
        self._opened: set[Address] = {ip_address(text.strip("[]")) for text in allowed_addresses}
        self._verdicts: dict[str, str | None] = {}
        self.on_opened: Callable[[str], None] | None = None  # called with each address that is new

    def open_address(self, address: str) -> None:
        """Allow one more address exactly (a seed named it)."""
        opened = ip_address(address.strip("[]"))
        if opened in self._opened:
            return
        self._opened.add(opened)
        self._verdicts.clear()
        if self.on_opened is not None:
            self.on_opened(address)

    @property
    def opened(self) -> tuple[str, ...]:
        """The single addresses that are allowed, in order."""
        return tuple(sorted(map(str, self._opened)))

    def refusal(self, address: str) -> str | None:
        """Return why this address is refused, naming its range, or None if it is allowed."""
        try:
            return self._verdicts[address]
        except KeyError:
            pass
        verdict = self._judge(address)
        if len(self._verdicts) >= _CACHE_LIMIT:
            self._verdicts.clear()
        self._verdicts[address] = verdict
        return verdict

    def _judge(self, text: str) -> str | None:
        # A scope ("fe80::1%eth0") only exists on link-local addresses; the address itself decides.
        try:
            address = ip_address(text.strip("[]").partition("%")[0])
        except ValueError:
            return f"{text[:100]!r} is not an IP address"
        if address in self._opened or any(address in network for network in self._networks):
            return None
        return _range_refusal(address)


def _range_refusal(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        for v4_network, name in _RANGES_V4:
            if address in v4_network:
                return f"{address} is in {v4_network} ({name})"
        return None
    for v6_network, name in _RANGES_V6:
        if address in v6_network:
            return f"{address} is in {v6_network} ({name})"
    return _carried_refusal(address)


def _carried_refusal(address: IPv6Address) -> str | None:
    """Check an IPv6 address by the IPv4 addresses inside it."""
    # There is no good reason to publish these two forms in the DNS; the kernel would connect by IPv4.
    for network, name in ((_MAPPED, "IPv4-mapped"), (_TRANSLATED, "IPv4-translated"), (_COMPATIBLE, "IPv4-compatible")):
        if address in network:
            return f"{address} is in {network} ({name})"
    for carried in _carried(address):
        refusal = _range_refusal(carried)
        if refusal is not None:
            return f"{address} carries {refusal}"
    if address not in _GLOBAL_UNICAST and address not in _NAT64:
        return f"{address} is outside {_GLOBAL_UNICAST} (not global unicast)"
    return None


def _carried(address: IPv6Address) -> list[IPv4Address]:
    packed = address.packed
    if address in _NAT64:
        return [IPv4Address(packed[12:])]
    if address in _SIX_TO_FOUR:
        return [IPv4Address(packed[2:6])]
    if address in _TEREDO:
        # RFC 4380: the server plain, the client with every bit inverted.
        return [IPv4Address(packed[4:8]), IPv4Address(bytes(byte ^ 0xFF for byte in packed[12:]))]
    if int.from_bytes(packed[8:12], "big") in _ISATAP:
        return [IPv4Address(packed[12:])]
    return []
