"""What follows for a host from its spam, with the honest hosts that look like it."""

from __future__ import annotations

import pytest

from gossamer.core.spam.hosts import MAX_TEMPLATES, Level, count_template, has_made_name, judge_host
from gossamer.model.state import SpamTally


def tally(spam: int, pages: int, *, near: int = 0, hosts: int = 0, made: int = 0) -> SpamTally:
    signals = {"doorway": spam, "link_farm": 1}
    return SpamTally("a.test", pages=pages, spam=spam, seen=pages, near=near, signals=signals, hosts=hosts, made=made)


@pytest.mark.parametrize(
    ("spam", "pages", "level"),
    [
        (9, 9, Level.NONE),  # too few to judge
        (10, 20, Level.DEMOTED),
        (10, 21, Level.NONE),
        (29, 29, Level.DEMOTED),
        (30, 37, Level.QUARANTINED),
        (30, 38, Level.DEMOTED),
        (500, 100_000, Level.NONE),  # a platform with some spam
    ],
)
def test_a_host_is_judged_by_the_share_of_spam(spam: int, pages: int, level: Level) -> None:
    verdict = judge_host(tally(spam, pages), None)
    assert verdict.level is level
    if level:
        assert verdict.reason.startswith(f"{spam} of {pages} pages are spam (doorway {spam}, link_farm 1)")


def test_near_duplicates_alone_are_no_spam_and_make_the_score_of_spam_higher() -> None:
    assert judge_host(tally(0, 100, near=100), None).level is Level.NONE
    plain, repeated = (judge_host(tally(60, 100, near=near), None) for near in (0, 80))
    assert plain.level is repeated.level is Level.DEMOTED
    assert repeated.score > plain.score
    assert "80% of its pages repeat others" in repeated.reason


def test_a_farm_of_hosts_is_judged_by_its_domain() -> None:
    farm = tally(45, 50, hosts=20, made=19)
    assert judge_host(tally(1, 1), farm).level is Level.QUARANTINED
    assert judge_host(tally(1, 1), tally(35, 50, hosts=20, made=19)).level is Level.DEMOTED
    assert "on 20 hosts, 19 of them with machine-made names" in judge_host(tally(1, 1), farm).reason


@pytest.mark.parametrize(
    "domain",
    [
        tally(45, 5000, hosts=40, made=40),  # a hosting domain with some spam
        tally(45, 50, hosts=3, made=3),
        tally(45, 50, hosts=20, made=10),
        tally(5, 5, hosts=20, made=20),
    ],
)
def test_other_domains_do_no_harm_to_their_hosts(domain: SpamTally) -> None:
    assert judge_host(tally(1, 1), domain).level is Level.NONE


def test_a_host_without_spam_is_not_blamed_for_its_neighbours() -> None:
    assert judge_host(tally(0, 10), tally(45, 50, hosts=20, made=20)).level is Level.NONE


def test_the_name_of_a_host_within_its_domain_counts() -> None:
    assert has_made_name("cheap-hotel-berlin.a.test", "a.test")
    assert not has_made_name("a.test", "a.test")
    assert not has_made_name("www.cheap-hotel-berlin.test", "cheap-hotel-berlin.test")


def test_templates_are_counted_and_the_rarest_makes_room() -> None:
    templates: dict[bytes, int] = {}
    assert [count_template(templates, b"often") for _ in range(3)] == [0, 1, 2]
    for number in range(2 * MAX_TEMPLATES):
        count_template(templates, b"once %d" % number)
    assert len(templates) == MAX_TEMPLATES
    assert count_template(templates, b"often") == 3
