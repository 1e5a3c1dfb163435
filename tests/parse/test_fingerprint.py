from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.foundation.kernel import kernel
from gossamer.parse.text.fingerprint import (
    bare_short,
    numbers_beside,
    plain_bare,
    plain_bare_short,
    plain_mentions,
    plain_numbers_beside,
    text_fingerprint,
)

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


@pytest.mark.parametrize("name", [b"Green Tea", b"green-tea.html", b"GREEN TEA html", b"/shop/green-tea.html"])
def test_a_short_page_takes_its_name_from_its_address_however_it_is_written(name: bytes) -> None:
    assert bare_short(b"12 of: " + name, b"/shop/Green-Tea.html") == b" of: "
    assert bare_short(b"12 of: Black Tea", b"/shop/Green-Tea.html") == b" of: black tea"


@pytest.mark.parametrize("separator", [b"-", b"_", b"+", b".", b" ", b"\t"])
def test_words_of_an_address_are_written_with_blanks_between_them(separator: bytes) -> None:
    assert bare_short(b"of: Green Tea Cup", separator.join([b"/Green", b"Tea", b"Cup?tea"])) == b"of: "


def test_numbers_of_the_address_and_those_beside_them_are_not_the_pages_own() -> None:
    text = b"Page 7 of 31: 6 8 08 007 1234"
    assert numbers_beside(text, "/p/007") == b"31 1234"
    assert numbers_beside(text, "/p") is None


NEEDS_KERNEL = pytest.mark.skipif(
    kernel is None, reason="need compiled parts: install a C compiler, then make clean test"
)
PIECES = st.sampled_from(
    [b"ab", b"a", b"AB", b"Z[@", b"1", b"23", b" ", b"x" * 70, b"\xc3\xa9", b"/page", b"0" * 17, b"page two", b"\t"]
)


@NEEDS_KERNEL
@given(
    st.lists(PIECES),
    st.lists(st.sampled_from([b"ab", b"aba", b"a", b"/page", b"x" * 15, b"\xc3\xa9", b"a" * 40, b"1 2"]), max_size=4),
)
def test_c_and_python_take_out_and_find_the_same(pieces: list[bytes], parts: list[bytes]) -> None:
    assert kernel is not None
    text = b"".join(pieces)
    assert kernel.bare(text, parts) == plain_bare(text, parts)
    assert kernel.mentions(text, parts) == plain_mentions(text, parts)


@NEEDS_KERNEL
@given(
    st.lists(PIECES),
    st.lists(
        st.sampled_from(
            [b"/", b"?", b"&", b"=", b"\n", b".", b"-", b"_", b"+", b" ", b"\v", b"Page", b"two", b"ab", b"\xc3\xa9"]
        )
    ),
)
def test_c_and_python_take_the_same_echoes_of_an_address_out(pieces: list[bytes], names: list[bytes]) -> None:
    assert kernel is not None
    path = b"".join(names)
    for text in (b"".join(pieces), b" ".join([*names, *pieces]), path * 3):
        assert kernel.bare_short(text, path) == plain_bare_short(text, path)


DIGITS = st.sampled_from(
    ["0", "1", "9", "10", "99", "007", "08", "9" * 18, "9" * 30, "1" + "0" * 18, "0" * 28 + "5", "100"]
)


@NEEDS_KERNEL
@given(st.lists(DIGITS | st.sampled_from([" ", "/", "é", " " * 20])), st.lists(DIGITS | st.just("/"), max_size=25))
def test_c_and_python_leave_the_same_numbers(pieces: list[str], names: list[str]) -> None:
    assert kernel is not None
    text = "".join(pieces).encode()
    path = "".join(names)
    assert kernel.numbers_beside(text, path) == plain_numbers_beside(text, path)
