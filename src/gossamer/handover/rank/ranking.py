"""How important are the domains of a crawl, by the links on its own pages?

The links are those that `export --format links` writes, without `nofollow`; a redirect counts as a link, so that a seed
which has moved passes its trust on. What is computed from them, and why: `core/rank`. Pages are read one at a time, in
archive order; memory grows with the hosts (some 300 bytes each) and with the different pairs of linked hosts (8 bytes
each, 32 while ranks are computed), not with pages or links.
"""

from __future__ import annotations

import heapq
import secrets
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.core.rank import HostGraph, HostRanks, domain_standings, rank_hosts, standings
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of
from gossamer.core.url.identity import domain_id, shard_of
from gossamer.engine.cluster.link_messages import NodeMessage, encode_message
from gossamer.handover.export.documents import documents
from gossamer.handover.export.output import write_lines
from gossamer.handover.export.stored import is_answer
from gossamer.model.figures import Totals
from gossamer.model.records import Source
from gossamer.model.state import DomainRank, NodeStatus
from gossamer.ports.shared_ledger import OBSERVER, Commit, NodeId, NodeLedger
from gossamer.reading.rank_file import FORMAT, RankLine
from gossamer.reading.view import CrawlView

# Ranks on their way to the nodes of a crawl on many machines: messages to the owners of the domains' shards.
#
# They are in the inboxes when the call returns, and stay there until an owner has stored the ranks in its shard. What
# is sent at once is bounded, since a node applies all that it finds in its inboxes in one turn of its event loop.

LEASE_S = 20.0
DOMAINS_PER_COMMIT = 5000  # 20 ms to apply
COMMIT_EVERY_S = 0.4  # nodes read their inboxes every 0.3 s


def send_ranks(shared: NodeLedger, ranks: Iterable[DomainRank], pause: Callable[[float], None] = time.sleep) -> int:
    """Send ranks, in the order of the domains' ids; return how many."""
    node = NodeId(f"ranks-{secrets.token_hex(4)}", secrets.token_hex(4))
    shared.join(node, OBSERVER, LEASE_S)
    messages: dict[int, NodeMessage] = {}
    sent = commits = waiting = 0
    for rank in ranks:
        shard = shard_of(domain_id(rank.domain))
        if waiting >= DOMAINS_PER_COMMIT and shard not in messages:
            commits += 1
            _commit(shared, node, commits, messages)
            messages = {}
            waiting = 0
            pause(COMMIT_EVERY_S)
            shared.renew(node, NodeStatus(commit=commits))
        messages.setdefault(shard, NodeMessage()).ranks.append(rank)
        sent = sent + 1
        waiting = waiting + 1
    if messages:
        _commit(shared, node, commits + 1, messages)
    shared.leave(node)
    return sent


def _commit(shared: NodeLedger, node: NodeId, number: int, messages: dict[int, NodeMessage]) -> None:
    links = {shard: encode_message(message) for shard, message in messages.items()}
    shared.commit(node, Commit(number, Totals(), links=links))


RANKS_NAME = "ranks.jsonl.gz"  # in the crawl folder
_encode = msgspec.json.Encoder().encode


class CrawlLinks(Struct):
    """The hosts of a crawl and the links between them."""

    graph: HostGraph
    seeds: set[str] = msgspec.field(default_factory=set)  # their domains
    pages: int = 0
    links: int = 0  # that count: with repetitions, without nofollow, with redirects

    def known(self, domains: Iterable[str]) -> set[str]:
        """Return those of some domains that occur in the crawl or in its links."""
        return {domain for domain in domains if domain in self.graph.domains}


class RankedDomain(Struct, frozen=True, gc=False):
    """A domain with its rank; the ranks of all domains add up to 1."""

    domain: str
    rank: float
    domains_in: int  # how many other domains link to it


class RankedHost(Struct, frozen=True, gc=False):
    """A line of the stored ranks. The ranks of all hosts add up to 1."""

    host: str
    domain: str
    rank: float
    standing: float  # the share of hosts with a lower rank
    domain_rank: float
    domains_in: int  # how many other domains link to its domain


