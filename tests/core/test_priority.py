from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.frontier.priority import Ordering, QueueOrder, ordering, score
from gossamer.core.frontier.workbench import DomainSlot, HostSlot, Workbench
from gossamer.core.url.forms import url_id
from gossamer.model.records import HostRecord

LONG_QUERY = "http://h.test/?" + "q" * 51
LONG_URL = "http://h.test/" + "a" * 90


def _rank(order: Ordering, url: str, depth: int) -> int:
    return order.priority(url, url_id(url), depth)


@pytest.mark.parametrize(
    ("url", "depth", "points"),
    [
        ("http://h.test/", 0, 100),
        ("http://h.test/a", 3, 70),
        ("http://h.test/a.pdf", 0, 80),
        ("http://h.test/a.mp4", 1, 70),
        (LONG_QUERY, 0, 90),
        ("http://h.test/?" + "q" * 50, 0, 100),
        (LONG_URL, 0, 95),
        (LONG_URL + "?" + "q" * 51, 2, 65),
        (LONG_URL + ".pdf?" + "q" * 51, 2, 45),
        ("http://h.test/", 10, 0),
        ("http://h.test/a.pdf", 10, 0),
    ],
)
def test_the_score_of_a_url(url: str, depth: int, points: int) -> None:
    assert score(url, depth) == points


@pytest.mark.parametrize(
    ("url", "depth", "pages", "points"),
    [
        ("http://h.test/", 0, 0, 100),
        ("http://h.test/", 1, 9, 95),
        ("http://h.test/", 1, 10, 90),
        ("http://h.test/", 10, 0, 5),
        ("http://h.test/", 30, 0, 0),
    ],
)
def test_young_domains_have_five_points_more_within_the_bounds(url: str, depth: int, pages: int, points: int) -> None:
    order = ordering(QueueOrder.SCORE)
    assert 100 - order.standing(pages, _rank(order, url, depth), 7)[0] == points


def test_breadth_goes_by_pages_of_the_domain_then_depth_then_arrival() -> None:
    order = ordering(QueueOrder.BREADTH)
    standings = [
        order.standing(pages, _rank(order, "http://h.test/", depth), seq)
        for pages, depth, seq in [(0, 0, 2), (0, 0, 9), (0, 1, 1), (1, 0, 0), (2, 0, 0)]
    ]
    assert standings == sorted(standings)


@pytest.mark.parametrize("name", QueueOrder)
def test_documents_come_after_all_pages_of_a_host(name: QueueOrder) -> None:
    order = ordering(name)
    pages = [_rank(order, f"http://h.test/{n}", 10_000) for n in range(300)]
    for extension in ("pdf", "mp4"):
        assert min(_rank(order, f"http://h.test/{n}.{extension}", 0) for n in range(300)) > max(pages)


@pytest.mark.parametrize("name", QueueOrder)
def test_a_host_with_only_documents_left_comes_after_those_with_pages(name: QueueOrder) -> None:
    order = ordering(name)
    documents = order.standing(0, _rank(order, "http://h.test/a.pdf", 0), 1)
    pages = order.standing(10_000, _rank(order, "http://i.test/a", 50), 2)
    assert pages < documents


def test_documents_are_ordered_among_themselves_by_their_score() -> None:
    order = ordering(QueueOrder.SCORE)
    near, far = (order.standing(20, _rank(order, "http://h.test/a.pdf", depth), 1) for depth in (0, 3))
    assert near < far


def test_the_random_order_is_decided_by_its_seed() -> None:
    urls = [f"http://h.test/{n}" for n in range(100)]

    def shuffled(seed: int) -> list[str]:
        order = ordering(QueueOrder.RANDOM, seed)
        return sorted(urls, key=lambda url: _rank(order, url, 0))

    # Written down, so that another process, machine or version puts them in the same order.
    assert [url.rpartition("/")[2] for url in shuffled(1)[:8]] == "73 63 72 26 29 35 21 98".split()
    assert sorted(shuffled(1)) == sorted(urls)
    assert len({tuple(shuffled(seed)) for seed in range(5)} | {tuple(urls)}) == 6


@given(st.sampled_from(QueueOrder), st.integers(0, 1000), st.text("ab./?=", max_size=80))
def test_ranks_fit_the_ledgers_four_bytes(name: QueueOrder, depth: int, tail: str) -> None:
    assert 0 <= _rank(ordering(name), "http://h.test/" + tail, depth) < 1 << 31


@pytest.mark.parametrize(("rank", "lane"), [(1.0, 0), (0.7, 0), (0.5, 1), (0.3, 2), (0.0, 2)])
def test_lanes_by_host_rank(rank: float, lane: int) -> None:
    assert ordering(QueueOrder.TIERS).lane(rank) == lane
    assert ordering(QueueOrder.BREADTH).lane(rank) == 0


def test_tiers_take_turns_by_weight_and_nobody_starves() -> None:
    bench = Workbench(ordering(QueueOrder.TIERS), FrontierLimits(address_connections=0))
    for lane in range(3):
        for n in range(100):
            host = HostSlot(HostRecord(f"h{lane}-{n}.test", ""), b"", DomainSlot("x.test"), lane=lane)
            bench.enter(host)
            bench.make_ready(host)
    turns = [0, 0, 0]
    for _ in range(100):
        taken = bench.pop_ready()
        assert taken is not None
        bench.move(taken, taken.state.BUSY)
        turns[taken.lane] += 1
    assert turns == [60, 30, 10]
