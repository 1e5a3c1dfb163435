"""What hosts need: certificates, logins, cookies, proxies. What the servers saw decides."""

from __future__ import annotations

import asyncio
import time

import pytest

from gossamer.fetch.access import (
    MASK,
    UNRESOLVED,
    AccessRule,
    AccessRules,
    AccessTable,
    EnvironmentProxies,
)
from gossamer.fetch.http import Fetcher, FetchRequest
from gossamer.fetch.limits import FetchLimits
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.route import Proxy, Route
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from tests.servers.guarded_site import KEY_PASSWORD, Keys, guarded_site, make_keys
from tests.servers.proxies import LoopbackProxy, loopback_proxy

from .servers import IDENTITY, LOOPBACK

SECRET = "swordfish-31337"
OPEN = AddressPolicy(["127.0.0.0/8"])


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("keys"))


def fetch(
    rules: AccessRules, *urls: str, addresses: tuple[str, ...] = LOOPBACK, policy: AddressPolicy = OPEN
) -> list[Exchange]:
    """Fetch URLs one after the other, with one fetcher."""

    async def main() -> list[Exchange]:
        async with Fetcher(FetchLimits(), IDENTITY, policy, time.time, access=AccessTable(rules)) as fetcher:
            return [await fetcher.fetch(FetchRequest(url, addresses)) for url in urls]

    return asyncio.run(main())


def route(route: Route, pattern: str = "site.test") -> AccessRules:
    return AccessRules((AccessRule(pattern, route=route),))


def proxy_at(proxy: LoopbackProxy, user: str = "", password: str = "") -> Proxy:
    return Proxy(proxy.scheme, proxy.address, user, password)


# -- certificates ---------------------------------------------------------------------------------


def test_only_the_host_that_is_named_goes_unchecked(keys: Keys) -> None:
    with guarded_site(tls=keys.context("own")) as site:
        named, other = fetch(AccessRules(insecure=("site.test",)), site.url("site.test"), site.url("other.test"))
    assert named.outcome is Outcome.OK
    assert other.outcome is Outcome.TLS_ERROR
    assert [seen.headers["host"].partition(":")[0] for seen in site.seen] == ["site.test"]


def test_an_authority_counts_for_the_hosts_of_its_rule(keys: Keys) -> None:
    with guarded_site(tls=keys.context()) as site:
        named, other = fetch(route(Route(ca_file=keys.ca)), site.url("site.test"), site.url("other.test"))
    assert (named.outcome, other.outcome) == (Outcome.OK, Outcome.TLS_ERROR)


def test_a_pinned_key_must_match_even_if_certificates_are_not_checked(keys: Keys) -> None:
    with guarded_site(tls=keys.context()) as site:
        (right,) = fetch(route(Route(ca_file=keys.ca, pins=f"{keys.own_pin};{keys.pin}")), site.url("site.test"))
        (wrong,) = fetch(route(Route(ca_file=keys.ca, pins=keys.own_pin)), site.url("site.test"))
        rules = AccessRules((AccessRule("site.test", route=Route(pins=keys.own_pin)),), insecure=("site.test",))
        (unchecked,) = fetch(rules, site.url("site.test"))
    assert right.outcome is Outcome.OK
    assert (wrong.outcome, unchecked.outcome) == (Outcome.TLS_ERROR, Outcome.TLS_ERROR)
    assert "pinned" in wrong.error
    assert len(site.seen) == 1


def test_a_client_certificate_opens_the_door(keys: Keys) -> None:
    client = Route(ca_file=keys.ca, cert_file=keys.client, key_file=keys.client_key, key_password=KEY_PASSWORD)
    with guarded_site(tls=keys.context(asks_client=True)) as site:
        (let_in,) = fetch(route(client), site.url("site.test"))
        (left_out,) = fetch(route(Route(ca_file=keys.ca)), site.url("site.test"))
    assert let_in.outcome is Outcome.OK
    assert not left_out.status
    assert len(site.seen) == 1


