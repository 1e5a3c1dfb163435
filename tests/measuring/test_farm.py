"""A farm of endless domains over real sockets, in a crawl with a ceiling of memory, beside healthy hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.attack_sites import ATTACKS
from benchmarks.attacks import GOSSAMER, attacked, healthy

pytestmark = pytest.mark.timed

LIMIT_S = 12.0
CEILING = 200 << 20  # the crawl takes 60 MB without the farm, and took 500 when every link became a host
MAX_GAP_S = 2.5  # of a machine with other work: `benchmarks/attacks` has the bound for a quiet one
BESIDES = 6_000_000  # written for the healthy hosts, and by any crawl


def test_a_farm_of_endless_domains_takes_neither_memory_nor_disk_nor_the_time_of_healthy_hosts() -> None:
    farm = next(attack for attack in ATTACKS if attack.name == "farm")
    with attacked(healthy(5, 16), [farm], GOSSAMER) as crawler:
        found = crawler.crawl(farm.what, [farm], LIMIT_S, *farm.options, "--memory", str(CEILING))
    assert found.healthy_share == 1.0
    assert found.max_gap_s < MAX_GAP_S
    assert found.sent_bytes > 5_000_000, "the farm had its turns"
    assert found.peak_bytes <= CEILING
    assert found.written_bytes < found.sent_bytes + BESIDES
    assert found.end.startswith("max_time")
