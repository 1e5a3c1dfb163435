"""Many clusters in virtual time, one per seed, over different webs; and bugs to plant, to see that they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.cluster.regions import RegionRule, Regions
from gossamer.core.frontier.limits import FrontierLimits
from gossamer.core.links.scope import Reach
from gossamer.core.politeness.address_permits import AddressAsk
from gossamer.core.politeness.address_pool import SharedAddress
from gossamer.core.politeness.pace import Pace, PaceRule
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, link_to
from gossamer.core.url.identity import divide
from gossamer.engine.cluster import node
from gossamer.engine.cluster.link_messages import NodeMessage
from gossamer.engine.cluster.node import ClusterNode, Delivery
from gossamer.engine.cluster.node_messages import NodeMessages
from gossamer.engine.cluster.rehoming import Rehoming
from gossamer.engine.crawl import Crawl
from gossamer.engine.rules import CrawlRules
from gossamer.model.records import HostId, HostRecord, Outcome, UrlState
from gossamer.model.state import SeedRecord
from gossamer.sim.cluster.cluster import ClusterSim
from gossamer.sim.cluster.plan import ClusterPlan, Faults
from gossamer.sim.driver import ImaginedRequest
from gossamer.sim.scenarios import START, ImaginedHost, Scenario, many_hosts

# What is wrong with a cluster's crawl? Judged by the servers' own log, the rows and the archives.

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
    pages = sum(node.totals.pages for node in sim.shared.nodes().values())
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
    at_address: dict[str, list[ImaginedRequest]] = {}
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


HOSTS = 12
PAGES = 15
DELAY_S = 1.0
SLOW_S = 13.0  # of two hosts: longer than a lease, so that a new owner can come too soon
SLOW = (PaceRule("h1.test", SLOW_S), PaceRule("h7.test", SLOW_S))
BUDGET = 100
TARGET_DOMAINS = 8
ADDRESSES = 3
LATENCY_S = 0.7
SHALLOW = 1  # the depth of seeds with rules, and the pages of a host up to there
SHALLOW_PAGES = 6
_URLS = frozenset(
    f"http://h{host}.test/{page or ''}" for host in range(HOSTS) for page in range(PAGES)
)  # fmt: skip
_NARROW_URLS = frozenset(
    f"http://h{host}.test/{page or ''}" for host in range(HOSTS) for page in range(SHALLOW_PAGES if host % 2 else PAGES)
)


def scenario() -> Scenario:
    """Return a crawl of hosts that each link to the next."""
    seeds = ["http://h0.test/", f"http://h{HOSTS // 2}.test/"]
    return Scenario(many_hosts(HOSTS, PAGES), seeds, FrontierLimits(max_depth=40), DELAY_S, pace_rules=SLOW)


def _crowded(**limits: float) -> Scenario:
    """Return the same web at few addresses, slow, with limits per address."""
    crowded = scenario()
    for number, host in enumerate(crowded.web.hosts.values()):
        host.address = f"127.0.1.{number % ADDRESSES}"
        host.latency_s = LATENCY_S
    crowded.limits = FrontierLimits(max_depth=40, **limits)  # type: ignore[arg-type]
    return crowded


def _narrow() -> Scenario:
    """Return a web whose hosts are in scope because seeds at others redirect to them; half of the seeds have rules."""
    narrow = scenario()
    narrow.reach = Reach.HOST
    targets = {f"s{number}.test": f"http://h{number}.test/" for number in range(HOSTS)}
    for number, (name, target) in enumerate(targets.items()):
        address = f"127.0.2.{number}"
        narrow.web.hosts[name] = ImaginedHost(status=lambda *_: 302, redirects_to=target, address=address)
    narrow.seeds = [f"http://{name}/" for name in targets]
    narrow.seed_rules = [SeedRecord(url, scope="host", depth=SHALLOW) for url in narrow.seeds[1::2]]
    return narrow


def _broad(*, continues: bool) -> Scenario:
    """Return a crawl that reaches some of the domains first."""
    broad = scenario()
    broad.target_domains = HOSTS if continues else TARGET_DOMAINS  # the last one is reached when nothing is left
    broad.rules = CrawlRules(continues_after_target=continues)
    return broad


_SCENARIOS = (
    scenario,
    partial(_crowded, address_delay_s=0.4),
    partial(_crowded, address_connections=2),
    partial(_crowded, address_connections=5, address_delay_s=0.2),
    _narrow,
    partial(_broad, continues=False),
    partial(_broad, continues=True),
)


_RULES = (RegionRule("h1.test", "eu"), RegionRule("h2.test", "us"), RegionRule("h5.test", "eu"))
_COUNTRY_RULES = (
    RegionRule("h1.test", "us"),
    RegionRule("country:DE", "eu", ("DE",)),
    RegionRule("country:US", "us", ("US",)),
)
_LABELS = ("eu", "us", "", "eu,us")


def country_of(address: str) -> str:
    return ("DE", "US", "")[int(address.rpartition(".")[2]) % 3]


def plan_of(seed: int) -> ClusterPlan:
    """Return the plan of a seed: with or without a budget and regions, few or many nodes, quiet or stormy."""
    faults = (
        Faults(roll_backs=0.0),
        Faults(deaths=0.03, pauses=0.04, max_pause_s=20.0, lost_answers=0.1, roll_backs=0.0),
        Faults(roll_backs=0.04, until_s=60.0),
    )
    budgets = (None, BUDGET, None, 10 * BUDGET)
    rules = _COUNTRY_RULES if seed % 7 == 6 else _RULES
    regions = Regions(rules, is_strict=seed % 14 >= 7) if seed % 7 > 4 else None
    return ClusterPlan(
        _SCENARIOS[seed // 3 % len(_SCENARIOS)],
        nodes=2 + seed % 5,
        faults=faults[seed % 3],
        max_pages=budgets[seed % 4],
        max_s=1500.0,
        regions=regions,
        labels=_LABELS if regions is not None else (),
        country_of=country_of,
    )


def run_seed(seed: int) -> list[str]:
    """Run one cluster; return what is wrong."""
    plan = plan_of(seed)
    sim = ClusterSim(plan, seed)
    expected = _NARROW_URLS if plan.scenario is _narrow else _URLS
    try:
        return judge(sim, sim.run(), expected, Pace(DELAY_S, 1, SLOW))
    finally:
        divide(None)


# -- planted bugs ---------------------------------------------------------------------------------


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Break the cluster in one place."""
    owner, attribute, broken = PLANTED[name]
    sound = getattr(owner, attribute)
    setattr(owner, attribute, broken)
    try:
        yield
    finally:
        setattr(owner, attribute, sound)


