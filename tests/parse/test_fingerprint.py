from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.foundation.kernel import kernel
from gossamer.parse.text.fingerprint import plain_bare, text_fingerprint

SORRY = "Sorry, the page {} was not found on this server."


def test_the_echo_of_the_address_makes_no_difference() -> None:
    prints = {
        text_fingerprint(SORRY.format(path).encode(), f"http://a.test{path}")
        for path in ("/some-page", "/deep/er/page-two", "/x?q=word")
    }
    assert len(prints) == 1


def test_numbers_make_no_difference_and_words_do() -> None:
    url = "http://a.test/"
    text = "There are {} things in the basket"
    assert text_fingerprint(text.format(3).encode(), url) == text_fingerprint(text.format(47).encode(), url)
    assert text_fingerprint(text.encode(), url) != text_fingerprint(f"{text} now".encode(), url)


PRODUCT = "Product {} Price: {} Add to basket"


@pytest.mark.parametrize("price", ["€ 12.50", "12,50 €", "12.50 EUR", "USD 1,250", "$3", "9.99 chf"])
def test_a_price_makes_a_difference(price: str) -> None:
    url = "http://a.test/p/7"
    assert text_fingerprint(PRODUCT.format(7, price).encode(), url) != text_fingerprint(
        PRODUCT.format(7, "€ 12.51").encode(), url
    )


@pytest.mark.parametrize("price", ["€ {}.00", "{} EUR", "at {}:30", "{} europeans"])
def test_what_a_page_takes_from_its_address_is_no_price(price: str) -> None:
    prints = {
        text_fingerprint(PRODUCT.format(number, price.format(number)).encode(), f"http://a.test/p/{number}")
        for number in (7, 8, 250)
    }
    assert len(prints) == 1


@pytest.mark.parametrize("text", ["", "Loading", "x" * 19])
def test_a_page_that_says_nothing_has_none(text: str) -> None:
    assert text_fingerprint(text.encode(), "http://a.test/") == b""


@given(st.text(), st.text(alphabet="abc/%?=&", max_size=20))
def test_any_text_has_one(text: str, path: str) -> None:
    assert len(text_fingerprint(text.encode("utf-8", "replace") + b"x" * 20, f"http://a.test/{path}")) == 8


@pytest.mark.skipif(kernel is None, reason="need compiled parts: install a C compiler, then make clean test")
@given(
    st.lists(st.sampled_from([b"ab", b"a", b"1", b"23", b" ", b"x" * 15, b"\xc3\xa9", b"aba", b"/page", b"0" * 17])),
    st.lists(st.sampled_from([b"ab", b"aba", b"a", b"/page", b"x" * 15, b"\xc3\xa9", b"a" * 40, b"1 2"]), max_size=4),
)
def test_c_and_python_take_out_the_same(pieces: list[bytes], parts: list[bytes]) -> None:
    assert kernel is not None
    text = b"".join(pieces)
    assert kernel.bare(text, parts) == plain_bare(text, parts)
