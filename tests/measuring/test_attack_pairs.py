"""Pairs of a hostile and an honest party are repeatable, and what the honest one gets is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import attack_pairs
from benchmarks.attack_pairs import AT_ADDRESS, GOSSAMER, HOSTS, TRAITS, Pair, Parties, crawl, pair_of, serving

pytestmark = pytest.mark.timed


def test_a_pair_follows_from_its_seed_and_all_traits_occur() -> None:
    pairs = [pair_of(seed) for seed in range(200)]
    assert pairs == [pair_of(seed) for seed in range(200)]
    assert {trait for pair in pairs for trait in pair.traits} == set(TRAITS)
    assert {pair.shares_address for pair in pairs} == {pair.is_late for pair in pairs} == {True, False}


def test_requests_move_to_the_next_address_through_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_pairs, "SECONDS", 3.0)
    parties = Parties()
    pair = Pair(1, ("a second address", "slow answers"), shares_address=True, names=60)
    with serving(parties) as names:
        alone = crawl(parties, names, GOSSAMER, replace(pair, traits=(), names=0), is_attacked=False)
        found = crawl(parties, names, GOSSAMER, pair, is_attacked=True)
    assert alone.honest >= HOSTS * 5
    assert found.honest >= 0.5 * alone.honest
    assert found.hostile > 0
    assert found.most_at_address <= AT_ADDRESS
    assert found.violations == 0
