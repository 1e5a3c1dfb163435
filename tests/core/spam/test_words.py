"""The words of a page, counted: in C and in Python, with equal results."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.core.spam.words import HEAD_WORDS, Repetition, plain_repetition
from gossamer.foundation.kernel import words_kernel
from tests.amount import amount

COUNTERS = [plain_repetition, *([words_kernel.repetition] if words_kernel is not None else [])]
needs_kernel = pytest.mark.skipif(
    words_kernel is None, reason="need compiled parts: install a C compiler, then make clean test"
)

MENU = "Our shops\nHow to find us\nPrices of all our shops"
PIECES = st.sampled_from(
    [
        *"hotel Hotel HOTEL QWidget os.path x1 - ' ( ) . , ! | … berlin 東京 酒店 預 ホテル の 。".split(),
        *"отель โรงแรม é a « -- rock'n'roll".split(),
        *(" ", "\n", "\u00a0", "\x7f"),
    ]
)

TEXTS = (
    st.lists(PIECES | st.text(max_size=2), max_size=60).map("".join).map(lambda text: text.encode("utf-8", "replace"))
)


@needs_kernel
@settings(max_examples=amount(375, 1500), deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.sampled_from([1, 1, 40, 400]))
def test_both_count_the_same(text: bytes, title: bytes, url: bytes, times: int) -> None:
    assert words_kernel is not None
    assert words_kernel.repetition(text * times, title, url) == plain_repetition(text * times, title, url)


@needs_kernel
@settings(max_examples=amount(125, 500), deadline=None)
@given(st.binary(max_size=80), st.binary(max_size=20), st.binary(max_size=20), st.sampled_from([1, 300]))
def test_both_count_the_same_in_any_bytes(text: bytes, title: bytes, url: bytes, times: int) -> None:
    assert words_kernel is not None
    assert words_kernel.repetition(text * times, title, url) == plain_repetition(text * times, title, url)


@pytest.mark.parametrize("count", COUNTERS)
@pytest.mark.parametrize(
    ("text", "words", "codes", "distinct"),
    [
        ("one two, two; (three)", 4, 0, 3),
        ("os.path os.path 12.50 x1 QWidget snake_case", 6, 6, 6),
        ("HOTEL Hotel hotel", 3, 0, 1),
        ("酒店預訂", 3, 0, 3),
        ("東京のホテル", 2, 0, 2),
        ("Отель, отель", 2, 0, 2),  # only ASCII letters are brought to lower case
        ("... -- !!", 0, 0, 0),
    ],
)
def test_words_and_codes_are_told_apart(count: object, text: str, words: int, codes: int, distinct: int) -> None:
    assert callable(count)
    found = Repetition(*count(text.encode(), b"", b""))
    assert (found.words, found.codes, found.distinct) == (words, codes, distinct)


@pytest.mark.parametrize("count", COUNTERS)
def test_keywords_of_title_and_address_are_counted(count: object) -> None:
    assert callable(count)
    found = Repetition(*count(b"Cheap hotel. The hotel in Ulm", b"Hotel in Ulm: cheap", b"hotel ulm"))
    assert (found.hits, found.top, found.top_hits, found.echoes) == (3, b"hotel", 2, 2)  # `ulm` and `in` are too short


@pytest.mark.parametrize("count", COUNTERS)
def test_words_of_long_lines_are_counted_by_themselves(count: object) -> None:
    assert callable(count)
    words = " ".join(f"w{chr(97 + n)}" for n in range(24))
    menu, sentence, paragraph = "home shop about us", "one two three four five 6.5", f"{words} again again"
    found = Repetition(*count("\n".join([menu, sentence, paragraph, menu, sentence]).encode(), b"", b""))
    assert (found.run, found.run_codes, found.run_distinct) == (6 + 26 + 6, 2, 5 + 25 + 2)
    assert (found.long_run, found.long_distinct) == (26, 25)
    assert (found.tail_long, found.tail_long_distinct) == (0, 0)
    head = "\n".join(f"{chr(97 + n % 26)}{chr(97 + n // 26)}x" for n in range(HEAD_WORDS))
    found = Repetition(*count(f"{head}\n{'so and ' * 20}\n".encode(), b"", b""))
    assert (found.long_run, found.tail_long, found.tail_long_distinct) == (40, 40, 2)


@pytest.mark.parametrize("count", COUNTERS)
def test_the_rest_of_a_template_does_not_depend_on_the_place(count: object) -> None:
    assert callable(count)
    one, other, different = (
        Repetition(
            *count(
                f"{MENU}\nOur {shop} in {place}, 5 stars, opens at six and closes at ten".encode(), b"", place.encode()
            )
        )
        for shop, place in (("shop", "Bremen"), ("shop", "Leipzig"), ("bank", "Bremen"))
    )
    assert one.rest == other.rest != different.rest
    assert one.rest_words == 11  # nothing of the menu


@pytest.mark.parametrize("count", COUNTERS)
def test_the_end_of_a_long_text_is_read_too(count: object) -> None:
    assert callable(count)
    middle = b" ".join(b"word-%b" % bytes([97 + n % 26, 97 + n // 26 % 26, 97 + n // 676]) for n in range(5000))
    found = Repetition(*count(middle + b" casino casino casino", b"casino", b""))
    assert found.top_hits == 3
    assert HEAD_WORDS < found.words < HEAD_WORDS + 300
