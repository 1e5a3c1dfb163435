"""Where does a domain belong if a rule for regions names the country of its address?

Until its address is known, a domain belongs to the shard that follows from its name. The first look-up of one of its
hosts decides, before anything of it was fetched, and for good: the decision is a record (`DomainHome`) in that shard.
If a rule gives the domain another label than its shard has,

1. its hosts are blocked here, and the shard is about to be released and taken again (`due`);
2. whoever takes the shard, this node or another, removes the rows of its URLs and sends them to the shard in the range
   of the label, as ordinary links: rows and messages leave with one commit. The record stays, as a forwarding address;
3. the owner of that shard stores the same record, with the first message, so that its next owner knows the domain, too.

From then on this process makes the ids of the domain by its label (`Regions.homes`). Nodes that have not heard of it
send links to the first shard, whose owner forwards them: an id is made anew from the URL wherever a message is read.
Ids of links that a worker process or a stored batch made before are made again by `Admission.offer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gossamer.core.cluster.regions import Regions
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.ledger.tables import HELD, HELD_COUNTS, HOMES, SUBMITTERS, held_key, held_prefix
from gossamer.core.links.requisite import count_requisites, is_requisite
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import domain_id, id_in_shard, shard_of
from gossamer.engine.cluster.link_messages import LinkMessage, NodeMessage, requisite_message
from gossamer.model.records import HostId, HostRecord, QueuedUrl, UrlId
from gossamer.model.state import CrawlState, DomainHome, HeldUrl, HoldRule

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

CountryOf = Callable[[str], str]  # of an address: two letters, or empty if it is not known
MOVE_EVERY_S = 10.0  # a shard: to release and take it costs a second or two
_BATCH = 1000


class Rehoming:
    """Decides where domains belong, and moves their rows there."""

    def __init__(
        self,
        regions: Regions,
        country_of: CountryOf,
        frontier: Frontier,
        ledger: FrontierStore,
        *,
        message_to: Callable[[str], NodeMessage],
        state: CrawlState,
    ) -> None:
        self._regions = regions
        self._country_of = country_of
        self._frontier = frontier
        self._ledger = ledger
        self._message_to = message_to
        self._state = state
        self._leaving: set[int] = set()  # shards with domains that belong elsewhere
        self._asked_at: dict[int, float] = {}  # when shards were last to be taken again

    @property
    def is_pending(self) -> bool:
        """Whether domains wait for their shards to be taken again."""
        return bool(self._leaving)

    def due(self, now: float) -> set[int]:
        """Return shards to release and to take again now: each once, and not too often."""
        due = {shard for shard in self._leaving if now >= self._asked_at.get(shard, 0.0) + MOVE_EVERY_S}
        self._asked_at.update(dict.fromkeys(due, now))
        return due

    def decide(self, host: str, addresses: tuple[str, ...], now: float) -> None:
        """Decide where the domain of a host belongs, unless that was decided; block the host if it is not here."""
        domain = registrable_domain(host)
        record = self._frontier.record_of(host)
        if record is None or not addresses:
            return
        key = domain_id(domain)
        here = self._regions.label_of_shard(shard_of(key))
        home = self._ledger.record(HOMES, key)
        if home is None:
            country = self._country_of(addresses[0])
            known = self._ledger.domain(domain)
            is_begun = bool(record.fetches) or (known is not None and bool(known.pages))
            label = here if is_begun else self._regions.label_of(domain, country)
            home = DomainHome(key, domain, label, country)
            self._ledger.put_record(HOMES, home)
        if home.label != here:
            self._leaving.add(shard_of(key))
            self._frontier.block(host, is_blocked=True, now=now)
            self._ledger.put_host(record)

    def is_elsewhere(self, domain: str) -> bool:
        """Return whether a domain was found to belong to another shard than the one that follows from its name."""
        key = domain_id(domain)
        home = self._ledger.record(HOMES, key)
        return home is not None and home.label != self._regions.label_of_shard(shard_of(key))

    def store_homes(self, message: NodeMessage) -> None:
        """Store which domains in a message belong here."""
        for domain, label in message.homes.items():
            self._regions.learn_home(domain, label)
            key = domain_id(domain)
            if self._ledger.record(HOMES, key) is None:
                self._ledger.put_record(HOMES, DomainHome(key, domain, label))

    def forget(self, shard: int) -> None:
        """Forget a shard that was released: its next owner moves what must leave it."""
        self._leaving.discard(shard)

    def move_out(self, shard: int) -> None:
        """Learn where the domains of a shard that is being taken belong, and send what is queued of others there."""
        self._regions.learn_homes(self._ledger.records(HOMES, shard))
        here = self._regions.label_of_shard(shard)
        for host in list(self._ledger.hosts(shard)):
            if host.queued and self._regions.label_of(host.domain) != here:
                self._move_queue(id_in_shard(shard, host.name), host)
        for held in list(self._ledger.records(HELD_COUNTS, shard)):
            if self._regions.label_of(registrable_domain(held.host)) != here:
                self._move_held(id_in_shard(shard, held.host))

    def _move_queue(self, key: HostId, host: HostRecord) -> None:
        while batch := self._ledger.read_queue(key, None, _BATCH):
            for url in batch:
                self._ledger.finish(url, None)
                if is_requisite(url):
                    self._message_to(url.url).requisites.append(requisite_message(url))
                else:
                    self._send(_message_of(url), url.id)
            self._state.totals.urls_seen -= len(batch) - count_requisites(batch)  # they are admitted once more
        host.queued = host.requisites = 0
        self._ledger.put_host(host, key)

    def _move_held(self, host: HostId) -> None:
        for rule in HoldRule:
            while batch := self._ledger.first_records(HELD, held_prefix(host, rule), count=_BATCH):
                for held in batch:
                    self._ledger.remove_record(HELD, held_key(held.id, rule))
                    self._state.totals.count_held(rule.value, -1)
                    self._send(_message_of(held), held.id)
        self._ledger.remove_record(HELD_COUNTS, host)

    def _send(self, link: LinkMessage, url_id: UrlId) -> None:
        message = self._message_to(link.url)
        submitters = self._ledger.record(SUBMITTERS, url_id)
        message.links.append(link)
        for domain in submitters.domains if submitters is not None else ():
            message.links.append(LinkMessage(link.url, link.depth, link.source, link.kind, submitter=domain))


def _message_of(link: QueuedUrl | HeldUrl) -> LinkMessage:
    is_guess = isinstance(link, QueuedUrl) and link.https_first
    return LinkMessage(
        link.url, link.depth, link.source, link.kind, link.parent, link.hops, link.seed, is_guess, lastmod=link.lastmod
    )