def _forget_outbox(self: NodeMessages) -> dict[int, NodeMessage]:
    """Send nothing to the first of the shards."""
    return dict(list(self._admission.take_outbox().items())[1:])


def _trust_basis(*_: object) -> None:
    """Accept commits whatever they are based on."""


def _is_always_idle(_known: object, _version: int, _domains: int) -> bool:
    """Trust every report of idleness, however old it is."""
    return True


def _take_at_once(self: Crawl, shard: int, now: float, _requests: object = ()) -> None:
    """Continue with the hosts of a shard as if their former owner had not just contacted them."""
    self.seeds.load(shard)
    self.shards.take(shard, self.state, now)


def _never_release_early(self: ClusterNode) -> list[int]:
    """Release shards before the commit with their last rows."""
    return sorted(self._leaving)


def _grant_slice(_self: SharedAddress, _node: str, slice_s: float, _now: float, **_: bool) -> float:
    return slice_s


def _grant_permits(_self: SharedAddress, _node: str, ask: AddressAsk, *_: float, **__: bool) -> int:
    return ask.wanted


def _add_nothing(_self: ClusterNode) -> Additions:
    """Keep to yourself what extends the scope."""
    return Additions()


def _is_never_barred(*_: object) -> frozenset[int]:
    return frozenset()


def _move_nothing(_self: Rehoming, key: HostId, host: HostRecord) -> None:
    """Leave URLs behind in the first shard of a domain that belongs elsewhere."""


def _store_nothing(_self: Rehoming, _message: NodeMessage) -> None:
    """Forget which domains belong here."""


def _read_too_early(self: ClusterNode, inboxes: Mapping[int, Sequence[Delivery]]) -> None:
    """Remove messages from their inboxes with the next commit, whether their links have been offered or not."""
    _receive(self, inboxes)
    for shard, deliveries in inboxes.items():
        if shard in self._owned:
            self._read_ids.setdefault(shard, []).extend(delivery.id for delivery in deliveries)


_receive = ClusterNode.receive

PLANTED: dict[str, tuple[object, str, Callable[..., object] | float]] = {
    "links to other shards are lost": (NodeMessages, "take_outbox", _forget_outbox),
    "a commit is not compared with what it is based on": (MemorySharedLedger, "_check_basis", _trust_basis),
    "the end is declared from old reports": (
        __import__("gossamer.backends.memory.shared_ledger", fromlist=["_is_idle"]), "_is_idle", _is_always_idle,
    ),
    "a new owner does not wait": (Crawl, "take", _take_at_once),
    "shards are released before their last commit": (ClusterNode, "ended_shards", _never_release_early),
    "a message is removed before its last link is offered": (ClusterNode, "receive", _read_too_early),
    "an address is granted to two nodes at once": (SharedAddress, "slice", _grant_slice),
    "permits for an address are not counted": (SharedAddress, "permits", _grant_permits),
    "what extends the scope is not recorded": (ClusterNode, "take_additions", _add_nothing),
    "a lease is counted longer than it is": (node, "LEASE_MARGIN", 3.0),
    "a node fetches for a label that it does not have": (node, "barred_from", _is_never_barred),
    "URLs of a domain that moves are left behind": (Rehoming, "_move_queue", _move_nothing),
    "the home of a domain is not stored where it moves to": (Rehoming, "store_homes", _store_nothing),
}  # fmt: skip
