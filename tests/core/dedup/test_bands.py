"""The table of bands: who shares one is found, in C as in Python."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.dedup.bands import MAX_CANDIDATES, MAX_EQUAL, PlainBandTable
from gossamer.foundation.kernel import Bands, kernel

MAKERS: list[Callable[[], Bands]] = [PlainBandTable, *([kernel.band_table] if kernel is not None else [])]
tables = pytest.mark.parametrize("make", MAKERS)
BAND = 32


def signature(*bands: int) -> bytes:
    """Return a signature whose bands have these values; those that are not given are all different."""
    rest = [Random(repr((bands, band))).randbytes(BAND) for band in range(len(bands), 16)]
    return b"".join([value.to_bytes(BAND, "big") for value in bands] + rest)


@tables
def test_pages_that_share_a_band_are_candidates_those_with_most_in_common_first(make: Callable[[], Bands]) -> None:
    table = make()
    table.add(0, signature(1))
    table.add(1, signature(2, 2, 2))
    table.add(2, signature(3))
    table.add(3, signature(1, 2, 9))
    assert table.candidates(signature(1, 2, 7)) == [3, 0, 1]
    assert table.candidates(signature(8, 1)) == []


@tables
def test_a_band_at_another_place_is_another_band(make: Callable[[], Bands]) -> None:
    table = make()
    table.add(0, signature(1, 2))
    assert table.candidates(signature(2, 1)) == []


@tables
def test_it_grows_and_forgets_nothing(make: Callable[[], Bands]) -> None:
    draw = Random(5)
    signatures = [draw.randbytes(512) for _ in range(3000)]
    table = make()
    for number, each in enumerate(signatures[:1500]):
        table.add(number, each)
    table.add_many(1500, b"".join(b"id of 16 bytes.." + each for each in signatures[1500:]), 528)
    assert all(table.candidates(each) == [number] for number, each in enumerate(signatures))
    assert 100 < table.size_in_bytes() / 3000 < 600


@tables
def test_in_boilerplate_the_latest_pages_stand(make: Callable[[], Bands]) -> None:
    table = make()
    for number in range(100):
        table.add(number, signature(7, number + 100))
    latest = list(range(100 - MAX_EQUAL, 100))
    assert table.candidates(signature(7)) == latest[:MAX_CANDIDATES]
    assert table.candidates(signature(7, 142))[0] == 42, "by its other bands every page is found"
    assert table.candidates(signature(7, 199))[0] == 99


@tables
def test_what_is_no_signature_is_refused(make: Callable[[], Bands]) -> None:
    with pytest.raises(ValueError, match="512 bytes"):
        make().add(0, b"short")
    with pytest.raises(ValueError, match="512 bytes"):
        make().candidates(b"short")
    with pytest.raises(ValueError, match="ending with a signature"):
        make().add_many(0, bytes(1000), 528)


few_values = st.lists(st.integers(0, 3), min_size=0, max_size=16)


@pytest.mark.skipif(kernel is None, reason="need compiled parts: install a C compiler, then make clean test")
@given(st.lists(few_values, max_size=120), few_values)
def test_c_and_python_find_the_same(kept: list[list[int]], asked: list[int]) -> None:
    plain, compiled = (make() for make in MAKERS)
    for number, bands in enumerate(kept):
        plain.add(number, signature(*bands))
        compiled.add(number, signature(*bands))
    found = compiled.candidates(signature(*asked))
    assert found == plain.candidates(signature(*asked))
    assert len(found) <= MAX_CANDIDATES
