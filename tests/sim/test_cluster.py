"""Clusters in virtual time: whatever goes wrong, nothing is lost, stored twice, or requested too soon."""

from __future__ import annotations

import pytest
from tests.amount import amount

from gossamer.core.frontier.limits import FrontierLimits
from gossamer.sim.cluster.cluster import ClusterSim
from gossamer.sim.cluster.plan import ClusterPlan, Faults
from gossamer.sim.cluster.runs import PLANTED, plan_of, planted, run_seed
from gossamer.sim.scenarios import START, Scenario, many_hosts

SEEDS, PER_TEST = amount(20, 100), 5  # `make simcluster` runs as many as are wanted
SEEDS_TO_FIND = 200
# Bugs that few seeds find: where the search begins.
FIRST_SEEDS = {
    "a commit is not compared with what it is based on": 14,
    "shards are released before their last commit": 34,
    "what extends the scope is not recorded": 13,
    "a lease is counted longer than it is": 27,
    "a new owner does not wait": 60,
    "a node fetches for a label that it does not have": 13,
    "URLs of a domain that moves are left behind": 6,
    "the home of a domain is not stored where it moves to": 6,
}


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_a_cluster_with_faults_is_whole_and_polite(first: int) -> None:
    wrong = {seed: found for seed in range(first, first + PER_TEST) if (found := run_seed(seed))}
    assert wrong == {}


def test_the_seeds_contain_every_kind_of_fault() -> None:
    losses = faults = 0
    for seed in range(6):
        sim = ClusterSim(plan_of(seed), seed)
        sim.run()
        losses, faults = losses + sim.losses, faults + sim.faults_made
    assert losses > 5
    assert faults > 50


def test_a_seed_is_the_same_every_time() -> None:
    first, second = ClusterSim(plan_of(7), 7), ClusterSim(plan_of(7), 7)
    assert (first.run(), first.requests) == (second.run(), second.requests)


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    with planted(bug):
        first = FIRST_SEEDS.get(bug, 0)
        assert any(_fails(seed) for seed in range(first, first + SEEDS_TO_FIND)), (
            f"not found within {SEEDS_TO_FIND} seeds"
        )


def _fails(seed: int) -> bool:
    try:
        return bool(run_seed(seed))
    except (KeyError, AssertionError):
        return True


RETRY_WAIT_S = 100.0


def _with_failing_hosts(failing_pages: int) -> Scenario:
    """Return a crawl of eight hosts, of which every other one fails but for its first page."""
    sites = many_hosts(8, 15)
    for number in range(1, 8, 2):
        host = sites.hosts[f"h{number}.test"]
        host.pages = failing_pages
        host.status = lambda url, _now: 200 if url.endswith(".test/") else 500
    seeds = [f"http://{name}/" for name in sites.hosts]
    return Scenario(sites, seeds, FrontierLimits(retry_wait_s=RETRY_WAIT_S))


@pytest.mark.parametrize("seed", range(4))
def test_a_node_that_waits_for_retries_leaves_the_budget_to_the_others(seed: int) -> None:
    plan = ClusterPlan(lambda: _with_failing_hosts(5), nodes=3, faults=Faults(until_s=0.0), max_pages=60)
    sim = ClusterSim(plan, seed)
    assert sim.run() == "max_pages"
    assert sum(node.totals.pages for node in sim.shared.nodes().values()) == 60
    assert sim.now < START + RETRY_WAIT_S


@pytest.mark.parametrize("seed", range(4))
def test_with_a_budget_left_retries_are_waited_for(seed: int) -> None:
    plan = ClusterPlan(lambda: _with_failing_hosts(5), nodes=3, faults=Faults(until_s=0.0), max_pages=70)
    sim = ClusterSim(plan, seed)
    assert sim.run() == "parked", "what is parked for longer than it waits is the rest"
    assert sum(node.totals.pages for node in sim.shared.nodes().values()) == 64
    assert sim.now > START + RETRY_WAIT_S
