"""What is a change of a text, and what is not; C and Python make the same sketch of any text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gossamer.core.revisit.text_change import (
    SKETCH_BYTES,
    has_changed,
    plain_word_pairs,
    similarity,
    sketch_of,
    word_pairs,
)
from gossamer.foundation.kernel import kernel
from tests.amount import amount
from tests.core.dedup.texts import text as words_of

ARTICLE = "\n".join(words_of(500, seed).capitalize() + "." for seed in range(1, 4))
SHORT = "A teapot of blue porcelain\nHolds a litre and a half, with a lid and a strainer of steel\n{}\nAdd to cart"


def changed(before: str, after: str) -> bool:
    return has_changed(sketch_of(before.encode()), sketch_of(after.encode()))


def within(*lines: str) -> str:
    """Return the article with lines before, within and behind it."""
    parts = ARTICLE.split("\n")
    return "\n".join([*lines[:1], parts[0], *lines[1:2], *parts[1:], *lines[2:]])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Monday, November 16, 2026", "Saturday, January 2, 2027"),
        ("16 de noviembre de 2026", "3 de enero de 2027"),
        ("16 ноября 2026 г.", "2 января 2027 г."),
        ("Stand: 16. November 2026, 22:14 Uhr", "Stand: 2. Jänner 2027, 9:01 Uhr"),
        ("2026年11月16日(月)", "2027年1月2日(土)"),
        ("١٦ نوفمبر ٢٠٢٦", "٢ يناير ٢٠٢٧"),
        ("१६ नवंबर २०२६", "२ जनवरी २०२७"),
        ("It is 22:14:59 in Vienna", "It is 9:01:05 in Vienna"),
        ("1,234 views", "1,298 views · 3 comments"),
        ("yesterday", "5 minutes ago"),
        ("vor 5 Minuten", "vor 2 Stunden"),
        ("csrf 8f14e45fceea167a", "csrf c9f0f895fb98ab91"),
        ("The early bird catches the worm, as they say", "Whoever laughs last has not understood the joke"),
    ],
)
def test_what_differs_at_each_visit_is_no_change(before: str, after: str) -> None:
    assert not changed(within(before), within(after))
    assert not changed(within("", f"As of {before} all is well."), within("", f"As of {after} all is well."))


def test_many_times_on_one_page_are_no_change() -> None:
    before, after = (
        "\n".join(
            f"Answer by reader {name}, {number * step + 2} {unit} ago"
            for number, name in enumerate("abcdefghijklmnopqrst")
        )
        for step, unit in ((1, "minutes"), (3, "hours"))
    )
    assert not changed(within(before), within(after))


def test_an_advertisement_and_links_of_a_few_words_are_no_change() -> None:
    before, after = (words_of(24, seed).split() for seed in (11, 12))
    for lines in (2, 6):
        step = 24 // lines
        first, second = (
            "\n".join(" ".join(words[at : at + step]) for at in range(0, 24, step)) for words in (before, after)
        )
        assert not changed(within("", first), within("", second))


def test_paragraphs_are_a_change_whether_added_removed_or_rewritten() -> None:
    paragraph, other = words_of(60, 21), words_of(60, 22)
    for place in range(3):
        with_one, with_other = within(*[""] * place, paragraph), within(*[""] * place, other)
        assert changed(ARTICLE, with_one)
        assert changed(with_one, ARTICLE)
        assert changed(with_one, with_other)


def test_a_paragraph_in_chinese_is_a_change_and_a_date_in_it_is_not() -> None:
    letters = "".join(chr(0x4E00 + number * 37 % 5000) for number in range(600))
    page = f"{letters[:300]}2026年9月6日{letters[300:400]}"
    assert not changed(page, page.replace("9月6日", "11月16日"))
    assert changed(page, page + "\n" + letters[400:500])


def test_the_order_of_lines_is_no_change() -> None:
    assert not changed(ARTICLE, "\n".join(reversed(ARTICLE.split("\n"))))


def test_new_headlines_are_a_change() -> None:
    first, second = ("\n".join(words_of(8, seed + at) for at in range(10)) for seed in (100, 200))
    assert changed(within(first), within(second))


def test_a_new_title_is_a_change_but_not_a_number_in_it() -> None:
    text = ARTICLE.encode()
    titles = ("Inbox of messages", "(3) Inbox of messages", "Archive of messages")
    first, _, other = (sketch_of(text, title) for title in titles)
    assert has_changed(first, other)
    assert not has_changed(sketch_of(text, "Results, 3 new"), sketch_of(text, "Results, 12 new"))


@pytest.mark.parametrize("price", ["€ {}", "€{}", "{} €", "${}", "US$ {}", "{} EUR", "CHF {}", "{} zł", "{}円", "£{}"])
def test_another_price_is_a_change(price: str) -> None:
    before, after = (SHORT.format(price.format(amount)) for amount in ("19.90", "24.90"))
    assert changed(before, after)
    assert changed(within(before), within(after))


def test_other_numbers_are_no_change() -> None:
    assert not changed(SHORT.format("12 in stock"), SHORT.format("7 in stock"))


def test_the_price_in_an_advertisement_is_no_change() -> None:
    before, after = "Warm socks of fine wool from € 4.90 only today", "A new phone with two screens for € 499 and more"
    assert not changed(within(before), within(after))


def test_a_short_text_changes_by_few_words() -> None:
    assert changed("Closed on account of illness until further notice", "Open again every day from morning to evening")


def test_without_text_there_is_no_sketch() -> None:
    assert sketch_of(b"") == sketch_of(b" \n\t") == b""
    assert not has_changed(b"", b"")
    assert has_changed(b"", sketch_of(b"words"))
    assert has_changed(sketch_of(b"words"), b"")
    assert len(sketch_of(b"2026")) == len(sketch_of(ARTICLE.encode(), "title")) == SKETCH_BYTES <= 70


def test_a_sketch_of_another_format_is_no_change() -> None:
    assert not has_changed(b"other", sketch_of(b"words"))


@given(st.integers(0, 500), st.integers(0, 500))
@settings(max_examples=amount(15, 50))
def test_similarity_is_the_share_of_words_that_are_the_same(removed: int, added: int) -> None:
    words = [f"w{chr(97 + at // 26 % 26)}{chr(97 + at % 26)}{'x' * (at // 676)}" for at in range(1500)]
    before, after = words[:1000], words[removed:1000] + words[1000 : 1000 + added]
    found = similarity(*(sketch_of("\n".join(each).encode()) for each in (before, after)))
    expected = 1 - max(removed, added) / max(len(before), len(after))
    assert abs(found - expected) < 0.02 + 0.5 * (1 - expected)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300).map(str.encode)
PIECES = [
    "a",
    " ",
    "\n",
    "7",
    "19.99",
    "$",
    "€",
    "元",
    "円",
    "원",
    "EUR ",
    "kr ",
    "Kč ",
    "é",
    "世",
    "界",
    "ก",
    "٣",
    "५",
    "０",
]


@pytest.mark.skipif(kernel is None, reason="need compiled parts: install a C compiler, then make clean test")
@given(
    ANY_TEXT
    | st.binary(max_size=300)
    | st.lists(st.sampled_from([*PIECES, "Word" * 5]), max_size=80).map(lambda parts: "".join(parts).encode())
    | st.lists(
        st.sampled_from([b"\xe3", b"\xe0", b"\xd9", b"\xa3", b"\xef\xbc", b"\x90", b" ", b"x"]), max_size=80
    ).map(b"".join)
)
@example(b"x\xe4\xb8\x96" * 200)
@example(b"a " * 60_000)
@example(b" " * 63 + b"word" + b" " * 61 + b"9" * 70 + b" word word word")
def test_c_and_python_count_alike(text: bytes) -> None:
    assert word_pairs(text) == plain_word_pairs(text)
