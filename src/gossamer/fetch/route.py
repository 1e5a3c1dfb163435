"""How connections to some hosts are made: through which proxy, and with which certificates.

A `Route` is a value: requests with equal routes share connections, others never do (`http.Fetcher` has one
libcurl client for each). None of these classes shows a secret when it is printed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


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
