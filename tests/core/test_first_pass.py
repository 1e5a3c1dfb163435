from __future__ import annotations

from gossamer.core.links.first_pass import RESERVES_PER_DOMAIN, FirstPass
from gossamer.core.url.forms import link_to


def test_one_url_of_a_domain_is_let_in_at_a_time() -> None:
    first_pass = FirstPass(3)
    assert first_pass.admits(link_to("http://a.test/1"), "a.test", 1)
    first_pass.queue("a.test")
    assert not first_pass.admits(link_to("http://a.test/2"), "a.test", 1)
    assert first_pass.admits(link_to("http://b.test/1"), "b.test", 1)


def test_three_reserves_are_kept_and_tried_in_turn() -> None:
    first_pass = FirstPass(3)
    first_pass.queue("a.test")
    for n in range(10):
        assert not first_pass.admits(link_to(f"http://a.test/{n}"), "a.test", n)
    tried = []
    while (reserve := first_pass.fail("a.test")) is not None:
        tried.append((reserve.url, reserve.depth))
        first_pass.queue("a.test")
    assert tried == [(f"http://a.test/{n}", n) for n in range(RESERVES_PER_DOMAIN)]
    assert first_pass.admits(link_to("http://a.test/99"), "a.test", 1), "pending no longer"


def test_a_link_found_twice_is_one_reserve() -> None:
    first_pass = FirstPass(3)
    first_pass.queue("a.test")
    for n in (1, 1, 1, 2):
        first_pass.admits(link_to(f"http://a.test/{n}"), "a.test", 1)
    reserves = []
    while (reserve := first_pass.fail("a.test")) is not None:
        reserves.append(reserve.url)
        first_pass.queue("a.test")
    assert reserves == ["http://a.test/1", "http://a.test/2"]


def test_reserves_wait_while_another_url_of_the_domain_is_queued() -> None:
    first_pass = FirstPass(3)
    first_pass.queue("a.test")
    first_pass.queue("a.test")
    first_pass.admits(link_to("http://a.test/1"), "a.test", 1)
    assert first_pass.fail("a.test") is None
    assert first_pass.fail("a.test") is not None


def test_a_domain_counts_once_and_wants_no_more_links() -> None:
    first_pass = FirstPass(2)
    first_pass.queue("a.test")
    first_pass.reach("a.test")
    first_pass.reach("a.test")
    assert not first_pass.is_over
    assert not first_pass.admits(link_to("http://a.test/1"), "a.test", 1)
    assert first_pass.fail("a.test") is None
    first_pass.reach("b.test")
    assert first_pass.is_over
