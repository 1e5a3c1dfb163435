"""A jar: what is stored, what is sent, and that no server can make it grow (row C01)."""

from __future__ import annotations

import pytest

from gossamer.fetch.cookies import MAX_COOKIES, MAX_SENT_BYTES, CookieJar

PAGE = "https://a.org/shop/page"


def sent(*headers: str, url: str = PAGE, at: float = 0.0, source: str = PAGE) -> str:
    jar = CookieJar()
    for header in headers:
        jar.store(header, source, 0.0)
    return jar.header_for(url, at)


@pytest.mark.parametrize(
    ("headers", "url", "expected"),
    [
        (["a=1"], "https://a.org/shop/other", "a=1"),
        (["a=1"], "https://a.org/shop", "a=1"),
        (["a=1"], "https://a.org/shopping", ""),
        (["a=1"], "https://a.org/", ""),
        (["a=1; Path=/"], "https://a.org/?q=1", "a=1"),
        (["a=1; Path=/shop/x"], PAGE, ""),
        (["a=1; path=nonsense"], PAGE, "a=1"),
        (["a=1", "a=2"], PAGE, "a=2"),
        (["a=1", "b=2; Path=/"], PAGE, "a=1; b=2"),
        (["b=2; Path=/", "a=1"], PAGE, "a=1; b=2"),
        (["a=1; Secure"], "http://a.org/shop/", ""),
        (["a=1; Domain=b.org"], PAGE, "a=1"),
        (["a=x=y"], PAGE, "a=x=y"),
        (["alone"], PAGE, "alone"),
        (["=", ";", " ; Path=/"], PAGE, ""),
        (["a=\x01"], PAGE, ""),
        (["a=" + "x" * 5000], PAGE, ""),
        (["a=1", "a=; Max-Age=0"], PAGE, ""),
        (["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], PAGE, ""),
        (["a=1; Expires=Thu, 01-Jan-2099 00:00:00 GMT"], PAGE, "a=1"),
        (["a=1; Expires=rubbish; Max-Age=rubbish"], PAGE, "a=1"),
        (["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60"], PAGE, "a=1"),
    ],
)
def test_what_is_sent(headers: list[str], url: str, expected: str) -> None:
    assert sent(*headers, url=url) == expected


def test_a_cookie_ends_when_it_is_old() -> None:
    assert sent("a=1; Max-Age=60", at=59.0) == "a=1"
    assert sent("a=1; Max-Age=60", at=60.0) == ""


def test_a_secure_cookie_is_not_set_without_tls() -> None:
    assert sent("a=1; Secure", source="http://a.org/shop/page") == ""


def test_a_bomb_of_cookies_stays_small() -> None:
    jar = CookieJar()
    for number in range(500):
        jar.store(f"c{number}=" + "x" * 4000, PAGE, 0.0)
    assert len(jar._cookies) == MAX_COOKIES
    assert 4000 < len(jar.header_for(PAGE, 0.0)) <= MAX_SENT_BYTES
    jar.store("c0=; Max-Age=0", PAGE, 0.0)
    jar.store("new=1", PAGE, 0.0)
    assert len(jar._cookies) == MAX_COOKIES
