"""What the index finds, held to a comparison with everything that is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.dedup.texts import text, with_changes

from gossamer.core.dedup.index import Match, MinHashIndex, NearIndex, SimHashIndex, index_of
from gossamer.core.dedup.minhash import minhash
from gossamer.core.dedup.scheme import SCHEMES, NearDup


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
