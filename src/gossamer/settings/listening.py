"""Addresses that a process of ours listens on, as options name them: `HOST:PORT`."""

from __future__ import annotations

from msgspec import Struct

from gossamer.model.errors import UsageError


class Address(Struct, frozen=True):
    """Where a server listens; port 0 is any free one."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """The address as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str, option: str) -> Address:
    """Return the address that an option names."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port or any(each.isspace() or each == "/" for each in host):
        raise UsageError(f"{option} = {text!r}: not an address; expected HOST:PORT, as 127.0.0.1:8080")
    return Address(host, int(port))
