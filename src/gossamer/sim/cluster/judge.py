"""What is wrong with a cluster's crawl? Judged by the servers' own log, the rows and the archives."""

from __future__ import annotations

from itertools import pairwise

from gossamer.core.politeness.pace import Pace
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, link_to
from gossamer.model.records import Outcome, UrlState
from gossamer.sim.cluster.cluster import ClusterSim
from gossamer.sim.driver import Request
from gossamer.sim.scenarios import START

SLACK_S = 1e-6


def judge(sim: ClusterSim, why: str, expected: frozenset[str], pace: Pace) -> list[str]:
    """Return what is wrong with a cluster's crawl."""
    return [*_wrong_with_pages(sim, why, expected), *_wrong_with_requests(sim, pace), *_wrong_with_addresses(sim)]


def _wrong_with_pages(sim: ClusterSim, why: str, expected: frozenset[str]) -> list[str]:
    wrong: list[str] = []
    rows = sim.rows()
    done = {record.url for record in rows.values() if record.state is UrlState.DONE and record.outcome == Outcome.OK}
    scenario = sim.plan.scenario()
    if scenario.target_domains is not None and not scenario.rules.continues_after_target:
        domains = {registrable_domain(host_of(url)) for url in done}
        if why != "target_domains" or len(domains) < scenario.target_domains:
            wrong.append(f"it ended with {why!r} after {len(domains)} domains of {scenario.target_domains}")
    elif sim.plan.max_pages is None or sim.plan.max_pages > len(expected):
        if why != "exhausted":
            wrong.append(f"it ended with {why!r}")
        wrong += [f"lost: {url}" for url in sorted(expected - done)]
        wrong += [f"out of reach: {url}" for url in sorted(done - expected)]
    elif why != "max_pages" or len(done) != sim.plan.max_pages:
        wrong.append(f"it ended with {why!r} after {len(done)} pages of {sim.plan.max_pages}")
    stored = [page.url_id for page in sim.stored()]
    wrong += [f"stored {stored.count(each)} times: {rows[each].url}" for each in set(stored) if stored.count(each) > 1]
    wrong += [f"not stored: {url}" for url in done if link_to(url).id not in set(stored)]
    pages = sum(node.totals.pages for node in sim.engine.nodes().values())
    if pages != len(done):
        wrong.append(f"{pages} pages by the totals of the nodes, {len(done)} by their rows")
    return wrong


def _wrong_with_requests(sim: ClusterSim, pace: Pace) -> list[str]:
    wrong = [f"sent by a node that does not own its shard: {request.url}" for request in sim.strays]
    wrong += [f"sent by a node without its label: {request.url}" for request in sim.misplaced]
    last: dict[str, float] = {}
    for request in sorted(sim.requests, key=lambda each: each.at):
        gap_s = request.at - last.get(request.host, float("-inf"))
        if gap_s < pace.floor_s(request.host, 0.0) - SLACK_S:
            wrong.append(f"too soon at {request.host}: {gap_s:.3f} s, at {request.at - START:.2f}")
        last[request.host] = request.at
    return wrong


def _wrong_with_addresses(sim: ClusterSim) -> list[str]:
    """Judge the limits per address, which hosts of several nodes share."""
    limits = sim.plan.scenario().limits
    wrong = list[str]()
    at_address: dict[str, list[Request]] = {}
    for request in sorted(sim.requests, key=lambda each: each.at):
        at_address.setdefault(sim.web.resolve(request.host)[0][0], []).append(request)
    for address, requests in at_address.items():
        for before, after in pairwise(requests):
            if after.at - before.at < limits.address_delay_s - SLACK_S:
                gap_s = after.at - before.at
                wrong.append(f"too soon at {address}: {gap_s:.3f} s, at {after.at - START:.2f}, {after.host}")
        for request in requests:
            open_then = sum(other.at <= request.at < other.until for other in requests)
            if 0 < limits.address_connections < open_then:
                wrong.append(f"{open_then} requests at once at {address}, at {request.at - START:.2f}")
    return wrong
