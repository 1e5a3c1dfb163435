from __future__ import annotations

import pytest

from gossamer.fetch.names.guard import AddressPolicy

BLOCKED = [
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("0.0.0.0", "this network"),
    ("10.1.2.3", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "shared"),
    ("169.254.169.254", "link-local"),
    ("192.0.0.1", "protocol"),
    ("192.0.2.1", "documentation"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.9", "documentation"),
    ("198.18.0.1", "benchmark"),
    ("198.19.255.255", "benchmark"),
    ("224.0.0.1", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("[::1]", "loopback"),
    ("fc00::1", "unique local"),
    ("fdff::1", "unique local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("ff02::1", "multicast"),
    ("2001:db8::1", "documentation"),
    ("100::1", "discard"),
    ("::ffff:127.0.0.1", "IPv4-mapped"),
    ("::ffff:8.8.8.8", "IPv4-mapped"),
    ("::127.0.0.1", "IPv4-compatible"),
    ("2002:7f00:0001::1", "loopback"),
    ("2002:0a00:0001::1", "private"),
    ("64:ff9b::7f00:1", "loopback"),
    ("64:ff9b::192.168.0.1", "private"),
    ("64:ff9b:1::1", "local NAT64"),
    ("2001:0:7f00:1::8.8.8.8", "loopback"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "documentation"),
    ("2001:470:1:2:0:5efe:10.0.0.1", "private"),
    ("4000::1", "not global unicast"),
    ("localhost", "not an IP address"),
    ("", "not an IP address"),
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2002:0808:0808::1"]


@pytest.mark.parametrize(("address", "reason"), BLOCKED)
def test_what_is_not_public_is_refused_by_name(address: str, reason: str) -> None:
    refusal = AddressPolicy().refusal(address)
    assert refusal is not None
    assert reason in refusal


@pytest.mark.parametrize("address", [*PUBLIC, "64:ff9b::8.8.8.8"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert AddressPolicy().refusal(address) is None


def test_an_opened_network_is_allowed_and_nothing_beside_it() -> None:
    policy = AddressPolicy(["10.1.0.0/16", "fd00::/8"])
    assert policy.refusal("10.1.2.3") is None
    assert policy.refusal("fd00::5") is None
    assert policy.refusal("10.2.0.1") is not None
    assert policy.refusal("::ffff:10.1.2.3") is not None


def test_an_opened_address_is_allowed_and_nothing_beside_it() -> None:
    policy = AddressPolicy(allowed_addresses=["127.0.0.1", "[::1]"])
    assert policy.refusal("127.0.0.1") is None
    assert policy.refusal("::1") is None
    assert policy.refusal("127.0.0.2") is not None


def test_an_address_may_be_opened_later() -> None:
    policy = AddressPolicy()
    assert policy.refusal("127.0.0.1") is not None
    policy.open_address("127.0.0.1")
    assert policy.refusal("127.0.0.1") is None


def test_a_network_with_host_bits_is_taken_as_its_network() -> None:
    assert AddressPolicy(["10.1.2.3/8"]).refusal("10.9.9.9") is None
