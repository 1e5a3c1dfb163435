"""Every number of a crawl of a web with every behaviour is the same wherever it is shown, and in the servers' log."""

from __future__ import annotations

from benchmarks.counts import Seen, compare


def test_every_number_is_the_same_everywhere() -> None:
    seen = compare(pages=250)
    assert [f"{name}: {seen.numbers[name]}" for name in seen.different()] == []
    shown = {name for name, places in seen.numbers.items() if max(places.values()) > 0}
    wanted = {"fetches", "errors", "pages", "retries", "dead", "held", "refused", "too_deep", "links_cut", "truncated"}
    assert wanted <= shown
    assert {"over_budget", "forbidden", "words", "answers_3xx", "answers_4xx", "answers_5xx"} <= shown
    assert all(len(seen.numbers[name]) >= 2 for name in wanted), "each is shown in two places at least"


def test_a_number_that_differs_is_named() -> None:
    seen = Seen({})
    seen.add("log", pages=3, errors=1)
    seen.add("summary", pages=4, errors=1)
    assert seen.different() == ["pages"]