# -- headers and cookies --------------------------------------------------------------------------


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_secret_is_sent_and_not_recorded(keys: Keys, is_plain: bool) -> None:
    rule = AccessRule(
        "site.test",
        headers=(("X-Team", "web"),),
        secrets=(("Authorization", f"Bearer {SECRET}"),),
        sends_secrets_plainly=True,
        route=Route(ca_file=keys.ca),
    )
    with guarded_site(tls=None if is_plain else keys.context()) as site:
        (exchange,) = fetch(AccessRules((rule,)), site.url("site.test"))
    assert site.header("/", "authorization") == [f"Bearer {SECRET}"]
    assert site.header("/", "x-team") == ["web"]
    head = exchange.request_head.decode()
    assert SECRET not in head
    assert f"\r\nAuthorization: {MASK}\r\n" in head
    assert "\r\nX-Team: web\r\n" in head
    assert head.endswith("\r\n\r\n")
    assert SECRET not in repr(rule)


def test_a_secret_is_for_its_host_and_for_tls(keys: Keys) -> None:
    rule = AccessRule("site.test", secrets=(("Authorization", SECRET),))
    with guarded_site() as site:
        fetch(AccessRules((rule,)), site.url("site.test"), site.url("other.test"), site.url("www.site.test"))
    assert [seen.headers.get("authorization") for seen in site.seen] == [None] * 3


def test_cookies_come_back_to_their_host_and_no_other() -> None:
    rules = AccessRules((AccessRule("*.test", has_cookies=True),))
    with guarded_site() as site:
        site.cookies = [f"session={SECRET}; Path=/; Domain=test", "gone=1; Max-Age=0"]
        enter, *_ = fetch(rules, site.url("site.test", "/enter"), site.url("site.test"), site.url("other.test"))
    cookies = [seen.headers.get("cookie") for seen in site.seen]
    assert cookies == [None, f"session={SECRET}", None]
    assert SECRET not in enter.response_head.decode()
    assert f"Set-Cookie: session={MASK}; Path=/; Domain=test\r\n" in enter.response_head.decode()
    assert SECRET not in str(enter.headers)


def test_cookies_come_back_to_no_other_port_and_not_in_plain_text(keys: Keys) -> None:
    rules = AccessRules((AccessRule("*.test", has_cookies=True),), insecure=("site.test",))
    with guarded_site(tls=keys.context()) as site, guarded_site() as neighbour:
        site.cookies = [f"session={SECRET}; Path=/"]
        plain = site.url("site.test").replace("https:", "http:")
        fetch(rules, site.url("site.test", "/enter"), neighbour.url("site.test"), plain, site.url("site.test"))
    assert [seen.headers.get("cookie") for seen in site.seen] == [None, f"session={SECRET}"], "in TLS, to this port"
    assert [seen.headers.get("cookie") for seen in neighbour.seen] == [None]


def test_without_a_rule_there_are_no_cookies() -> None:
    with guarded_site() as site:
        site.cookies = ["session=1; Path=/"]
        enter, _ = fetch(AccessRules(insecure=("x.test",)), site.url(path="/enter"), site.url())
    assert site.header("/", "cookie") == [None]
    assert "session=1" in enter.response_head.decode()


# -- proxies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize("is_plain", [True, False])
def test_requests_go_through_a_proxy(keys: Keys, scheme: str, is_plain: bool) -> None:
    with guarded_site(tls=None if is_plain else keys.context()) as site, loopback_proxy(scheme) as proxy:
        rules = route(Route(proxy=proxy_at(proxy), ca_file=keys.ca))
        addresses = LOOPBACK if scheme == "socks5" else (UNRESOLVED,)
        exchange, other = fetch(rules, site.url("site.test"), f"http://other.test:{site.port}/", addresses=addresses)
    assert exchange.outcome is Outcome.OK, exchange.error
    assert proxy.targets == [f"{'127.0.0.1' if scheme == 'socks5' else 'site.test'}:{site.port}"]
    assert exchange.address == ("127.0.0.1" if scheme == "socks5" else "")
    assert b"X-Of-The-Proxy" not in exchange.response_head
    assert exchange.request_head.startswith(b"GET / HTTP/1.1\r\nHost: site.test")
    if scheme == "http":
        assert [head.split(b" ")[0] for head in proxy.heads] == [b"GET" if is_plain else b"CONNECT"]
    elif scheme == "socks5h":
        assert other.outcome is Outcome.DNS_NOT_FOUND, "a name that is not looked up is never contacted directly"


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_proxy_may_ask_for_a_login(scheme: str) -> None:
    with guarded_site() as site, loopback_proxy(scheme, f"me:{SECRET}") as proxy:
        known, unknown = (
            fetch(route(Route(proxy=proxy_at(proxy, "me", password))), site.url("site.test"), addresses=(UNRESOLVED,))[
                0
            ]
            for password in (SECRET, "wrong")
        )
    assert known.outcome is Outcome.OK
    assert unknown.outcome is Outcome.CONNECT_FAILED
    assert SECRET not in known.request_head.decode() + known.error + unknown.error
    assert len(site.seen) == 1
    assert site.header("/", "proxy-authorization") == [None]


