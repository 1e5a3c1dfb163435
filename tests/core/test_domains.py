from __future__ import annotations

import pytest

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of


def _of(name: str) -> str:
    """Return the registrable domain of a name as a user might write it."""
    url = canonical(f"http://{name}/")
    return registrable_domain(host_of(url)) if url else name


def _ascii(name: str) -> str:
    url = canonical(f"http://{name}/")
    return host_of(url) if url else name


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "com", "co.uk", "github.io", "test"])
def test_addresses_and_bare_suffixes_are_domains_of_their_own(host: str) -> None:
    assert registrable_domain(host) == host


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("a.b.someone.github.io", "someone.github.io"),
        ("www.h1.test", "h1.test"),
        ("example.org.", "example.org"),
        ("a.unknown-top-level", "a.unknown-top-level"),
        ("x.y.unknown-top-level", "y.unknown-top-level"),
        ("example.com", "example.com"),
        ("a.b.c.example.com", "example.com"),
        ("example.co.jp", "example.co.jp"),
        ("x.example.co.jp", "example.co.jp"),
        # A rule with a star, and an exception to it.
        ("www.ck", "www.ck"),
        ("x.www.ck", "www.ck"),
        ("a.b.ck", "a.b.ck"),
        ("x.a.b.ck", "a.b.ck"),
        ("b.ck", "b.ck"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.other.kawasaki.jp", "b.other.kawasaki.jp"),
        # Rules for names of their own, by organisations.
        ("a.b.s3.amazonaws.com", "b.s3.amazonaws.com"),
        ("a.b.blogspot.com", "b.blogspot.com"),
        # In other scripts.
        ("www.\u98df\u72ee.\u4e2d\u56fd", "\u98df\u72ee.\u4e2d\u56fd"),
        ("a.b.\u98df\u72ee.com.cn", "\u98df\u72ee.com.cn"),
        ("WWW.EXAMPLE.ORG", "example.org"),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    assert _of(host) == _ascii(domain)
