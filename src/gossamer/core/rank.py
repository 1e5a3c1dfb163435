"""How important is a host, by the links to it? PageRank of registrable domains, divided among their hosts.

A domain has one vote, divided equally among the domains that it links to, however many pages or hosts the links are
on: a farm on a thousand subdomains is one voter with one vote. Links within a domain keep at most `self_share` of the
vote at home. A domain without links to others gives its vote to everybody. The rank of a domain is divided among its
hosts by the number of other domains that link to each.

Where rank comes from is a choice. By default each domain is given the same share (`teleport`): then a thousand domains
that link to each other keep what they are given, one share each, and a site with links from 50 independent domains is
above them; but all of them together can lift one target by as many shares as they are. With `trusted` hosts (the seeds
of a crawl) only these are given a share, and a farm has no more than what honest sites pass on to it by links.

Memory: 8 bytes per different pair of hosts, four times that while ranks are computed, and some 300 bytes per host for
its name. Links are stored as they come and compacted when their number has doubled. Time: about a minute for 20,000,000
links with the compiled kernel. Without it a step takes 200 times as long, and a link 100 bytes: for small crawls only.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby, pairwise

from msgspec import Struct

from gossamer.core.url.domains import registrable_domain
from gossamer.foundation.kernel import rank_kernel

DAMPING = 0.85
SELF_SHARE = 0.2
TOLERANCE = 1e-9  # the largest relative change of a rank in the last step; that takes 20 to 130 steps
MAX_STEPS = 500
COMPACT_LINKS = 4_000_000  # before links are sorted for the first time
_LOW = 0xFFFFFFFF
_NO_RANK = 1e-12  # less than this is what additions leave of nothing


class RankRules(Struct, frozen=True, gc=False):
    damping: float = DAMPING
    self_share: float = SELF_SHARE
    tolerance: float = TOLERANCE
    max_steps: int = MAX_STEPS


class HostGraph:
    """Links between hosts. A host is known by its number, in the order of its first mention."""

    def __init__(self) -> None:
        self._hosts: dict[str, int] = {}
        self._domains: dict[str, int] = {}
        self._domain_of = array("I")
        self._links = array("Q")
        self._compact_at = COMPACT_LINKS

    def add_host(self, host: str) -> int:
        """Return the number of a host."""
        number = self._hosts.get(host)
        if number is None:
            number = self._hosts[host] = len(self._hosts)
            domain = registrable_domain(host)
            self._domain_of.append(self._domains.setdefault(host if domain == host else domain, len(self._domains)))
        return number

    def add(self, source: str, targets: Iterable[str]) -> None:
        """Add the hosts that a page links to, without `nofollow` links. Repetitions do not count."""
        upper = self.add_host(source) << 32
        known = self._hosts.get
        add_host = self.add_host
        for target in targets:
            number = known(target)
            self._links.append(upper | (add_host(target) if number is None else number))
        if len(self._links) >= self._compact_at:
            self.compact()

    def compact(self) -> None:
        """Forget repeated links."""
        _keep_unique(self._links)
        self._compact_at = 2 * len(self._links) + COMPACT_LINKS

    @property
    def hosts(self) -> Mapping[str, int]:
        """The numbers of all hosts."""
        return self._hosts

    @property
    def domain_of(self) -> array[int]:
        """The number of the domain of each host."""
        return self._domain_of

    @property
    def domains(self) -> Mapping[str, int]:
        """The numbers of all domains."""
        return self._domains

    @property
    def domain_count(self) -> int:
        """How many domains the hosts belong to."""
        return len(self._domains)

    @property
    def links(self) -> array[int]:
        """All different links: the host that has it in the upper 32 bits, the one it leads to in the lower ones."""
        self.compact()
        return self._links


class HostRanks(Struct, frozen=True):
    """The rank of every host and domain by its number; each of them adds up to 1."""

    hosts: array[float]
    domains: array[float]
    domains_in: array[int]  # by the number of a domain: how many other domains link to it
    steps: int


def rank_hosts(graph: HostGraph, trusted: Iterable[str] = (), rules: RankRules | None = None) -> HostRanks:
    """Return the ranks; trusted hosts whose domain is unknown to the graph do not count."""
    rules = rules or RankRules()
    count = graph.domain_count
    domain_of = graph.domain_of
    links = graph.links
    # The vote of a domain for each other domain, and for each host of another domain: each once.
    domain_links = array("Q")
    votes = array("Q")
    has_own = bytearray(count)
    for link in links:
        source = domain_of[link >> 32]
        target = domain_of[link & _LOW]
        if source == target:
            has_own[source] = 1
        else:
            domain_links.append(source << 32 | target)
            votes.append((link & _LOW) << 32 | source)
    _keep_unique(domain_links)
    _keep_unique(votes)
    ranks = array("d", bytes(8 * count))
    self_share = array("d", [rules.self_share if own else 0.0 for own in has_own])
    steps = _link_rank(domain_links, _teleport(graph, trusted), self_share, ranks, rules)
    domains_in = array("I", bytes(4 * count))
    for link in domain_links:
        domains_in[link & _LOW] += 1
    return HostRanks(_divided(graph, ranks, votes), ranks, domains_in, steps)


def _teleport(graph: HostGraph, trusted: Iterable[str]) -> array[float]:
    """Return the share of each domain of what is given."""
    count = graph.domain_count
    known = graph.domains
    chosen = {known[domain] for domain in map(registrable_domain, trusted) if domain in known}
    if not chosen:
        return array("d", [1 / count]) * count if count else array("d")
    shares = array("d", bytes(8 * count))
    for domain in chosen:
        shares[domain] = 1 / len(chosen)
    return shares


def _divided(graph: HostGraph, domain_ranks: array[float], votes: array[int]) -> array[float]:
    """Divide the rank of each domain among its hosts, by the votes of other domains for them and one for each host."""
    domain_of = graph.domain_of
    of_host = array("I", [1]) * len(domain_of)
    for vote in votes:
        of_host[vote >> 32] += 1
    of_domain = array("I", bytes(4 * graph.domain_count))
    for domain, number in zip(domain_of, of_host, strict=True):
        of_domain[domain] += number
    shares = zip(domain_of, of_host, strict=True)
    return array("d", [domain_ranks[domain] * number / of_domain[domain] for domain, number in shares])


def standings(ranks: array[float]) -> array[float]:
    """Return for each host the share of hosts with a lower rank, from 0 to 1; hosts with equal ranks are equal."""
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    found = array("d", bytes(8 * len(ranks)))
    last = max(len(ranks) - 1, 1)
    for place, (before, number) in enumerate(pairwise([-1, *order])):
        is_equal = before >= 0 and ranks[before] == ranks[number]
        found[number] = found[before] if is_equal else place / last
    return found


def domain_standings(ranks: array[float]) -> array[float]:
    """Return for each domain which share of the rank of all others belongs to lower ones, from 0 to 1.

    By rank and not by number, so that a domain does not rise because a thousand without rank are below it. Those with
    an equal rank count neither way: six digits, since the last ones depend on the order in which links were added.
    """
    found = array("d", [0.5]) * len(ranks)
    rounded = array("d", [float(f"{rank:.6g}") for rank in ranks])
    lower = 0.0
    total = sum(rounded)
    for rank, group in groupby(sorted(range(len(ranks)), key=rounded.__getitem__), key=rounded.__getitem__):
        numbers = list(group)
        of_group = rank * len(numbers)
        of_others = total - of_group
        for number in numbers if len(numbers) < len(ranks) else ():
            found[number] = min(1.0, lower / of_others) if of_others > _NO_RANK else 1.0
        lower += of_group
    return found


def _keep_unique(numbers: array[int]) -> None:
    """Sort numbers in place and remove repetitions."""
    unique: Callable[[array[int]], int] = rank_kernel.sort_unique if rank_kernel is not None else plain_sort_unique
    del numbers[unique(numbers) :]


def plain_sort_unique(numbers: array[int]) -> int:
    """Sort numbers, each of them once, into the beginning of their array; return how many they are."""
    found = sorted(set(numbers))
    numbers[: len(found)] = array("Q", found)
    return len(found)


def _link_rank(
    links: array[int], teleport: array[float], self_share: array[float], rank: array[float], rules: RankRules
) -> int:
    if rank_kernel is None:
        return plain_link_rank(links, teleport, self_share, rank, rules)
    return rank_kernel.link_rank(links, teleport, self_share, rank, rules.damping, rules.tolerance, rules.max_steps)


def plain_link_rank(
    links: array[int], teleport: array[float], self_share: array[float], rank: array[float], rules: RankRules
) -> int:
    """Compute PageRank into `rank`; return the number of steps.

    A node gives `self_share` of its rank to itself and the rest in equal parts to the nodes that it links to; one
    without links gives all of it to everybody, as `teleport` says. So does every node with what `damping` leaves.
    """
    nodes = range(len(teleport))
    degrees = [0] * len(teleport)
    for link in links:
        degrees[link >> 32] += 1
    rank[:] = teleport
    for steps in range(1, rules.max_steps + 1):
        lost = sum(rank[node] for node in nodes if not degrees[node])
        received = [rank[node] * self_share[node] if degrees[node] else 0.0 for node in nodes]
        gives = [(rank[node] - received[node]) / degrees[node] if degrees[node] else 0.0 for node in nodes]
        for link in links:
            received[link & _LOW] += gives[link >> 32]
        given = 1 - rules.damping + rules.damping * lost
        largest = 0.0
        for node in nodes:
            value = given * teleport[node] + rules.damping * received[node]
            if value > 0:
                largest = max(largest, abs(value - rank[node]) / value)
            rank[node] = value
        if largest <= rules.tolerance:
            return steps
    return rules.max_steps
