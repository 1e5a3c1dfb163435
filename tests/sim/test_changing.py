"""Revisit policies in virtual time: the simulator against theory, the crawl's own policy against the optimum."""

from __future__ import annotations

from math import exp

import pytest
from msgspec.structs import replace
from tests.support.sites.changing import MIX, ChangingWeb, Course, Kind, Mix, Policy, Simulation
from tests.support.sites.revisit_policies import OwnPolicy, optimal, proportional, uniform

from gossamer.core.revisit.classes import RULES, PageClass
from gossamer.core.revisit.page import VisitFound
from gossamer.core.revisit.schedule import RevisitRule, Schedule

WEIGHTS: dict[PageClass, float] = {each: RULES[each].weight for each in PageClass if each is not PageClass.NEWS}
SMALL = Mix(pages=12_000, pages_per_host=100)
BUDGET = 3000.0


@pytest.fixture(scope="module")
def web() -> ChangingWeb:
    return ChangingWeb(SMALL, seed=1)


def run(web: ChangingWeb, policy: Policy, budget: float = BUDGET) -> Course:
    return Simulation(web, policy, budget, seed=3).run()


@pytest.fixture(scope="module")
def best(web: ChangingWeb) -> Course:
    return run(web, optimal(web, BUDGET, seed=2))


@pytest.fixture(scope="module")
def own(web: ChangingWeb) -> Course:
    return run(web, OwnPolicy(web, BUDGET, seed=2))


def test_equal_visits_of_equal_pages_have_the_freshness_of_theory() -> None:
    plain = Mix(
        pages=4000,
        kinds=(Kind("weekly", 1.0, 1 / 7),),
        spread=0.0,
        appearing=0.0,
        vanishing_per_day=0.0,
        popular_hosts=0.0,
    )
    web = ChangingWeb(plain, seed=1)
    course = run(web, uniform(web, 400.0, seed=2), 410.0)
    changes = 10 / 7  # per interval
    assert course.freshness({PageClass.STATIC: 1.0}, 12, 30) == pytest.approx((1 - exp(-changes)) / changes, abs=0.01)


def test_no_policy_gets_more_than_its_budget(web: ChangingWeb) -> None:
    for policy in (proportional(web, BUDGET, 2), OwnPolicy(web, BUDGET, 2), optimal(web, 2 * BUDGET, 2)):
        assert run(web, policy).visits <= BUDGET * SMALL.days


def test_the_own_policy_reaches_95_percent_of_the_optimum(best: Course, own: Course) -> None:
    assert own.freshness(WEIGHTS, 28, 30) >= 0.95 * best.freshness(WEIGHTS, 28, 30)


def test_with_the_whole_budget_for_freshness_it_does_better_than_visits_without_estimates() -> None:
    kinds = [replace(kind, share=0.0) if kind.is_news else kind for kind in MIX]
    web = ChangingWeb(replace(SMALL, kinds=kinds), seed=1)
    own, even, eager, best = (
        run(web, make(web, BUDGET, 2)).freshness(WEIGHTS, 28, 30)
        for make in (OwnPolicy, uniform, proportional, optimal)
    )
    assert even * 1.01 < own < best
    assert own > 0.95 * best
    assert own > 1.3 * eager


def test_half_of_the_changes_of_news_are_seen_within_two_hours(own: Course) -> None:
    assert own.changes > 1000
    assert own.seen_within(2 / 24) >= 0.5
    assert own.median_delay() <= 2 / 24


def test_it_spends_the_budget_and_finds_the_news(web: ChangingWeb) -> None:
    policy = OwnPolicy(web, BUDGET, seed=2)
    course = run(web, policy)
    assert course.visits > 0.9 * BUDGET * SMALL.days
    states = [policy.state(page) for page in range(SMALL.pages)]
    found = [page for page, state in enumerate(states) if state is not None and state.page_class is PageClass.NEWS]
    news = [page for page in range(SMALL.pages) if web.is_news[page] and web.vanishes[page] > 30]
    assert len(set(found) & set(news)) > 0.8 * len(news)
    assert len(found) < 2 * len(news)


def test_a_web_without_a_schedule_by_price_is_less_fresh(web: ChangingWeb, own: Course) -> None:
    plain = run(web, OwnPolicy(web, BUDGET, seed=2, schedule=Schedule(rule=RevisitRule.STEPS)))
    assert plain.freshness(WEIGHTS, 28, 30) < own.freshness(WEIGHTS, 28, 30)


class EveryDay:
    """Visits every page once per day and records what was found."""

    def __init__(self) -> None:
        self.found: dict[int, list[tuple[float, VisitFound]]] = {}

    def first_wait(self, page: int, now: float) -> float:
        self.found[page] = [(now, VisitFound.CHANGED)]
        return 1.0

    def visited(self, page: int, now: float, found: VisitFound, brought_links: bool) -> float | None:
        self.found[page].append((now, found))
        return None if found is VisitFound.MISSING else 1.0

    def adjust(self, now: float, late: int) -> None:
        pass


def test_pages_appear_and_vanish_when_they_should() -> None:
    web = ChangingWeb(Mix(pages=2000, days=10, appearing=0.3, vanishing_per_day=0.05), seed=4)
    policy = EveryDay()
    course = run(web, policy, 1e6)
    for page, visits in policy.found.items():
        assert 0 <= visits[0][0] - web.appears[page] < 0.02
        gone = [at for at, found in visits if found is VisitFound.MISSING]
        assert all(web.vanishes[page] <= at < web.vanishes[page] + 1.02 for at in gone)
        assert len(gone) == (web.vanishes[page] < visits[-1][0] + 1e-9)
    assert 0.2 < sum(appears > 0 for appears in web.appears) / 2000 < 0.4
    assert course.freshness(dict.fromkeys(PageClass, 1.0), 5, 10) < 1.0


def test_a_mix_is_repeatable_and_as_stated(web: ChangingWeb) -> None:
    again = ChangingWeb(SMALL, seed=1)
    assert (again.per_day, again.classes, again.vanishes) == (web.per_day, web.classes, web.vanishes)
    large = ChangingWeb(Mix(pages=40_000, pages_per_host=1), seed=5)
    assert sum(large.is_news) / 40_000 == pytest.approx(0.005, abs=0.002)
    assert sum(large.popular) / 40_000 == pytest.approx(0.1, abs=0.01)
