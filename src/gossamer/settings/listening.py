"""Addresses at which a process of ours is reached: where it listens (`HOST:PORT`), and behind which URL of a proxy."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from gossamer.model.errors import UsageError

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Address(Struct, frozen=True):
    """Where a server listens; port 0 is any free one."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """The address as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PublicUrl(Struct, frozen=True):
    """The URL below which a reverse proxy serves what a process of ours answers, as browsers write it."""

    scheme: str
    host: str  # with its port, if that is not the usual one
    path: str = ""  # without a slash at its end

    @property
    def origin(self) -> str:
        """What browsers send as the origin of its pages."""
        return f"{self.scheme}://{self.host}"

    @property
    def text(self) -> str:
        """The whole URL; what is served is relative to it."""
        return f"{self.origin}{self.path}/"


def address_of(text: str, option: str) -> Address:
    """Return the address that an option names."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port or any(each.isspace() or each == "/" for each in host):
        raise UsageError(f"{option} = {text!r}: not an address; expected HOST:PORT, as 127.0.0.1:8080")
    return Address(host, int(port))


def public_url_of(text: str, option: str) -> PublicUrl:
    """Return the URL that an option names."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(" ?#@\\%")
    path = parts.path.rstrip("/")
    if (
        parts.scheme not in _DEFAULT_PORTS
        or not parts.hostname
        or not is_plain
        or {"", ".", ".."} & {*path.split("/")[1:]}
    ):
        what = "not the URL of a dashboard; expected one as https://ops.example.org/crawl/"
        raise UsageError(f"{option} = {text!r}: {what}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = f":{port}" if port not in (None, _DEFAULT_PORTS[parts.scheme]) else ""
    return PublicUrl(parts.scheme, host + shown_port, path)
