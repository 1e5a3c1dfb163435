"""Do the pages of a kind say anything new, and what do they lead to?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.dedup.minhash import minhash
from gossamer.core.traps.novelty import LANES, WINDOW, Growth, PageLinks, PageMark, PageWindow, record_lanes
from gossamer.foundation.kernel import kernel
from gossamer.parse.text.fingerprint import number_fingerprint, text_fingerprint
from tests.support.sites.trap_sites import HONEST, TRAPS, Site, prose

HOST = "a.test"


def mark_of(url: str, text: str) -> PageMark:
    """Return what a page is compared by, as the worker and the engine compute it."""
    data = text.encode()
    lanes = minhash(data)[: 4 * LANES]
    return PageMark(text_fingerprint(data, url), lanes, len(text.split()), numbers=number_fingerprint(data, url))


def windows_that_are_new(site: Site, pages: int) -> list[bool]:
    """Return of each full window of a site's pages whether it is new."""
    window, found = PageWindow(), []
    for number in range(1, pages + 1):
        window.add(mark_of(f"http://{HOST}{site.path(number)}", site.text(number)))
        if window.fetched >= WINDOW:
            found.append(window.is_new())
            window.restart(is_watched=True)
    return found


@pytest.mark.parametrize("name", sorted(HONEST))
def test_every_window_of_an_honest_site_is_new(name: str) -> None:
    assert all(windows_that_are_new(HONEST[name], 1000))


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_the_windows_of_a_trap_are_soon_not_new(name: str) -> None:
    later = windows_that_are_new(TRAPS[name], 1000)[5:]
    assert not any(one and other for one, other in pairwise(later)), "two in a row would clear a suspicion"


def test_few_new_pages_among_many_are_enough() -> None:
    site = Site(lambda n: f"/x?n={n}", lambda n: prose(80, n) if n % 10 == 0 else prose(80, "the same"))
    assert all(windows_that_are_new(site, 2000))


def test_copies_of_the_hosts_own_pages_bring_nothing_new() -> None:
    window = PageWindow()
    for number in range(WINDOW):
        window.add(PageMark(str(number).encode(), is_copy=True))
    assert not window.is_new()


def test_a_mirror_is_as_new_as_what_it_mirrors_until_it_is_mirrored_again_and_again() -> None:
    window = PageWindow()
    found = []
    for number in range(5 * WINDOW):
        lanes = minhash(prose(100, number).encode())[: 4 * LANES]
        window.add(PageMark(b"%d" % number, lanes, 100, is_copy=True, original=b"%d" % (number % WINDOW)))
        if window.fetched >= WINDOW:
            found.append(window.is_new())
            window.restart(is_watched=True)
    assert found == [True, True, False, False]


def test_numbers_of_the_address_and_those_beside_them_are_nothing_new() -> None:
    dates = Site(
        lambda n: f"/day/{n}", lambda n: f"{n} is the day {n} and {n}, before it {n - 1}, next {n + 1} and so on"
    )
    prices = Site(lambda n: f"/item/{n}", lambda n: " ".join(f"{n * 37 % 1000} of {n * 91 % 777}" for _ in range(9)))
    assert not any(windows_that_are_new(dates, 300))
    assert all(windows_that_are_new(prices, 300))


def test_growth_counts_pages_whose_links_are_followed() -> None:
    growth = Growth()
    for number in range(10):
        growth.new += 2
        growth.add(PageLinks(found=5, new=2, are_followed=number < 6), "", is_dull=False)
    assert growth.pages == 6
    assert growth.per_page == 20 / 6


def noise(pages: int, *, known: int = 0, is_prose: bool = False) -> Growth:
    growth = Growth()
    for number in range(pages):
        growth.new += 3
        links = PageLinks(found=3 + 7 + known * (number % 2), new=3, is_prose=is_prose)
        growth.add(links, "", is_dull=False)
    return growth


def test_pages_of_random_words_that_lead_to_ever_new_names_are_noise() -> None:
    assert noise(50).is_a_tree_of_noise, "the menu is known on every page, and counts for nothing"
    assert not noise(50, is_prose=True).is_a_tree_of_noise
    assert not noise(50, known=2).is_a_tree_of_noise, "pages that people make refer to each other"


def test_pages_are_spread_if_no_folder_has_most_of_them() -> None:
    spread, crowded = Growth(), Growth()
    for number in range(50):
        spread.add(PageLinks(), f"/a/{number % 10}/", is_dull=False)
        crowded.add(PageLinks(), f"/a/{number % 10 if number % 3 else 0}/", is_dull=False)
    assert spread.is_spread
    assert spread.folder == "/a/"
    assert crowded.is_spread
    for _ in range(60):
        crowded.add(PageLinks(), "/a/0/", is_dull=False)
    assert not crowded.is_spread


def test_pages_that_repeat_others_decide_where_a_tree_repeats_itself() -> None:
    growth = Growth()
    for number in range(50):
        is_dull = number % 5 > 0
        growth.add(PageLinks(), f"/a/copy/{number % 20}/" if is_dull else f"/b/{number}/", is_dull=is_dull)
    assert growth.folder == "/a/copy/"
    assert growth.is_spread


@pytest.mark.skipif(kernel is None, reason="need compiled parts: install a C compiler, then make clean test")
@given(st.lists(st.lists(st.integers(0, 12), min_size=LANES, max_size=LANES), min_size=1, max_size=60))
def test_both_forms_of_recording_lanes_are_the_same(pages: list[list[int]]) -> None:
    assert kernel is not None
    fields = [(bytearray(4 * LANES), bytearray(8 * LANES), bytearray(64)) for _ in range(2)]
    for number, page in enumerate(pages):
        values = b"".join((value * 0x01010107 % 2**32).to_bytes(4, "little") for value in page)
        generation = 2 + number // 20
        ours = record_lanes(values, *fields[0], generation, number)
        assert kernel.record_lanes(values, *fields[1], generation, number) == ours
        assert fields[0] == fields[1]
