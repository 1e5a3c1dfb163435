"""Which URLs are due again? The index in the ledger, and what of it is in memory.

A URL is in the index until its visit has ended, so that nothing is lost if the process dies. A host whose URLs are in
memory has its entry put off by `LEASE_S`, and marked: whoever takes its shard looks at it at once. Memory: one time
per shard, and up to `MAX_HOSTS` hosts with up to `PER_HOST` URLs each, however many URLs are due.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.host_table import LONG_WAIT_S
from gossamer.core.ledger.catalog import queued_from
from gossamer.core.ledger.tables import DUE, DUE_HOSTS, HOST_VISITS
from gossamer.core.revisit.domain_shares import DomainShares
from gossamer.core.revisit.stored import DueHost, DueUrl, HostVisits, due_host_key, due_key
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of, shard_prefix
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.model.records import FetchKind, Known, Outcome, QueuedUrl, UrlId, UrlRecord, UrlState

if TYPE_CHECKING:
    from gossamer.ports import FrontierStore

LEASE_S = 60
MAX_HOSTS = 10_000  # with URLs in memory; and no more than a quarter of all hosts that may be there
MAX_ORPHANS = 20  # of a shard, that are looked for when it is taken; further ones are looked at after `LEASE_S`
PER_HOST = 16
HOSTS_PER_TURN = 20
BLOCKED_S = 3600
NO_ROOM_S = 60
FULL_FETCH_EVERY = 10  # visits: a server may answer "not modified" for a page that it changed
_STILL_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class DueUrls:
    """The due index of the shards that are owned."""

    def __init__(self, frontier: Frontier, ledger: FrontierStore, hosts: HostDirectory) -> None:
        self._frontier = frontier
        self._visits = frontier.visits
        self._ledger = ledger
        self._hosts = hosts
        self.shares = DomainShares()
        self._first: dict[int, int] = {}  # by shard: when its first host is due
        self._heap: list[tuple[int, int]] = []  # time and shard; valid if it is that of `_first`
        self._max_hosts = min(MAX_HOSTS, max(1, frontier.limits.max_hosts_in_memory // 4))
        self._orphans: list[str] = []  # hosts that a process had loaded which is gone
        self._loaded: dict[str, int] = {}  # hosts whose URLs are in memory, and how many visits have not ended

    # -- shards -----------------------------------------------------------------------------------

    def load(self, shard: int | None) -> None:
        """Find out when something is due in a shard, or in all of them (None), and what another process had loaded."""
        for each in range(SHARD_COUNT) if shard is None else (shard,):
            first = self._ledger.first_records(DUE_HOSTS, shard_prefix(each), count=MAX_ORPHANS)
            self._orphans += [due.host for due in first if due.is_loaded]
            if first:
                self._set_first(each, first[0].at)

    def forget(self, shards: Collection[int]) -> None:
        """Forget shards that have another owner."""
        for shard in shards:
            self._first.pop(shard, None)
        self._orphans = [name for name in self._orphans if shard_of(host_id(name)) not in shards]
        gone = [name for name in self._loaded if shard_of(host_id(name)) in shards]
        for name in gone:
            del self._loaded[name]

    def _find_first(self, shard: int) -> None:
        first = self._ledger.first_records(DUE_HOSTS, shard_prefix(shard), count=1)
        if first:
            self._set_first(shard, first[0].at)
        else:
            self._first.pop(shard, None)

    def _set_first(self, shard: int, at: int) -> None:
        if self._first.get(shard) != at:
            self._first[shard] = at
            heappush(self._heap, (at, shard))

    @property
    def next_at(self) -> float | None:
        """When the next host is due; None if nothing is to be fetched again."""
        if self._orphans:
            return 0.0
        while self._heap and self._first.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    @property
    def waiting(self) -> int:
        """How many URLs that are due wait in memory for their host's turn."""
        return sum(len(host.visits) for host in self._visits.hosts.values())

    # -- times ------------------------------------------------------------------------------------

    def plan(self, url_id: UrlId, host: str, before: int, at: int) -> None:
        """Set when a URL is due, instead of at the time before (0: never)."""
        if before and before != at:
            self._ledger.remove_record(DUE, due_key(url_id, before))
        if not at:
            return
        self._ledger.put_record(DUE, DueUrl(url_id, at))
        if host not in self._loaded:
            visits = self.visits_of(host)
            if not visits.due_at or at < visits.due_at:
                self._move(visits, at)

    def visits_of(self, host: str) -> HostVisits:
        """Return what was learned about a host; the caller stores it after a change."""
        return self._ledger.record(HOST_VISITS, host_id(host)) or HostVisits(host)

    def put_off(self, host: str, until: float) -> None:
        """Have a host looked at again at a time, and not before."""
        self._loaded.pop(host, None)
        self._move(self.visits_of(host), ceil(until))

    def _move(self, visits: HostVisits, at: int, *, is_loaded: bool = False) -> None:
        """Move the entry of a host to another time; 0 removes it."""
        before = visits.due_at
        if before and before != at:
            self._ledger.remove_record(DUE_HOSTS, due_host_key(visits.host, before))
        visits.due_at = at
        if at:
            self._ledger.put_record(DUE_HOSTS, DueHost(visits.host, at, is_loaded))
        self._ledger.put_record(HOST_VISITS, visits)
        shard = shard_of(host_id(visits.host))
        first = self._first.get(shard)
        if at and (first is None or at <= first):
            self._set_first(shard, at)
        elif before == first:
            self._find_first(shard)

    # -- reading ----------------------------------------------------------------------------------

    def fill(self, now: float) -> None:
        """Bring URLs that are due into memory, as far as there is room: a few hosts at a time."""
        for _ in range(HOSTS_PER_TURN):
            if self._orphans:
                self._look_at(self._orphans.pop(), now)
                continue
            at = self.next_at
            if at is None or at > now or self.is_full:
                return
            shard = self._heap[0][1]
            for due in self._ledger.first_records(DUE_HOSTS, shard_prefix(shard), count=1):
                self._look_at(due.host, now)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the URLs of one more host."""
        return len(self._loaded) >= self._max_hosts

    def _look_at(self, name: str, now: float, *, is_drained: bool = False) -> None:
        record = self._frontier.record_of(name) or self._hosts.record(name, now)
        is_blocked = record.is_blocked or self._hosts.has_opted_out(record)
        if is_blocked or record.parked_until > now + LONG_WAIT_S:  # others need the room
            self._visits.drop(name, now)
            self.put_off(name, now + BLOCKED_S if is_blocked else record.parked_until)
            return
        if self._loaded.pop(name, 0) and (left := self._visits.unfinished(name)):
            self._loaded[name] = left
            self._move(self.visits_of(name), ceil(now) + LEASE_S, is_loaded=True)
            return
        if not self._frontier.has_host(name):
            self._hosts.bring_in(name, now)
        if not self._frontier.has_host(name):
            self.put_off(name, max(now + NO_ROOM_S, record.swapped_out_until))
            return
        self._read(name, now, is_drained=is_drained)

    def _read(self, name: str, now: float, *, is_drained: bool) -> None:
        """Read what is due at a host in memory; if nothing is, as mostly after it was drained, set when it will be."""
        urls: list[QueuedUrl] = []
        following = 0
        domain = self._visits.domain_of(name)
        room = min(self.shares.room(domain.name, domain.pages, now), PER_HOST)
        first = self._ledger.first_records(DUE, host_id(name), count=1 if is_drained else room + 1)
        if is_drained and room and first and first[0].at <= now:
            first = self._ledger.first_records(DUE, host_id(name), count=room + 1)
        if not room and first and first[0].at <= now:
            self._hold(name, ceil(self.shares.next_turn(domain.name, now)))
            return
        for due in first:
            if due.at > now or len(urls) == room:
                following = due.at
                break
            url = self._url_of(due)
            if url is not None:
                urls.append(url)
        if not urls:
            self._move(self.visits_of(name), following)
            return
        record = self._frontier.record_of(name)
        if record is not None:
            record.is_dead = False
        added = self._visits.add(name, urls, now)
        self.shares.count(domain.name, domain.pages, added, now)
        self._loaded[name] = self._loaded.get(name, 0) + added
        visits = self.visits_of(name)
        visits.held_until = 0
        self._move(visits, ceil(now) + LEASE_S, is_loaded=True)

    def _hold(self, name: str, until: int) -> None:
        """Have a host looked at again when its domain may be visited again."""
        visits = self.visits_of(name)
        visits.held_until = until
        self._move(visits, until)

    def _url_of(self, due: DueUrl) -> QueuedUrl | None:
        """Return a URL that is due; None if its entry has no meaning any more, and is removed."""
        row = self._ledger.look_up(due.id)
        is_right = row is not None and row.state is not UrlState.QUEUED
        if row is None or not is_right or row.revisit is None or row.revisit.due_at != due.at:
            self._ledger.remove_record(DUE, due_key(due.id, due.at))
            return None
        return visit_of(due.id, row)

    def end(self, url: QueuedUrl, now: float) -> None:
        """Record that a visit has ended; the next URLs of its host follow if it was the last one."""
        left = self._loaded.get(url.host, 0) - 1
        if left > 0:
            self._loaded[url.host] = left
            return
        self._loaded.pop(url.host, None)
        self._visits.forget_if_none(url.host)
        if self._frontier.has_host(url.host) and not self.is_full:
            self._look_at(url.host, now, is_drained=True)
        else:
            self.put_off(url.host, now)


def visit_of(url_id: UrlId, row: UrlRecord) -> QueuedUrl:
    """Return a known URL as it is fetched again: conditionally if a copy is stored, but now and then in full."""
    is_page = row.kind is FetchKind.PAGE and row.outcome in _STILL_PAGES and row.state is UrlState.DONE
    url = queued_from(url_id, host_of(row.url), row)
    is_full = not is_page or row.visits % FULL_FETCH_EVERY == 0
    return replace(
        url,
        known=Known.PAGE if is_page else Known.URL,
        not_before=float(row.revisit.due_at) if row.revisit is not None else 0.0,
        attempt=0,
        hops=0,
        etag="" if is_full else row.etag,
        last_modified="" if is_full else row.last_modified,
    )


def is_due_again(row: UrlRecord, now: float) -> bool:
    return row.state is not UrlState.QUEUED and row.revisit is not None and 0 < row.revisit.due_at <= now
