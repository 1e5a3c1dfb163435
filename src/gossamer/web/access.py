"""Who may use the dashboard? Whoever has the token, from the dashboard itself or from a program.

Decided before anything else, in this order: the `Host` must be an address that is listened on (a name that an attacker
makes point here is another one), an `Origin` must be its own (a page elsewhere must not act with its reader's
rights), the token must be right. Its own files have no secret, and need none. The printed address has the token behind
`#`, which browsers do not send; the dashboard stores it for its own origin and sends it as `Authorization: Bearer`, as
programs do. A cookie would reach every other server of this machine, on whatever port.
Behind a reverse proxy the origin is that of its URL (`--ui-url`), and the `Host` may be, too: proxies pass either.
A frame cannot send a header: its address has a *ticket*, which is valid for that path and nothing else. Pure.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from ipaddress import ip_address

from msgspec.structs import replace

from gossamer.settings.listening import Address, PublicUrl
from gossamer.web.http import HttpRequest, Response, failure

TOKEN_BYTES = 32
HTTP_PORT = 80
_BEARER = "bearer "


class Tickets:
    """Addresses that need no token: each is valid for one path, until the process ends."""

    def __init__(self, token: str) -> None:
        self._key = token.encode()

    def ticket(self, path: str) -> str:
        return hmac.new(self._key, path.encode(), "sha256").hexdigest()

    def is_right(self, path: str, ticket: str) -> bool:
        return hmac.compare_digest(self.ticket(path), ticket)


class AccessRules:
    """The rules of one server."""

    def __init__(
        self, token: str, listening: Address, names: Collection[str] = (), public: PublicUrl | None = None
    ) -> None:
        self._token = token.encode()
        self._tickets = Tickets(token)
        self._port = listening.port
        self._public = public
        self._hosts = {listening.text.lower(), *(f"{name.lower()}:{listening.port}" for name in names)}
        self._is_anywhere = _is_address(listening.host) and ip_address(listening.host).is_unspecified
        if self._is_anywhere or is_loopback(listening.host):
            self._hosts |= {f"{name}:{listening.port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    def refusal(self, request: HttpRequest) -> Response | None:
        """Return why a request is refused; None if it is allowed."""
        host = request.headers.get("host", "").lower()
        public = self._public
        is_public = public is not None and host == public.host
        if not is_public and not self._is_own(host):
            return failure(403, "the Host of the request is not this server: use the address that was printed")
        origin = request.headers.get("origin")
        own = () if is_public else (f"http://{host}",)
        if origin is not None and origin.lower() not in (own if public is None else (*own, public.origin)):
            return failure(403, "the request comes from another site's page, and is refused")
        if not _is_open(request.path) and not self._has_token(request):
            return failure(
                401,
                "no token, or a wrong one: open the address that was printed, or send Authorization: Bearer TOKEN",
                [("WWW-Authenticate", 'Bearer realm="gossamer"')],
            )
        return None

    @property
    def public_path(self) -> str:
        """Where the page is, for browsers."""
        return f"{self._public.path if self._public is not None else ''}/"

    def below_public_path(self, request: HttpRequest) -> HttpRequest:
        """Return a request with the path that is served: some proxies pass the path of the public URL, too."""
        prefix = self._public.path if self._public is not None else ""
        if not prefix or not f"{request.path}/".startswith(f"{prefix}/"):
            return request
        return replace(request, path=request.path[len(prefix) :])

    def _is_own(self, host: str) -> bool:
        if self._port == HTTP_PORT and not host.endswith(f":{HTTP_PORT}"):
            host += f":{HTTP_PORT}"  # browsers leave it out
        if host in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        if not self._is_anywhere or port != str(self._port):
            return False
        return _is_address(name.removeprefix("[").removesuffix("]"))  # no name that could be made to point here

    def _has_token(self, request: HttpRequest) -> bool:
        given = request.headers.get("authorization")
        if given is not None:
            return given.lower().startswith(_BEARER) and self._is_token(given[len(_BEARER) :].strip())
        ticket = dict(request.query).get("ticket")
        return ticket is not None and request.method == "GET" and self._tickets.is_right(request.path, ticket)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)


def _is_open(path: str) -> bool:
    """Return whether a path leads to a file of the dashboard, which is the same for everybody."""
    return path == "/" or path.startswith("/static/")


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
