from __future__ import annotations

from math import exp
from random import Random

import pytest

from gossamer.core.revisit.classes import RULES, PageClass
from gossamer.core.revisit.price import MAX_CORRECTION, Census, Pricer, cell_of, price_for
from gossamer.core.revisit.rate import Rate


def pages(count: int, seed: int = 1) -> list[tuple[PageClass, Rate]]:
    draw = Random(seed)
    classes = [PageClass.STATIC] * 6 + [PageClass.RARE, PageClass.POPULAR]
    return [(draw.choice(classes), Rate(exp(draw.uniform(-1, 2)), exp(draw.uniform(-1, 5)))) for _ in range(count)]


def census_of(them: list[tuple[PageClass, Rate]]) -> Census:
    census = Census()
    for page_class, rate in them:
        census.add(cell_of(page_class, rate))
    return census


@pytest.mark.parametrize("per_page", [0.04, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("last", [1e-7, 1.0, 1e4])
def test_the_price_spends_the_budget(per_page: float, last: float) -> None:
    them = pages(3000)
    price = price_for(census_of(them), 3000 * per_page, last)
    spent = sum(1 / RULES[page_class].interval(rate, price) for page_class, rate in them)
    assert spent == pytest.approx(3000 * per_page, rel=0.03)  # of that 2 % are the width of cells


def test_a_budget_beyond_all_bounds_leads_to_the_shortest_intervals_and_one_below_to_the_longest() -> None:
    census = census_of(pages(100))
    assert census.fetches_per_day(price_for(census, 100 * 25.0)) == pytest.approx(100 * 24)
    assert census.fetches_per_day(price_for(census, 1.0)) == pytest.approx(100 / 30)


def test_without_pages_or_budget_the_price_stays() -> None:
    assert price_for(Census(), 10.0, 0.3) == 0.3
    assert price_for(census_of(pages(5)), 0.0, 0.3) == 0.3


def test_the_work_does_not_grow_with_the_pages() -> None:
    few, many = census_of(pages(20_000)), census_of(pages(60_000))
    assert len(many.cells()) <= len(few.cells()) * 1.1
    assert len(many.cells()) < 1000


def test_a_page_is_counted_in_one_cell() -> None:
    (old_class, old), (new_class, new) = pages(2)
    census = Census()
    census.add(cell_of(old_class, old))
    census.move(cell_of(old_class, old), cell_of(new_class, new))
    assert census.cells() == [(cell_of(new_class, new), 1)]
    census.add(cell_of(new_class, new), -1)
    census.add(cell_of(new_class, new), -1)  # never counted: no negative pages
    assert (census.cells(), census.pages) == ([], 0)


def test_censuses_of_shards_are_added_up_and_stored() -> None:
    them = pages(500)
    one, other, whole = census_of(them[:200]), census_of(them[200:]), census_of(them)
    one.merge(other)
    assert sorted(one.cells()) == sorted(whole.cells()) == sorted(Census(whole.cells()).cells())
    assert one.pages == 500


def test_expected_freshness_by_class() -> None:
    census = census_of([(PageClass.STATIC, Rate(10.0, 1000.0)), (PageClass.POPULAR, Rate(10.0, 10.0))])
    cheap, dear = census.freshness(0.01), census.freshness(5.0)
    assert set(cheap) == {PageClass.STATIC, PageClass.POPULAR}
    assert cheap[PageClass.POPULAR] > dear[PageClass.POPULAR]
    assert dear[PageClass.STATIC] > 0.8


def test_pages_that_are_late_raise_the_price_and_idle_budget_lowers_it() -> None:
    census = census_of(pages(1000))
    calm = Pricer().adjust(census, 200.0, 1.0, 200, 0)
    assert Pricer().adjust(census, 200.0, 1.0, 200, 300) > calm * 1.1
    idle = Pricer()
    prices = [idle.adjust(census, 200.0, 1.0, 100, 0) for _ in range(40)]
    assert prices[-1] < prices[0] * 0.9
    assert census.fetches_per_day(prices[-1]) == pytest.approx(200 * MAX_CORRECTION, rel=0.02)


def test_a_pricer_before_any_time_has_passed_goes_by_the_census() -> None:
    census = census_of(pages(1000))
    assert census.fetches_per_day(Pricer().adjust(census, 150.0, 0.0, 0, 0)) == pytest.approx(150.0, rel=0.01)
