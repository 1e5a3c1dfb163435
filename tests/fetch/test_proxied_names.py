"""Names behind a proxy: which are looked up here, which are left to it, which are refused."""

from __future__ import annotations

import pytest

from gossamer.fetch.access import UNRESOLVED, AccessRule, AccessRules, AccessTable, EnvironmentProxies
from gossamer.fetch.names.dns import Resolution
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.fetch.names.proxied_names import unasked, unless_failed
from gossamer.fetch.route import Proxy, Route
from gossamer.model.records import Outcome

FOUND = Resolution(("10.0.0.1",), 60.0)
UNKNOWN = Resolution((), 60.0, Outcome.DNS_NOT_FOUND, "no such name")


def through(scheme: str) -> AccessTable:
    return AccessTable(AccessRules(proxy=Proxy(scheme, "127.0.0.1:1")))


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_what_was_found_here_counts(scheme: str) -> None:
    """So that a name with a private address is refused as without a proxy."""
    assert unless_failed(through(scheme), "a.org", FOUND, 0.0) is FOUND


@pytest.mark.parametrize(("scheme", "is_left"), [("http", True), ("socks5h", True), ("socks5", False)])
def test_an_unknown_name_is_left_to_a_proxy_that_gets_names(scheme: str, is_left: bool) -> None:
    answer = unless_failed(through(scheme), "a.org", UNKNOWN, 0.0)
    assert answer.addresses == ((UNRESOLVED,) if is_left else ())
    assert answer.outcome is (Outcome.OK if is_left else Outcome.DNS_NOT_FOUND)


def test_only_socks5h_keeps_names_from_being_looked_up() -> None:
    asked = {scheme: unasked(through(scheme), "a.org", 0.0) for scheme in ("http", "socks5", "socks5h")}
    assert {scheme for scheme, answer in asked.items() if answer is not None} == {"socks5h"}


def test_without_a_proxy_nothing_changes() -> None:
    direct = AccessTable(AccessRules(insecure=("a.org",)))
    assert unasked(direct, "a.org", 0.0) is None
    assert unless_failed(direct, "a.org", UNKNOWN, 0.0) is UNKNOWN
    exempt = EnvironmentProxies(https=Proxy("http", "127.0.0.1:1"), exempt=("a.org",))
    assert unless_failed(AccessTable(AccessRules(environment=exempt)), "a.org", UNKNOWN, 0.0) is UNKNOWN


@pytest.mark.parametrize("host", ["wiki", "wiki.internal", "printer.local", "x.home.arpa", "nas.lan", "a.localhost."])
def test_a_private_name_needs_a_rule_of_its_own(host: str) -> None:
    route = Route(proxy=Proxy("http", "127.0.0.1:1"))
    general = AccessTable(AccessRules((AccessRule("*", route=route),)))
    refused = unless_failed(general, host, UNKNOWN, 0.0)
    assert (refused.addresses, refused.outcome) == ((), Outcome.BLOCKED_ADDRESS)
    assert "[[request]]" in refused.error
    own = AccessTable(AccessRules((AccessRule(host, route=route),)))
    assert unless_failed(own, host, UNKNOWN, 0.0).addresses == (UNRESOLVED,)


def test_what_stands_for_an_unknown_address_is_never_connected_to() -> None:
    assert AddressPolicy(["0.0.0.0/0", "::/0"]).refusal(UNRESOLVED) is not None
