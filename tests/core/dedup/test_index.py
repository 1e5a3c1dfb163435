"""What the index finds, held to a comparison with everything that is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.dedup.index import Match, MinHashIndex, NearIndex, NewestIndex, SimHashIndex, index_of
from gossamer.core.dedup.minhash import minhash
from gossamer.core.dedup.scheme import SCHEMES, NearDup
from tests.core.dedup.texts import text, with_changes


def kept(index: NearIndex, signatures: list[bytes]) -> NearIndex:
    for number, signature in enumerate(signatures):
        index.add(number, signature)
    return index


def test_a_text_with_few_changes_is_found_and_one_with_many_is_not() -> None:
    signatures = [minhash(text(500, seed)) for seed in range(50)]
    index = kept(MinHashIndex(), signatures)
    near, far = with_changes(text(500, 17), 2), with_changes(text(500, 17), 15)
    match = index.nearest(minhash(near), signatures.__getitem__)
    assert match is not None
    assert match.number == 17
    assert 0.9 <= match.similarity < 1.0
    assert index.nearest(minhash(far), signatures.__getitem__) is None


def test_of_several_the_most_similar_counts_and_of_equals_the_first() -> None:
    base = minhash(text())
    other = minhash(text(seed=5))
    less, more = base[:480] + other[480:], base[:496] + other[496:]
    signatures = [less, more, more]
    match = kept(MinHashIndex(), signatures).nearest(base, signatures.__getitem__)
    assert match == Match(1, 124 / 128)


simhashes = st.integers(0, (1 << 64) - 1)


@given(st.lists(simhashes, max_size=20), simhashes, st.lists(st.integers(0, 63), max_size=6))
def test_every_simhash_within_distance_3_is_found(values: list[int], base: int, flips: list[int]) -> None:
    asked = base
    for bit in flips:
        asked ^= 1 << bit
    values = [*values, base, base ^ 1]
    index = kept(SimHashIndex(), [value.to_bytes(8, "little") for value in values])
    match = index.nearest(asked.to_bytes(8, "little"), lambda _: b"")
    distance, number = min(((value ^ asked).bit_count(), number) for number, value in enumerate(values))
    assert match == (Match(number, 1 - distance / 64) if distance <= 3 else None)


def test_an_edition_has_its_index() -> None:
    assert isinstance(index_of(SCHEMES[NearDup.MINHASH].edition), MinHashIndex)
    assert isinstance(index_of(SCHEMES[NearDup.SIMHASH].edition), SimHashIndex)


def test_records_in_a_row_are_added_at_once() -> None:
    index = SimHashIndex()
    index.add_many(5, b"".join(b"id" + bytes([n] * 8) for n in (0, 255)), 10)
    assert index.nearest(b"\xff" * 8, lambda _: b"") == Match(6, 1.0)
    assert index.size_in_bytes() > 0


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 20))
def test_of_too_many_pages_the_newest_are_found_and_the_oldest_are_not(texts: list[int], max_pages: int) -> None:
    signatures = [
        (texts[n] << 32 | texts[n] * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(8, "little") for n in range(len(texts))
    ]
    index = NewestIndex(SimHashIndex, max_pages)
    for number, signature in enumerate(signatures):
        index.add(number, signature)
    half = max(1, max_pages // 2)
    for number, signature in enumerate(signatures):
        match = index.nearest(signature, lambda _: b"")
        if number >= len(signatures) - half:
            assert match is not None, "the newest half is always there"
        if match is not None and match.similarity == 1.0:
            assert match.number >= len(signatures) - 2 * half, "and no more than all of them"
            assert texts[match.number] == texts[number]
    assert index.has_forgotten == (len(signatures) > 2 * half)


def test_the_older_half_is_let_go_when_memory_is_short() -> None:
    signatures = [minhash(text(500, seed)) for seed in range(15)]
    index = NewestIndex(MinHashIndex, 20)
    for number, signature in enumerate(signatures):
        index.add(number, signature)
    assert index.nearest(signatures[3], signatures.__getitem__) == Match(3, 1.0)
    before = index.size_in_bytes()
    index.forget_older()
    index.forget_older()
    assert index.has_forgotten
    assert index.size_in_bytes() < before
    assert index.nearest(signatures[3], signatures.__getitem__) is None
    assert index.nearest(signatures[12], signatures.__getitem__) == Match(12, 1.0)


def test_of_equal_pages_in_both_halves_the_first_counts() -> None:
    same, others = minhash(text()), [minhash(text(seed=seed)) for seed in range(1, 5)]
    signatures = [same, others[0], same, others[1]]
    index = NewestIndex(MinHashIndex, 4)
    index.add_many(0, b"".join(signatures), len(same))
    assert index.nearest(same, signatures.__getitem__) == Match(0, 1.0)
    assert not index.has_forgotten


def test_many_at_once_are_as_one_by_one() -> None:
    signatures = [minhash(text(200, seed)) for seed in range(23)]
    at_once, one_by_one = NewestIndex(MinHashIndex, 8), NewestIndex(MinHashIndex, 8)
    at_once.add_many(0, b"".join(signatures), len(signatures[0]))
    for number, signature in enumerate(signatures):
        one_by_one.add(number, signature)
    for signature in signatures:
        assert at_once.nearest(signature, signatures.__getitem__) == one_by_one.nearest(
            signature, signatures.__getitem__
        )
    assert at_once.has_forgotten
