"""Who may use the page? Whoever has the token, from the page itself or from a program.

Decided before anything else, in this order: the `Host` must be an address that is listened on (a name that an attacker
makes point here is another one), an `Origin` must be the page's own (a page elsewhere may not use what its reader is
allowed to), the token must be right. It comes once in the page's address; a redirect moves it into a cookie
that scripts cannot read and other sites cannot send. Programs send it as `Authorization: Bearer`. Pure.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from ipaddress import ip_address

from gossamer.settings.listening import Address
from gossamer.web.http import Request, Response, failure

TOKEN_BYTES = 32
HTTP_PORT = 80
_BEARER = "bearer "
_MOVE_ON = (
    b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>Gossamer</title>'
    b'<p><a href="/">Open the page</a>'
)

_NO_TOKEN = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    b"<title>Gossamer: no access</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:60ch;margin:15vh auto;"
    b"padding:0 16px;color-scheme:light dark}</style><h1>The token is missing or wrong</h1>"
    b"<p>Open the whole address that <code>gossamer</code> printed, up to its end: it contains the token. Every start "
    b"of the page has a new one, so an address of an earlier start is no longer valid.</p>"
    b"<p>Programs send <code>Authorization: Bearer TOKEN</code>.</p></html>"
)
_PLAIN_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Access:
    """The rules of one server."""

    def __init__(self, token: str, listening: Address, names: Collection[str] = ()) -> None:
        self._token = token.encode()
        self._port = listening.port
        # Cookies do not tell ports apart: two crawls on one machine need two names.
        self._cookie = f"gossamer_{listening.port}"
        self._hosts = {listening.text.lower(), *(f"{name.lower()}:{listening.port}" for name in names)}
        self._is_anywhere = _is_address(listening.host) and ip_address(listening.host).is_unspecified
        if self._is_anywhere or is_loopback(listening.host):
            self._hosts |= {f"{name}:{listening.port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    def refusal(self, request: Request) -> Response | None:
        """Return why a request is refused; None if it is allowed."""
        host = request.headers.get("host", "").lower()
        if not self._is_own(host):
            return failure(403, "the Host of the request is not this server: use the address that was printed")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return failure(403, "the request comes from another site's page, and is refused")
        if not self._has_token(request):
            if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
                return Response(401, _NO_TOKEN, "text/html; charset=utf-8", policy=_PLAIN_POLICY)
            return failure(
                401,
                "no token, or a wrong one: open the address that was printed, or send Authorization: Bearer TOKEN",
                [("WWW-Authenticate", 'Bearer realm="gossamer"')],
            )
        return None

    def entry(self, request: Request) -> Response | None:
        """Return the answer that turns the right token in the page's address into a cookie; None for any other."""
        given = dict(request.query).get("token")
        if request.method != "GET" or request.path != "/" or given is None or not self._is_token(given):
            return None
        if not self._is_own(request.headers.get("host", "").lower()):
            return None
        cookie = f"{self._cookie}={self._token.decode()}; HttpOnly; SameSite=Strict; Path=/"
        headers = [("Set-Cookie", cookie)]
        if request.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return Response(303, headers=[*headers, ("Location", "/")])
        # A link on another site led here. The browser would follow a redirect as that site, without the cookie.
        return Response(200, _MOVE_ON, "text/html; charset=utf-8", headers)

    def _is_own(self, host: str) -> bool:
        if self._port == HTTP_PORT and not host.endswith(f":{HTTP_PORT}"):
            host += f":{HTTP_PORT}"  # browsers leave it out
        if host in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        if not self._is_anywhere or port != str(self._port):
            return False
        return _is_address(name.removeprefix("[").removesuffix("]"))  # no name that could be made to point here

    def _has_token(self, request: Request) -> bool:
        given = request.headers.get("authorization")
        if given is not None:
            return given.lower().startswith(_BEARER) and self._is_token(given[len(_BEARER) :].strip())
        for part in request.headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._cookie:
                return self._is_token(value)
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
