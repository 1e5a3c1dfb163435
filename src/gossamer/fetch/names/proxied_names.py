"""Is a name looked up here, if its requests go through a proxy?

A proxy that gets names connects to whatever it finds: the address policy cannot check that. So a name is looked up here
first, if possible, and refused as usual if it leads to a private address. A name that is unknown here is the proxy's
business, unless it is private by convention; then the operator must have named the host in a rule with a proxy. With
`socks5h` no name is looked up here at all: that is what it is for.
"""

from __future__ import annotations

from typing import Final

from gossamer.fetch.access import UNRESOLVED, AccessTable
from gossamer.fetch.names.dns import Resolution
from gossamer.model.records import Outcome

TTL_S: Final = 600.0
# RFC 6761, 6762, 8375 and ICANN's .internal, and names that networks use without having been asked.
_PRIVATE: Final = ("localhost", "local", "internal", "home.arpa", "intranet", "lan", "home", "corp", "private")


def unasked(access: AccessTable, host: str, now: float) -> Resolution | None:
    """Return the answer for a name that must not be looked up here; None if it is looked up as usual."""
    proxy = access.proxy_of(host)
    if proxy is None or not proxy.hides_names:
        return None
    return _left_to_proxy(access, host, now)


def unless_failed(access: AccessTable, host: str, found: Resolution, now: float) -> Resolution:
    """Return what a look-up found; if it failed, that the proxy of the host looks the name up."""
    if found.addresses:
        return found
    proxy = access.proxy_of(host)
    return _left_to_proxy(access, host, now) if proxy is not None and proxy.gets_names else found


def _left_to_proxy(access: AccessTable, host: str, now: float) -> Resolution:
    if _is_private(host) and not access.is_named(host):
        error = f"{host}: a private name that only the proxy can look up; a [[request]] with host and proxy allows it"
        return Resolution((), now + TTL_S, Outcome.BLOCKED_ADDRESS, error)
    return Resolution((UNRESOLVED,), now + TTL_S)


def _is_private(host: str) -> bool:
    name = host.rstrip(".")
    return "." not in name or any(name == each or name.endswith(f".{each}") for each in _PRIVATE)