class RankFigures(Struct, frozen=True, kw_only=True):
    """What ranks were computed from: the first line of the stored ranks."""

    format: int = FORMAT
    computed_at: str
    trusted: str = "all"  # seeds, file or all
    trusted_domains: int = 0
    pages: int
    pages_missing: int = 0  # whose bytes could not be read: they lie on nodes elsewhere
    links: int
    domain_links: int  # different pairs of domains of which one links to the other
    hosts: int
    domains: int


class CrawlRanks:
    """The ranks of all hosts and domains of a crawl."""

    def __init__(self, graph: HostGraph, trusted: Collection[str]) -> None:
        self._graph = graph
        self._ranks: HostRanks = rank_hosts(graph, trusted)

    @property
    def domain_links(self) -> int:
        """How many different pairs of domains there are of which one links to the other."""
        return sum(self._ranks.domains_in)

    def best(self, count: int) -> list[RankedDomain]:
        """Return the domains with the highest ranks (0: all of them), ties by name."""
        ranks = self._ranks.domains
        domains_in = self._ranks.domains_in
        names = list(self._graph.domains)
        numbers = range(len(ranks))
        key = _best_first(ranks, names)
        chosen = heapq.nsmallest(count, numbers, key=key) if count else sorted(numbers, key=key)
        return [RankedDomain(names[number], ranks[number], domains_in[number]) for number in chosen]

    def hosts(self) -> Iterator[RankedHost]:
        """Yield all hosts, the highest rank first, ties by name."""
        graph = self._graph
        ranks = self._ranks
        names = list(graph.hosts)
        domains = list(graph.domains)
        standing = standings(ranks.hosts)
        for number in sorted(range(len(names)), key=_best_first(ranks.hosts, names)):
            domain = graph.domain_of[number]
            yield RankedHost(
                names[number],
                domains[domain],
                ranks.hosts[number],
                standing[number],
                ranks.domains[domain],
                ranks.domains_in[domain],
            )

    def by_id(self) -> Iterator[RankLine]:
        """Yield all domains in the order of their ids, as a crawl reads them."""
        ranks = self._ranks.domains
        names = list(self._graph.domains)
        standing = domain_standings(ranks)
        for number in sorted(range(len(names)), key=lambda number: domain_id(names[number])):
            yield RankLine(names[number], ranks[number], standing[number])

    def store_domains(self, figures: RankFigures, path: Path) -> None:
        """Write the figures and all domains for the crawl: see `reading/rank_file`."""
        records: Iterable[Struct] = chain([figures], self.by_id())
        write_lines((_encode(record) + b"\n" for record in records), path)

    def store(self, figures: RankFigures, path: Path) -> None:
        """Write the figures and all hosts as JSON lines, to a file that gets its name when it is complete."""
        records: Iterable[Struct] = chain([figures], self.hosts())
        write_lines((_encode(record) + b"\n" for record in records), path)


def _best_first(ranks: array[float], names: list[str]) -> Callable[[int], tuple[float, str]]:
    # The last digits depend on the order in which pages were read: without rounding, ties would have no order.
    return lambda number: (-float(f"{ranks[number]:.6g}"), names[number])


def read_links(crawl: CrawlView) -> CrawlLinks:
    """Read the links of a crawl that is open for reading."""
    found = CrawlLinks(HostGraph())
    graph = found.graph
    for document in documents(crawl):
        targets = [host_of(link.url) for link in document.article.links if not link.nofollow]
        graph.add(host_of(document.facts.url), targets)
        found.pages += 1
        found.links += len(targets)
    for _, row in crawl.ledger.urls():
        if row.source is Source.SEED:
            found.seeds.add(registrable_domain(host_of(row.url)))
        target = canonical(row.redirect_to) if row.redirect_to and is_answer(row) else None
        if target is not None:
            graph.add(host_of(row.url), [host_of(target)])
            found.links += 1
    return found
