"""What do requests to a host need? Headers with secrets, cookies, a proxy, certificates.

`AccessRules` come from the settings and never change; `AccessTable` finds what counts for an origin once, and
remembers it. A crawl without rules has no table, and no cost per request.

Invariants
- a secret belongs to the hosts of its pattern. A redirect is a new request: it gets what its own host has, and nothing
  of the host that it came from. Over HTTP without TLS a secret is sent only if its rule says so.
- a cookie goes back to the origin that set it: no other port, and nothing that TLS protected over plain HTTP.
- an anonymous request has no secret, no cookie and no client certificate, and its answer sets no cookie.
- no record of a request has a secret: `masked` removes them before anybody else sees the exchange.
- proxies of the environment are for the public web: a host with a private address is contacted directly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.url.forms import host_of, origin_of
from gossamer.core.url.host_patterns import names_host, narrowest_first
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.route import USUAL, Proxy, Route
from gossamer.fetch.transfer import FetchRequest
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome

if TYPE_CHECKING:
    from gossamer.fetch.cookies import CookieJar

MASK: Final = "***"
UNRESOLVED: Final = "proxy"  # instead of an address that only the proxy knows. No address: a direct request is refused
_MAX_ORIGINS: Final = 20_000
# Its value, over folded lines too.
_SET_COOKIE: Final = rb"(?im)^(set-cookie[ \t]*:[ \t]*(?:[^=;\r\n]*=)?)[^;\r\n]*(?:\r?\n[ \t][^;\r\n]*)*"
_MAX_JARS: Final = 10_000
_NO_LOGIN: Final = "the proxy asks for a login (407); its password is in GOSSAMER_PROXY_PASSWORD or proxy-password-env"


class AccessRule(Struct, frozen=True):
    """What the hosts of a pattern need. `is_direct`: no proxy, whatever counts for other hosts."""

    pattern: str
    headers: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()  # headers whose values are masked
    sends_secrets_plainly: bool = False
    has_cookies: bool = False
    route: Route = USUAL
    is_direct: bool = False

    @property
    def identifies(self) -> bool:
        """Whether requests say who sends them."""
        return bool(self.secrets or self.has_cookies or self.route.cert_file)

    def __repr__(self) -> str:
        """Return it without secrets."""
        return f"AccessRule({self.pattern!r})"


class EnvironmentProxies(Struct, frozen=True):
    """The proxies that variables of the environment name, by scheme, and the hosts that are exempt."""

    http: Proxy | None = None
    https: Proxy | None = None
    exempt: tuple[str, ...] = ()  # normal patterns


class AccessRules(Struct, frozen=True):
    """All rules of a crawl. Sent to worker processes in memory, never written."""

    rules: tuple[AccessRule, ...] = ()
    insecure: tuple[str, ...] = ()
    proxy: Proxy | None = None
    environment: EnvironmentProxies = EnvironmentProxies()

    def __bool__(self) -> bool:
        return self != _NO_RULES


_NO_RULES: Final = AccessRules()


class Access:
    __slots__ = ("_headers", "_jar", "_masked", "anonymous", "direct", "is_for_public", "route")

    def __init__(self, rule: AccessRule, route: Route, jar: CookieJar | None, *, is_plain: bool) -> None:
        with_secrets = rule.sends_secrets_plainly or not is_plain
        self._headers = rule.headers + (rule.secrets if with_secrets else ())
        self._jar = jar
        self._masked = frozenset(name.lower() for name, _ in rule.secrets) | {"cookie"}
        self.route = route
        self.direct: Access = self  # what counts for a private address
        self.anonymous: Access = self  # what counts for an anonymous request
        self.is_for_public = False

    @property
    def is_routed(self) -> bool:
        """Whether its connections differ from those of other hosts."""
        return self.route is not USUAL

    @property
    def proxy(self) -> Proxy | None:
        return self.route.proxy

    def complete(self, request: FetchRequest, now: float) -> FetchRequest:
        cookies = self._jar.header_for(request.url, now) if self._jar is not None else ""
        more = self._headers + ((("Cookie", cookies),) if cookies else ())
        return replace(request, headers=request.headers + more) if more else request

    def masked(self, exchange: Exchange) -> Exchange:
        """Return the record of a request without secrets, and store the cookies that its answer sets."""
        proxy = self.route.proxy
        if proxy is not None and exchange.status == 407:
            exchange = replace(exchange, outcome=Outcome.CONNECT_FAILED, error=_NO_LOGIN, status=0, response_head=b"")
            exchange.headers = []
            exchange.first_values = {}
            exchange.body = b""
            exchange.content = b""
        if proxy is not None and proxy.gets_names:
            exchange.address = ""  # nobody here knows it
        if self._masked:
            exchange.request_head = _masked_head(exchange.request_head, self._masked)
        if self._jar is not None and "set-cookie" in exchange.named:
            for value in exchange.all_values("set-cookie"):
                self._jar.store(value, exchange.url, exchange.finished_at)
            _mask_cookies(exchange)
        return exchange


class AccessTable:
    """Finds what requests to an origin need."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        by_pattern = {rule.pattern: rule for rule in rules.rules}
        self._ordered = [by_pattern[pattern] for pattern in narrowest_first(by_pattern)]
        self._known: dict[str, Access | None] = {}
        self._routes: dict[Route, Route] = {USUAL: USUAL}
        self._jars: dict[str, CookieJar] = {}
        self._public = AddressPolicy()

    def of(self, url: str, addresses: Sequence[str]) -> Access | None:
        """Return what a request to these addresses needs; None if nothing."""
        origin = origin_of(url)
        try:
            access = self._known[origin]
        except KeyError:
            access = self._remembered(origin)
        if access is not None and access.is_for_public and self._are_private(addresses):
            return access.direct
        return access

    def proxy_of(self, host: str) -> Proxy | None:
        """Return the proxy of a host, whatever the port; that for TLS, if there are two."""
        rule = self._rule_of(host, host)
        return self._proxy_of(rule, host, host, "https") or self._proxy_of(rule, host, host, "http")

    def is_named(self, host: str) -> bool:
        """Return whether the operator named this host, or those below its domain, and said how to reach it."""
        rule = self._rule_of(host, host)
        return rule is not None and rule.route.proxy is not None and rule.pattern != "*"

    def _are_private(self, addresses: Sequence[str]) -> bool:
        return UNRESOLVED not in addresses and all(self._public.refusal(address) is not None for address in addresses)

    def _remembered(self, origin: str) -> Access | None:
        if len(self._known) >= _MAX_ORIGINS:
            self._known.clear()
        access = self._known[origin] = self._find(origin)
        return access

    def _find(self, origin: str) -> Access | None:
        scheme, _, authority = origin.partition("://")
        host = host_of(f"{origin}/")
        rule = self._rule_of(host, authority)
        direct = self._made(rule, scheme, host, authority, None)
        proxy = self._proxy_of(rule, host, authority, scheme)
        if proxy is None:
            return direct if direct.is_routed or rule is not None else None
        access = self._made(rule, scheme, host, authority, proxy)
        access.is_for_public = self._is_from_environment(rule)
        access.direct = direct
        return access

    def _made(self, rule: AccessRule | None, scheme: str, host: str, authority: str, proxy: Proxy | None) -> Access:
        is_plain = scheme == "http"
        rule = rule or AccessRule("")
        route = Route(proxy=proxy) if is_plain else replace(rule.route, proxy=proxy)
        if not is_plain and any(names_host(pattern, host, authority) for pattern in self._rules.insecure):
            route = replace(route, checks_certificate=False)
        jar = self._jar_of(f"{scheme}://{authority}") if rule.has_cookies else None
        access = Access(rule, self._same(route), jar, is_plain=is_plain)
        if rule.identifies:
            nobody = replace(route, cert_file="", key_file="", key_password="")
            access.anonymous = Access(replace(rule, secrets=()), self._same(nobody), None, is_plain=is_plain)
        return access

    def _same(self, route: Route) -> Route:
        return self._routes.setdefault(route, route)

    def _jar_of(self, origin: str) -> CookieJar:
        from gossamer.fetch.cookies import CookieJar

        if origin not in self._jars and len(self._jars) >= _MAX_JARS:
            del self._jars[next(iter(self._jars))]
        return self._jars.setdefault(origin, CookieJar())

    def _rule_of(self, host: str, authority: str) -> AccessRule | None:
        return next((rule for rule in self._ordered if names_host(rule.pattern, host, authority)), None)

    def _is_from_environment(self, rule: AccessRule | None) -> bool:
        return self._rules.proxy is None and (rule is None or rule.route.proxy is None)

    def _proxy_of(self, rule: AccessRule | None, host: str, authority: str, scheme: str) -> Proxy | None:
        if rule is not None and (rule.is_direct or rule.route.proxy is not None):
            return rule.route.proxy
        if self._rules.proxy is not None:
            return self._rules.proxy
        environment = self._rules.environment
        if any(names_host(pattern, host, authority) for pattern in environment.exempt):
            return None
        return environment.https if scheme == "https" else environment.http


def _masked_head(head: bytes, names: frozenset[str]) -> bytes:
    lines = head.split(b"\r\n")
    for position, line in enumerate(lines):
        name, colon, _ = line.partition(b":")
        if position and colon and name.decode("latin-1").lower() in names:
            lines[position] = name + b": " + MASK.encode()
    return b"\r\n".join(lines)


def _mask_cookies(exchange: Exchange) -> None:
    """Mask the values of cookies that an answer sets: with them, a reader of the archive would be logged in."""
    exchange.response_head = re.sub(_SET_COOKIE, rb"\g<1>" + MASK.encode(), exchange.response_head)
    exchange.headers = [
        (name, _masked_cookie(value) if name == "set-cookie" else value) for name, value in exchange.headers
    ]
    exchange.first_values = None


def _masked_cookie(value: str) -> str:
    pair, semicolon, attributes = value.partition(";")
    name, equals, _ = pair.partition("=")
    return (f"{name}={MASK}" if equals else MASK) + semicolon + attributes
