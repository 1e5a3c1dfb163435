"""Which kinds of URL bring nothing new?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.dedup.minhash import minhash
from gossamer.core.novelty import (
    LANES,
    MAX_PATTERNS,
    MIN_PAGES,
    WINDOW,
    Novelty,
    PageMark,
    Quarantine,
    patterns_of,
    record_lanes,
)
from gossamer.kernel import kernel
from gossamer.parse.fingerprint import text_fingerprint
from gossamer.sim.trap_sites import HONEST, TRAPS, Site, prose, turning

HOST = "a.test"


@pytest.mark.parametrize(
    ("path", "shape", "coarse"),
    [
        ("/", "/", "/*"),
        ("/about", "/about", "/*"),
        ("/item/17", "/item/#", "/item/**"),
        ("/item/17/reviews/4", "/item/#/reviews/#", "/item/**"),
        ("/list?page=2&sort=up", "/list?page&sort", "/list?*"),
        ("/list?sort=up&page=2", "/list?page&sort", "/list?*"),
        ("/s/0123456789abcdef01/x", "/s/*/x", "/s/**"),
    ],
)
def test_urls_fall_into_patterns(path: str, shape: str, coarse: str) -> None:
    assert patterns_of(f"http://{HOST}{path}") == (shape, coarse)


def told(novelty: Novelty, count: int, text: str, *, start: int = 0) -> list[Quarantine]:
    begun = []
    for number in range(start, start + count):
        url = f"http://{HOST}/shop?color={number}&size={number % 7}"
        mark = PageMark(text.format(number=number).encode())
        quarantine = novelty.record(url, HOST, mark, 1.0)
        if quarantine is not None:
            begun.append(quarantine)
    return begun


def mark_of(url: str, text: str) -> PageMark:
    """Return what a page is compared by, as the worker and the engine compute it."""
    data = text.encode()
    lanes = minhash(data)[: 4 * LANES]
    return PageMark(text_fingerprint(data, url), lanes, len(text.split()))


def requests_until_cut(site: Site, pages: int) -> int | None:
    """Return how many pages of a site are fetched before its pattern is held; None if it never is."""
    novelty = Novelty()
    for number in range(1, pages + 1):
        url = f"http://{HOST}{site.path(number)}"
        if novelty.refusal(url, HOST) is not None:
            return number - 1
        novelty.record(url, HOST, mark_of(url, site.text(number)), 1.0)
    return None


@pytest.mark.parametrize("name", sorted(HONEST))
def test_honest_sites_are_never_cut(name: str) -> None:
    assert requests_until_cut(HONEST[name], 2000) is None


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_traps_are_cut_within_300_requests(name: str) -> None:
    cut = requests_until_cut(TRAPS[name], 1000)
    assert cut is not None
    assert cut <= 300 - MIN_PAGES, "hosts are watched from their fiftieth page on"


def test_a_pattern_without_anything_new_is_held() -> None:
    novelty = Novelty()
    (quarantine,) = told(novelty, WINDOW, "the same")
    assert quarantine.fetched == WINDOW
    assert quarantine.new == 1
    assert quarantine.samples
    assert novelty.refusal(f"http://{HOST}/shop?color=x&size=y", HOST) == "quarantine"
    assert novelty.refusal(f"http://{HOST}/other", HOST) is None
    assert novelty.refusal("http://b.test/shop?color=x&size=y", "b.test") is None


def test_numbered_pages_with_new_content_are_never_held() -> None:
    assert told(Novelty(), 10_000, "page {number}") == []


def test_a_pattern_that_dries_up_is_held_then() -> None:
    novelty = Novelty()
    assert told(novelty, 1000, "page {number}") == []
    assert told(novelty, 9 * WINDOW, "the end", start=1000)


def test_few_new_pages_among_many_are_enough() -> None:
    novelty = Novelty()
    for number in range(2000):
        text = prose(80, number) if number % 10 == 0 else prose(80, "the same")
        url = f"http://{HOST}/x?n={number}"
        assert novelty.record(url, HOST, mark_of(url, text), 1.0) is None


def test_copies_of_the_hosts_own_pages_bring_nothing_new() -> None:
    novelty = Novelty()
    marks = [PageMark(str(number).encode(), is_copy=True) for number in range(WINDOW)]
    begun = [novelty.record(f"http://{HOST}/x?n={n}", HOST, mark, 1.0) for n, mark in enumerate(marks)]
    assert begun[-1] is not None


def test_ever_new_names_of_parameters_do_not_escape() -> None:
    novelty = Novelty()
    begun = [
        novelty.record(f"http://{HOST}/shop?p{number}=1", HOST, PageMark(b"same"), 1.0) for number in range(WINDOW)
    ]
    assert [each.pattern for each in begun if each] == ["/shop?*"]


def test_what_is_released_is_not_held_again() -> None:
    novelty = Novelty()
    kept = told(novelty, 200, "the same")
    assert kept
    again = Novelty()
    for quarantine in kept:
        quarantine.is_released = True
        again.load(quarantine)
    assert again.refusal(f"http://{HOST}/shop?color=1&size=1", HOST) is None
    held = {quarantine.pattern for quarantine in kept}
    assert not [each for each in told(again, 300, "the same") if each.pattern in held]


def test_memory_is_bounded() -> None:
    novelty = Novelty()
    for number in range(MAX_PATTERNS + 500):
        novelty.record(f"http://h{number}.test/x", f"h{number}.test", PageMark(b"x"), 1.0)
    assert len(novelty._windows) <= MAX_PATTERNS


def test_a_page_of_a_pattern_in_quarantine_begins_no_other_quarantine() -> None:
    novelty = Novelty(window=10)
    mark = PageMark(b"the same")
    begun = [novelty.record(f"http://a.test/shop?x={n}", "a.test", mark, 0.0) for n in range(40)]
    assert len([one for one in begun if one is not None]) == 1


def test_a_released_pattern_is_open_whatever_else_matches_its_urls() -> None:
    novelty = Novelty()
    for pattern, is_released in (("/shop?x", True), ("/shop?*", False)):
        novelty.load(Quarantine("a.test", pattern, 0.0, 50, 0, [], is_released=is_released))
    assert novelty.refusal("http://a.test/shop?x=1", "a.test") is None
    assert novelty.refusal("http://a.test/shop?y=1", "a.test") == "quarantine"


@pytest.mark.parametrize(("name", "most"), [("facets", 420), ("session ids", 420), ("facets in any order", 870)])
@pytest.mark.parametrize("honest_pages", [2000, 2130])
def test_a_site_that_turns_into_a_trap_after_2000_pages_is_cut(name: str, most: int, honest_pages: int) -> None:
    site, novelty = turning(HONEST["an archive by date"], TRAPS[name], honest_pages), Novelty()
    for number in range(1, honest_pages + most + 1):
        url, text = f"http://{HOST}{site.path(number)}", site.text(number).encode()
        mark = PageMark(text_fingerprint(text, url), minhash(text)[: 4 * LANES], len(text.split()))
        if novelty.record(url, HOST, mark, 0.0) is not None:
            assert number > honest_pages
            return
    raise AssertionError("it is not cut")


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
