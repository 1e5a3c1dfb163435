"""The signature of a text: what counts in it, and that C and Python make the same one of any text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xxhash import xxh32_intdigest

from gossamer.core.dedup import minhash, simhash
from gossamer.core.dedup.scheme import NearDup, signature_of
from gossamer.core.dedup.shingles import MAX_CHARS, shingle_hashes, words_of
from gossamer.foundation.kernel import Kernel
from gossamer.foundation.kernel import kernel as compiled
from tests.amount import amount
from tests.core.dedup.texts import text, with_changes

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300) | st.text(
    "aB \t\n\u00a0é\ud800\x1f", max_size=200
)
LANE_BITS = 0xFFFFFFFF


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    if compiled is None:
        pytest.skip("need compiled parts: install a C compiler, then make clean test")
    return compiled


@given(ANY_TEXT)
@example("")
@example(" \n\t")
@example("one")
@example("a b c d")
@example("a b c d e")
@example("A\x0bB\x0cC\x1cD\x85E\xa0F")
@example("\ud800 lone \udfff surrogates are let through")
@example("İSTANBUL ΣΊΣΥΦΟΣ straße 漢字 𝔸𝔹 e\u0301")
@example("x" * 15 + " " + "y" * 16 + " " + "z" * 17 + " " + "w" * 40 + " v")
def test_c_and_python_sign_alike(kernel: Kernel, words: str) -> None:
    assert kernel.minhash(words) == minhash.plain_minhash(words)
    assert kernel.simhash(words) == simhash.plain_simhash(words)
    utf8 = words.encode("utf-8", "surrogatepass")
    assert kernel.minhash(utf8) == kernel.minhash(words) == minhash.plain_minhash(utf8)
    assert kernel.simhash(utf8) == kernel.simhash(words) == simhash.plain_simhash(utf8)


@settings(max_examples=amount(50, 200))
@given(
    st.lists(st.tuples(st.integers(1, 35), st.sampled_from([" ", "\n", "  ", " " * 63])), max_size=60),
    st.integers(1, 9),
)
def test_c_and_python_sign_words_of_all_lengths_alike(
    kernel: Kernel, shapes: list[tuple[int, str]], repeats: int
) -> None:
    words = "".join(("Abcdefghijk" * 4)[:length] + blank for length, blank in shapes) * repeats
    assert kernel.minhash(words) == minhash.plain_minhash(words)
    assert kernel.simhash(words) == simhash.plain_simhash(words)


@pytest.mark.parametrize("seed", range(3))
def test_c_and_python_sign_long_texts_alike(kernel: Kernel, seed: int) -> None:
    long = text(20_000, seed) + " ünd " + text(2000, seed)
    assert len(long) > MAX_CHARS
    assert kernel.minhash(long) == minhash.plain_minhash(long)
    assert kernel.simhash(long) == simhash.plain_simhash(long)


@given(st.binary(min_size=512, max_size=512), st.binary(min_size=512, max_size=512), st.integers(0, 512))
def test_c_and_python_compare_alike(kernel: Kernel, one: bytes, other: bytes, same: int) -> None:
    mixed = one[:same] + other[same:]
    assert kernel.equal_lanes(one, mixed) == minhash.plain_equal_lanes(one, mixed) >= same // 4


@pytest.mark.parametrize("sign", [minhash.minhash, minhash.plain_minhash])
def test_a_lane_is_the_least_of_all_shingles(sign: Callable[[str], bytes]) -> None:
    factors, addends = minhash._permutations()
    some = text(50)
    hashes = [value >> 32 for value in shingle_hashes(some)]
    lanes = [min((value * a + b) & LANE_BITS for value in hashes) for a, b in zip(factors, addends, strict=True)]
    assert list(memoryview(sign(some)).cast("I")) == lanes


def test_words_are_runs_between_ascii_blanks_with_ascii_letters_in_lower_case() -> None:
    assert words_of("Ein\tWort\x0b ÄRGER\r\n") == [b"ein", b"wort", "Ärger".encode()]
    assert len(shingle_hashes("a b c d e f g")) == 3
    assert len(shingle_hashes("a b c")) == 1
    assert shingle_hashes("  ") == []


def test_blanks_and_case_make_no_difference() -> None:
    assert minhash.minhash("One two three\nfour FIVE six") == minhash.minhash("  one TWO three four five six ")


def test_a_short_text_is_one_shingle_of_all_its_words() -> None:
    assert minhash.minhash("not found") == minhash.minhash("Not  Found")
    assert minhash.minhash("not found") != minhash.minhash("found not")


def test_a_text_without_words_has_no_signature() -> None:
    assert signature_of("", NearDup.MINHASH) == signature_of(" \n", NearDup.SIMHASH) == b""
    assert signature_of("some words", NearDup.OFF) == b""


def test_what_lies_beyond_the_limit_makes_no_difference() -> None:
    long = ("word " * (MAX_CHARS // 5))[:MAX_CHARS]
    assert minhash.minhash(long) == minhash.minhash(long + "and more of other things")


def test_equal_lanes_estimate_the_share_of_equal_shingles() -> None:
    first = text(1000)
    for changes, jaccard in ((10, 0.904), (40, 0.664)):
        share = minhash.equal_lanes(minhash.minhash(first), minhash.minhash(with_changes(first, changes))) / 128
        assert abs(share - jaccard) < 0.1


def test_simhashes_of_like_texts_differ_in_few_bits() -> None:
    first = text(1000)
    near, far = (int.from_bytes(simhash.simhash(other), "little") for other in (with_changes(first, 3), text(1000, 9)))
    signature = int.from_bytes(simhash.simhash(first), "little")
    assert (signature ^ near).bit_count() <= 5
    assert (signature ^ far).bit_count() > 15


def test_words_are_hashed_as_the_kernel_does_it() -> None:
    assert xxh32_intdigest(b"") == 0x02CC5D05, "XXH32 with seed 0, as its specification says"


def test_a_signature_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="512 bytes"):
        minhash.equal_lanes(b"short", b"short")
