from __future__ import annotations

import pytest

from gossamer.core.revisit.classes import FEED_RULE, MAX_LINKS, RULES, ClassPatterns, PageClass, class_of, counted_links
from gossamer.core.revisit.rate import Rate


def sure(per_day: float) -> Rate:
    return Rate(30.0, 30.0 / per_day)


@pytest.mark.parametrize(
    ("per_day", "links", "rank", "expected"),
    [
        (4.0, 3, 0.2, PageClass.NEWS),
        (4.0, 3, 0.95, PageClass.NEWS),
        (50.0, 0, 0.2, PageClass.STATIC),  # changes all the time and brings nothing
        (50.0, 0, 0.95, PageClass.POPULAR),
        (0.1, 3, 0.2, PageClass.STATIC),
        (0.001, 0, 0.95, PageClass.POPULAR),
        (0.001, 0, 0.2, PageClass.RARE),
    ],
)
def test_a_class_follows_from_what_a_page_does(per_day: float, links: int, rank: float, expected: PageClass) -> None:
    assert class_of(PageClass.STATIC, sure(per_day), 0, links, rank) is expected


def test_what_could_be_news_is_visited_as_news_until_it_is_known() -> None:
    vague, known = Rate(0.8, 1.6), Rate(20.0, 40.0)  # both every other day
    assert class_of(PageClass.STATIC, vague, 1, 2, 0.0) is PageClass.NEWS
    assert class_of(PageClass.STATIC, vague, 1, 1, 0.0) is PageClass.STATIC
    assert class_of(PageClass.STATIC, known, 1, 2, 0.0) is PageClass.STATIC
    assert class_of(PageClass.STATIC, sure(0.3), 2, 2, 0.0) is PageClass.NEWS  # it changed at every visit
    assert class_of(PageClass.NEWS, sure(0.3), -1, 2, 0.0) is PageClass.STATIC


def test_to_stay_in_a_class_less_is_required_than_to_enter_it() -> None:
    for per_day, links, stayed in ((0.45, 1, PageClass.NEWS), (1 / 60, 0, PageClass.RARE)):
        assert class_of(stayed, sure(per_day), 0, links, 0.0) is stayed
        assert class_of(PageClass.STATIC, sure(per_day), 0, links, 0.0) is PageClass.STATIC


def test_changes_with_and_without_links_are_counted_against_each_other() -> None:
    links = 0
    for brought in [True, True, False, True]:
        links = counted_links(links, brought)
    assert links == 2
    for _ in range(40):
        links = counted_links(links, True)
    assert links == MAX_LINKS
    assert counted_links(0, False) == 0


def test_a_heavier_class_is_visited_more_often() -> None:
    rate = Rate(5.0, 50.0)
    order = (PageClass.POPULAR, PageClass.STATIC, PageClass.RARE)
    intervals = [RULES[page_class].interval(rate, 0.5) for page_class in order]
    assert intervals == sorted(intervals)
    assert RULES[PageClass.NEWS].interval(Rate(0.1, 400.0), 100.0) == RULES[PageClass.NEWS].longest_days


def test_a_feed_may_be_fetched_every_few_minutes() -> None:
    fast, slow = Rate(20.0, 0.1), Rate(1.0, 30.0)
    assert FEED_RULE.interval(fast, 0.01) * 1440 < 60
    assert FEED_RULE.interval(fast, 1e-7) * 1440 == pytest.approx(5.0)
    assert FEED_RULE.interval(slow, 100.0) == 1.0


def test_the_operator_sets_classes_by_pattern_and_the_first_match_counts() -> None:
    patterns = ClassPatterns(
        ((PageClass.NEWS, r"/news/"), (PageClass.RARE, r"^https://old\."), (PageClass.STATIC, "."))
    )
    assert patterns.class_of("https://old.example/news/1") is PageClass.NEWS
    assert patterns.class_of("https://old.example/a") is PageClass.RARE
    assert patterns.class_of("https://a.example/") is PageClass.STATIC
    assert ClassPatterns().class_of("https://a.example/") is None
    assert ClassPatterns(((PageClass.NEWS, "x"),)).class_of("https://a.test/") is None
