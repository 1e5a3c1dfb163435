"""What does a budget of fetches buy? Revisit policies on pages with a known mix of change rates, in virtual time.

    python benchmarks/revisits.py [pages, 1000000 unless told] [fetches per page and day, 0.25 unless told]

Uniform, proportional and optimal visits know the true rates and classes (the optimum is that of Cho and Garcia-Molina
for the same budget, bounds and weights); the plain rule and the crawl's own policy know nothing at the start. All of
them have fetched every page once. The second table is without news, so that the whole budget goes into freshness.
"fresh" is the weighted share of fresh pages without news on the last two days. Two policies run at a time.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace
from tests.support.sites.changing import MIX, ChangingWeb, Mix, Policy, Simulation
from tests.support.sites.revisit_policies import OwnPolicy, optimal, proportional, uniform

from gossamer.core.revisit.classes import RULES, PageClass
from gossamer.core.revisit.interval import MAX_DAYS, MIN_DAYS
from gossamer.core.revisit.schedule import RevisitRule, Schedule

WANTED = 0.95
NEWS_HOURS = 2
WEIGHTS: dict[PageClass, float] = {each: RULES[each].weight for each in PageClass if each is not PageClass.NEWS}
SEEDS = (1, 2, 3)  # of the web, the policy, the course of events


def plain(web: ChangingWeb, per_day: float, seed: int) -> OwnPolicy:
    return OwnPolicy(web, per_day, seed, Schedule(rule=RevisitRule.STEPS))


POLICIES: Mapping[str, Callable[[ChangingWeb, float, int], Policy]] = {
    "uniform": uniform,
    "proportional": proportional,
    "plain rule": plain,
    "own": OwnPolicy,
    "optimum": optimal,
}


class Row(Struct):
    name: str
    fetches_per_day: float
    fresh: float
    fresh_mean: float
    by_class: dict[PageClass, float]
    news_within: float
    news_median_hours: float
    seconds: float
    megabytes: float


def measure(name: str, mix: Mix, per_day: float) -> Row:
    started = perf_counter()
    web = ChangingWeb(mix, SEEDS[0])
    course = Simulation(web, POLICIES[name](web, per_day, SEEDS[1]), per_day, SEEDS[2]).run()
    last = mix.days
    return Row(
        name,
        course.visits / mix.days,
        course.freshness(WEIGHTS, last - 2, last),
        course.freshness(WEIGHTS, 0, last),
        {each: course.freshness({each: 1.0}, last - 2, last) for each in PageClass if each in web.classes},
        course.seen_within(NEWS_HOURS / 24),
        course.median_delay() * 24,
        perf_counter() - started,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def show_setting(mix: Mix, per_day: float) -> None:
    print(f"\n{mix.pages:,} pages on {mix.pages // mix.pages_per_host:,} hosts, {mix.days} days")
    for kind in mix.kinds:
        print(f"  {kind.share:6.1%} {kind.name:8} change {kind.per_day:7.4f} times per day")
    print(f"  rates of a kind: log-normal with {mix.spread}; {mix.own_kind:.0%} of a host's pages are of one kind")
    print(f"  {mix.popular_hosts:.0%} of the hosts are popular")
    print(f"  {mix.appearing:.0%} appear in the course of time, {mix.vanishing_per_day:.1%} vanish per day")
    print(f"budget {per_day:,.0f} fetches per day; intervals from {MIN_DAYS * 24:.0f} hour to {MAX_DAYS:.0f} days")
    print("weights " + ", ".join(f"{each.name.lower()} {RULES[each].weight:g}" for each in PageClass))


def show(rows: list[Row]) -> None:
    names = "".join(f"{each.name.lower():>9}" for each in WEIGHTS)
    print(f"{'policy':13}{'fetches/day':>12}{'fresh':>8}{'30 days':>9}{names}", end="")
    print(f"{'news in 2 h':>12}{'half in':>9}{'took':>8} memory")
    for row in rows:
        has_news = PageClass.NEWS in row.by_class
        news = f"{row.news_within:12.1%}{row.news_median_hours:7.2f} h" if has_news else f"{'-':>12}{'-':>9}"
        parts = "".join(f"{row.by_class[each]:9.3f}" for each in WEIGHTS)
        print(
            f"{row.name:13}{row.fetches_per_day:12,.0f}{row.fresh:8.4f}{row.fresh_mean:9.4f}{parts}"
            f"{news}{row.seconds:6.0f} s{row.megabytes:4.0f} MB"
        )


def compare(pool: ProcessPoolExecutor, mix: Mix, per_day: float) -> bool:
    """Run all policies on a mix; return whether the own one does what it must."""
    show_setting(mix, per_day)
    count = len(POLICIES)
    rows = {row.name: row for row in pool.map(measure, POLICIES, [mix] * count, [per_day] * count)}
    show(list(rows.values()))
    own, best = rows["own"], rows["optimum"]
    print(f"own / optimum: {own.fresh / best.fresh:.1%} on the last two days, without news (at least {WANTED:.0%})")
    has_news = any(kind.is_news and kind.share for kind in mix.kinds)
    return own.fresh >= WANTED * best.fresh and (not has_news or own.news_within >= 0.5)


def main() -> int:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    per_day = pages * (float(sys.argv[2]) if len(sys.argv) > 2 else 0.25)
    without_news = [replace(kind, share=0.0) if kind.is_news else kind for kind in MIX]
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        is_met = compare(pool, Mix(pages=pages), per_day)
        is_met = compare(pool, Mix(pages=pages, kinds=without_news), per_day) and is_met
    print("met" if is_met else "NOT MET")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