def test_a_proxy_that_is_not_there_is_a_failed_connection() -> None:
    rules = route(Route(proxy=Proxy("http", "127.0.0.1:1")))
    (exchange,) = fetch(rules, "https://site.test/", addresses=(UNRESOLVED,))
    assert exchange.outcome is Outcome.CONNECT_FAILED


def test_a_private_address_is_refused_behind_a_proxy_too() -> None:
    with loopback_proxy() as proxy:
        rules = AccessRules(proxy=proxy_at(proxy))
        (exchange,) = fetch(rules, "http://10.0.0.1/", addresses=("10.0.0.1",), policy=AddressPolicy())
    assert exchange.outcome is Outcome.BLOCKED_ADDRESS
    assert proxy.targets == []


def test_the_proxy_of_the_environment_is_for_the_public_web() -> None:
    with guarded_site() as site, loopback_proxy() as proxy:
        environment = EnvironmentProxies(http=proxy_at(proxy), exempt=("other.test",))
        rules = AccessRules(environment=environment)
        (private,) = fetch(rules, site.url("site.test"))
        (unknown,) = fetch(rules, site.url("site.test"), addresses=(UNRESOLVED,))
        (exempt,) = fetch(rules, site.url("other.test"))
    assert [each.outcome for each in (private, unknown, exempt)] == [Outcome.OK] * 3
    assert proxy.targets == [f"site.test:{site.port}"]


@pytest.mark.parametrize(
    ("addresses", "is_used"),
    [(("8.8.8.8",), True), (("10.0.0.1", "8.8.8.8"), True), (("10.0.0.1", "fd00::1"), False), (("127.0.0.1",), False)],
)
def test_a_public_address_is_what_the_proxy_of_the_environment_is_for(
    addresses: tuple[str, ...], is_used: bool
) -> None:
    proxy = Proxy("http", "127.0.0.1:1")
    access = AccessTable(AccessRules(environment=EnvironmentProxies(http=proxy))).of("http://a.test/", addresses)
    assert access is not None
    assert access.proxy == (proxy if is_used else None)


def test_a_rule_may_exempt_its_hosts_from_the_proxy_of_all() -> None:
    with guarded_site() as site, loopback_proxy() as proxy:
        rules = AccessRules((AccessRule("site.test", is_direct=True),), proxy=proxy_at(proxy))
        fetch(rules, site.url("site.test"), site.url("other.test"))
    assert proxy.targets == [f"other.test:{site.port}"]
    assert len(site.seen) == 2


def test_the_narrowest_rule_counts_alone() -> None:
    rules = AccessRules(
        (
            AccessRule("*", headers=(("X-Rule", "all"), ("X-All", "1"))),
            AccessRule("*.site.test", headers=(("X-Rule", "below"),)),
            AccessRule("www.site.test", headers=(("X-Rule", "name"),)),
        )
    )
    with guarded_site() as site:
        fetch(rules, *(site.url(host) for host in ("site.test", "a.site.test", "www.site.test")))
    assert [seen.headers.get("x-rule") for seen in site.seen] == ["all", "below", "name"]
    assert [seen.headers.get("x-all") for seen in site.seen] == ["1", None, None]


def test_without_rules_there_is_nothing_to_look_up() -> None:
    assert not AccessRules()
    assert AccessRules(insecure=("a.test",))
    assert AccessTable(AccessRules(insecure=("a.test",))).of("https://b.test/", LOOPBACK) is None
