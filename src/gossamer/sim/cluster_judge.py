"""What is wrong with a cluster's crawl? Judged by the servers' own log, the rows and the archives."""

from __future__ import annotations

from gossamer.core.url import link_to
from gossamer.records import UrlState
from gossamer.sim.cluster import ClusterSim
from gossamer.sim.scenarios import START


def judge(sim: ClusterSim, why: str, expected: frozenset[str], delay_s: float) -> list[str]:
    """Return what is wrong with a cluster's crawl."""
    wrong: list[str] = []
    rows = sim.rows()
    done = {record.url for record in rows.values() if record.state is UrlState.DONE}
    if sim.plan.max_pages is None or sim.plan.max_pages > len(expected):
        if why != "exhausted":
            wrong.append(f"it ended with {why!r}")
        wrong += [f"lost: {url}" for url in sorted(expected - done)]
    elif why != "max_pages" or len(done) != sim.plan.max_pages:
        wrong.append(f"it ended with {why!r} after {len(done)} pages of {sim.plan.max_pages}")
    stored = [page.url_id for page in sim.stored()]
    wrong += [f"stored {stored.count(each)} times: {rows[each].url}" for each in set(stored) if stored.count(each) > 1]
    wrong += [f"not stored: {url}" for url in done if link_to(url).id not in set(stored)]
    pages = sum(totals.pages for _, totals in sim.engine.nodes().values())
    if pages != len(done):
        wrong.append(f"{pages} pages by the totals of the nodes, {len(done)} by their rows")
    last: dict[str, float] = {}
    for request in sorted(sim.requests, key=lambda each: each.at):
        if request.at - last.get(request.host, -1e9) < delay_s - 1e-6:
            wrong.append(
                f"too soon at {request.host}: {request.at - last[request.host]:.3f} s, at {request.at - START:.2f}"
            )
        last[request.host] = request.at
    return wrong
