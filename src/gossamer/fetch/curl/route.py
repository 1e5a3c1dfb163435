"""Sets a handle of libcurl up for a route."""

from __future__ import annotations

from typing import Final

from gossamer.fetch.curl.libcurl import Curl, pycurl
from gossamer.fetch.route import Proxy, Route
from gossamer.fetch.trust import TrustSource, bundle, trust_sources

_SUPPRESS_CONNECT_HEADERS: Final = 265  # curl.h; pycurl has no name for it
_TYPES: Final = {
    "http": pycurl.PROXYTYPE_HTTP,
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}


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
