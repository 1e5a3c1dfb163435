"""How connections to some hosts are made: through which proxy, and with which certificates.

A `Route` is a value: requests with equal routes share connections, others never do (`http.Fetcher` has one
libcurl engine for each). None of these classes shows a secret when it is printed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from gossamer.fetch.libcurl import Curl, pycurl
from gossamer.fetch.trust import TrustSource, bundle, trust_sources

_SUPPRESS_CONNECT_HEADERS: Final = 265  # curl.h; pycurl has no name for it
_TYPES: Final = {
    "http": pycurl.PROXYTYPE_HTTP,
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}


class Proxy(Struct, frozen=True):
    """A proxy: `http`, `socks5` (it gets addresses) or `socks5h` (it gets names)."""

    scheme: str
    host: str  # with its port
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        """Return it without user and password."""
        return self.shown

    @property
    def shown(self) -> str:
        """Its URL, without user and password."""
        return f"{self.scheme}://{self.host}"

    @property
    def gets_names(self) -> bool:
        """Whether it looks names up itself, so that nobody here knows the address that it connects to."""
        return self.scheme != "socks5"

    @property
    def hides_names(self) -> bool:
        """Whether names must not be looked up here."""
        return self.scheme == "socks5h"


class Route(Struct, frozen=True):
    """How connections are made."""

    proxy: Proxy | None = None
    checks_certificate: bool = True
    pins: str = ""  # as libcurl reads them: sha256//…;sha256//…
    ca_file: str = ""  # authorities that are trusted besides the others
    cert_file: str = ""
    key_file: str = ""
    key_password: str = ""

    def __repr__(self) -> str:
        """Return it without passwords."""
        return f"Route({self.proxy!r})"


USUAL: Final = Route()


def apply(route: Route, curl: Curl, ca_file: str) -> None:
    """Set up a new handle for a route; `ca_file` is what the settings add for all hosts."""
    if route.proxy is not None:
        _use_proxy(route.proxy, curl)
    if not route.checks_certificate:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
    sources = trust_sources(ca_file)
    if route.ca_file:
        sources += (TrustSource("[[request]] ca-file", route.ca_file),)
    for option, value in (
        (pycurl.CAINFO, bundle(sources)),
        (pycurl.PINNEDPUBLICKEY, route.pins),
        (pycurl.SSLCERT, route.cert_file),
        (pycurl.SSLKEY, route.key_file or route.cert_file),
        (pycurl.KEYPASSWD, route.key_password),
    ):
        if value:
            curl.setopt(option, value)


def _use_proxy(proxy: Proxy, curl: Curl) -> None:
    curl.setopt(pycurl.NOPROXY, "")
    curl.setopt(pycurl.PROXY, proxy.host)
    curl.setopt(pycurl.PROXYTYPE, _TYPES[proxy.scheme])
    curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)  # they are the proxy's, not the server's
    if proxy.user:
        curl.setopt(pycurl.PROXYUSERNAME, proxy.user)
        curl.setopt(pycurl.PROXYPASSWORD, proxy.password)
