"""How many more hosts may a registrable domain have, and which wait for that?

A wildcard in the DNS makes endless hosts, so a domain may have `max_hosts_per_domain`. What counts are hosts that have
answered, or were not asked yet: a name that does not exist, or whose server cannot be reached, gives its place back,
and a host that waits gets it. So names that somebody invented use up nobody's places. Pages of other domains may name
hosts for all but a quarter of them, the rest is for those that the domain names itself.

Links to further hosts are held back (`holding`), those that the domain names itself before the others, and are offered
again as places become free: two hosts for each. Memory: the name of each host that waits, at most `MAX_WAITING` per
domain, half of them named by others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gossamer.core.frontier.task_end import has_answered
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.identity import host_id, shard_of
from gossamer.model.records import DomainRecord, HostRecord

if TYPE_CHECKING:
    from gossamer.ports import HostStore

OWN_RESERVE = 4  # a quarter
MAX_WAITING = 20_000
RELEASED = 2  # hosts for a place that becomes free: another rule may refuse what one of them has


class _Waiting(Struct):
    """The hosts of a domain that wait, in order."""

    own: OrderedDict[str, None] = field(default_factory=OrderedDict)
    of_others: OrderedDict[str, None] = field(default_factory=OrderedDict)


class DomainRooms:
    """The places of domains for hosts."""

    def __init__(self, ledger: HostStore, max_hosts: int) -> None:
        self._ledger = ledger
        self._max_hosts = max_hosts
        self._waiting: dict[str, _Waiting] = {}

    def room(self, domain_name: str, *, is_own: bool) -> int:
        """Return how many more hosts a domain may have that its own pages name, or those of others."""
        domain = self._ledger.domain(domain_name)
        if domain is None:
            return self._max_hosts if is_own else self._max_for_others
        room = self._max_hosts - (domain.hosts - domain.unreached)
        return room if is_own else min(room, self._max_for_others - domain.introduced)

    @property
    def _max_for_others(self) -> int:
        return self._max_hosts - self._max_hosts // OWN_RESERVE

    def may_offer(self, host: str) -> bool:
        """Return whether links to a host that waits may be offered now."""
        return self._ledger.host(host) is not None or self.room(registrable_domain(host), is_own=True) > 0

    def count_contact(self, host: HostRecord) -> list[str]:
        """Count a host that has failed, or has answered after all; return hosts that may get its place."""
        is_unreached = host.errors > 0 and not has_answered(host)
        if is_unreached == host.is_unreached:
            return []
        host.is_unreached = is_unreached
        domain = self._ledger.domain(host.domain) or DomainRecord(host.domain, hosts=1)
        domain.unreached += 1 if is_unreached else -1
        if host.is_introduced:
            domain.introduced += -1 if is_unreached else 1
        self._ledger.put_domain(domain)
        return self._next(host.domain) if is_unreached else []

    def _next(self, domain_name: str) -> list[str]:
        waiting = self._waiting.get(domain_name)
        if waiting is None:
            return []
        return _take_turns(waiting.own) or (
            _take_turns(waiting.of_others) if self.room(domain_name, is_own=False) > 0 else []
        )

    # -- hosts that wait --------------------------------------------------------------------------

    def has_place_in_line(self, host: str, *, is_own: bool) -> bool:
        """Return whether one more host of a domain may wait."""
        waiting = self._waiting.get(registrable_domain(host))
        if waiting is None or host in waiting.own or host in waiting.of_others:
            return True
        return len(waiting.own if is_own else waiting.of_others) < MAX_WAITING // 2

    def add(self, host: str, *, is_own: bool) -> None:
        """Add a host that waits."""
        waiting = self._waiting.setdefault(registrable_domain(host), _Waiting())
        if host not in waiting.own and host not in waiting.of_others:
            (waiting.own if is_own else waiting.of_others)[host] = None

    def remove(self, host: str) -> None:
        """Remove a host none of whose links are held any more."""
        name = registrable_domain(host)
        waiting = self._waiting.get(name)
        if waiting is None:
            return
        waiting.own.pop(host, None)
        waiting.of_others.pop(host, None)
        if not waiting.own and not waiting.of_others:
            del self._waiting[name]

    def is_waiting(self, host: str) -> bool:
        waiting = self._waiting.get(registrable_domain(host)) if self._waiting else None
        return waiting is not None and (host in waiting.own or host in waiting.of_others)

    def forget(self, shards: Collection[int]) -> None:
        """Forget the hosts of shards that have another owner."""
        for name in [name for name in self._waiting if shard_of(host_id(name)) in shards]:
            del self._waiting[name]


def _take_turns(hosts: OrderedDict[str, None]) -> list[str]:
    """Return the first hosts, and put them at the end: they leave when their links are offered."""
    names = [name for _, name in zip(range(RELEASED), hosts, strict=False)]
    for name in names:
        hosts.move_to_end(name)
    return names
