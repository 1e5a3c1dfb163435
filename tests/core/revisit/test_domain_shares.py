"""How many visits a domain may have: shares, what is beyond them, and who waits."""

from __future__ import annotations

from gossamer.core.revisit.domain_shares import BURST_DAYS, MIN_BURST, DomainShares

DAY = 86_400.0
PAGES = 1000
BUDGET = 1000.0


def shares(now: float = 0.0) -> DomainShares:
    """Return shares of a crawl that has visited two other domains."""
    made = DomainShares()
    made.count("one.test", 10, 1, now)
    made.count("other.test", 10, 1, now)
    made.adjust(BUDGET, PAGES, now)
    return made


def spend(made: DomainShares, domain: str, pages: int, now: float) -> int:
    """Visit a domain as often as it may be, and return how often that was."""
    spent = 0
    while room := made.room(domain, pages, now):
        made.count(domain, pages, room, now)
        spent += room
    return spent


def test_a_domain_gets_its_share_and_a_25th_of_what_others_have() -> None:
    made = shares()
    spend(made, "greedy.test", 100, 0.0)
    made.adjust(BUDGET, PAGES, 0.0)
    assert made.is_held("greedy.test")
    spend(made, "greedy.test", 100, 0.0)
    daily = 0
    for minute in range(1, 2 * 1440 + 1):
        now = minute * 60.0
        made.adjust(BUDGET, PAGES, now)
        daily += spend(made, "greedy.test", 100, now) * (minute > 1440)
    assert abs(daily - (100 + 0.04 * 900)) <= 1


def test_all_domains_that_are_held_get_no_more_than_the_pool() -> None:
    made = shares()
    names = [f"greedy{number}.test" for number in range(30)]
    for _ in range(2):
        for name in names:
            spend(made, name, 10, 0.0)
        allowed = made.adjust(BUDGET, PAGES, 0.0)
    assert made.held == 30
    assert allowed <= 300 + 0.2 * 700


def test_a_domain_that_is_the_only_one_is_never_held() -> None:
    made = DomainShares()
    made.adjust(BUDGET, PAGES, 0.0)
    for _ in range(1000):
        assert made.room("news.test", 10, 0.0) == MIN_BURST
        made.count("news.test", 10, 16, 0.0)
    assert not made.held


def test_what_is_lent_is_for_domains_that_are_held() -> None:
    made = shares()
    spend(made, "greedy.test", 100, 0.0)
    before = made.adjust(BUDGET, PAGES, 0.0)
    made.lend(500.0)
    now = DAY / 2
    assert spend(made, "greedy.test", 100, now) >= (before + 500) / 2 * 0.9


def test_hosts_of_a_domain_that_is_held_have_turns_of_their_own() -> None:
    made = shares()
    spend(made, "greedy.test", 100, 0.0)
    turns = [made.next_turn("greedy.test", 0.0) for _ in range(5)]
    assert turns == sorted(set(turns))
    assert made.room("greedy.test", 100, turns[0] + 1) >= 1
    assert all(made.next_turn("greedy.test", 0.0) <= DAY for _ in range(1000))


def test_a_domain_without_pages_has_turns_even_if_all_others_are_held() -> None:
    made = DomainShares()
    for name, pages in (("all.test", PAGES), ("empty.test", 0)):
        made.count(name, pages, 1, 0.0)
    made.adjust(BUDGET, PAGES, 0.0)
    for name, pages in (("all.test", PAGES), ("empty.test", 0)):
        spend(made, name, pages, 0.0)
    made.adjust(BUDGET, PAGES, 0.0)
    assert made.held == 2
    assert 0 < made.next_turn("empty.test", 0.0) <= DAY


def test_who_has_had_little_is_forgotten_and_who_stops_is_no_longer_held() -> None:
    made = shares()
    for number in range(10_000):
        made.count(f"h{number}.test", 1, 1, number * DAY / BUDGET)
        if number % 100 == 0:
            made.adjust(BUDGET, PAGES, number * DAY / BUDGET)
    made.adjust(BUDGET, PAGES, 10 * DAY)
    assert len(made._buckets) < 100
    spend(made, "greedy.test", 100, 10 * DAY)
    made.adjust(BUDGET, PAGES, 10 * DAY)
    assert made.held == 1
    made.adjust(BUDGET, PAGES, 10 * DAY + (BURST_DAYS + 1) * DAY)
    assert made.held == 0
