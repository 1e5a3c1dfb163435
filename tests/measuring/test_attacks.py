"""The attacks are what they claim to be, and what a crawl suffers from one is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.attack_sites import ATTACKS, Attack, colliding, html, pages
from benchmarks.attacks import GOSSAMER, HEAD, MAX_GAP_S, Measured, attacked, healthy

from tests.amount import some
from tests.hostile.serving import Script

pytestmark = pytest.mark.timed

LIMIT_S = 20.0
WORD = (1 << 64) - 1
FINE = Measured("x", 1, 1.0, 0.1, 1, 1, 0.25, 1.0, "exhausted after 1 s")


def place_of(href: bytes) -> int:
    """Return the place of an href by a hash without a key, in a table of 65,536 places."""
    mixed, at = len(href), 0
    while len(href) - at >= 8:
        mixed = ((mixed ^ int.from_bytes(href[at : at + 8], "little")) * 0x9E3779B97F4A7C15) & WORD
        mixed ^= mixed >> 32
        at += 8
    return (((mixed ^ int.from_bytes(href[at:], "big")) * 0x9E3779B97F4A7C15) & WORD) >> 32 & 0xFFFF


def test_colliding_hrefs_collide() -> None:
    hrefs = colliding(2000)
    assert len(set(hrefs)) == 2000
    assert len({place_of(href.encode()) for href in hrefs}) == 1


def test_every_attack_has_a_name_of_its_own_that_is_no_beginning_of_another_with_a_number() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 18
    assert not any(name[-1].isdigit() for name in names)


def test_a_healthy_host_that_waits_too_long_is_marked() -> None:
    assert "late" not in FINE.row()
    assert "late" in replace(FINE, max_gap_s=MAX_GAP_S + 0.01).row()
    assert FINE.row().count("|") == HEAD.splitlines()[0].count("|")


def big_page() -> Script:
    return pages({"/": html("<p>" + "x " * 400_000)})


def test_a_crawl_under_attack_is_measured_from_outside() -> None:
    attack = Attack("large", "a page of 800 kB", big_page)
    with attacked(healthy(3, 4), [attack], GOSSAMER) as crawler:
        bare = crawler.crawl("none", [], LIMIT_S)
        found = crawler.crawl(attack.what, [attack], LIMIT_S)
    assert bare.sent_bytes == 0
    assert bare.healthy_share == found.healthy_share == 1.0
    assert 800_000 < found.sent_bytes < 810_000
    assert 0.2 < found.max_gap_s < 1.0
    assert found.end.startswith("exhausted")
    assert found.stall_ms is not None
    more = found.beyond(bare)
    assert more.cpu_s < found.cpu_s
    assert more.peak_bytes < found.peak_bytes


@pytest.mark.parametrize("workers", some(["1", "2"], 1))
def test_many_large_robots_texts_do_not_hold_up_healthy_hosts(workers: str) -> None:
    attack = replace(next(attack for attack in ATTACKS if attack.name == "rules"), hosts=60)
    with attacked(healthy(3, 20), [attack], GOSSAMER) as crawler:
        found = crawler.crawl(attack.what, [attack], LIMIT_S, "--workers", workers)
    assert found.healthy_share == 1.0
    assert found.max_gap_s < 2 * MAX_GAP_S, "60 texts of 50 ms each, on a machine that others use too"
