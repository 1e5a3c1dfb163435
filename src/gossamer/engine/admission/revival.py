"""How what has ended returns to the queue: dead letters, pages whose bytes are lost, a pattern in quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.core.frontier.counts import Counts
from gossamer.core.ledger.archive_names import node_of
from gossamer.core.ledger.catalog import queued_from, record_of
from gossamer.core.ledger.tables import QUARANTINES
from gossamer.core.url.forms import host_of
from gossamer.core.url.identity import host_id
from gossamer.engine.admission.holding import Holding
from gossamer.engine.event_emitter import EventEmitter
from gossamer.engine.results.evidence import chosen_quarantines, requeue_quarantined
from gossamer.engine.shards.host_directory import HostDirectory
from gossamer.model.events import EventName
from gossamer.model.figures import Totals
from gossamer.model.records import FetchKind, HostRecord, Outcome, Source, UrlId, UrlRecord, UrlState
from gossamer.model.state import OperatorRequest

if TYPE_CHECKING:
    from gossamer.ports import Ledger

NO_LETTERS = "no dead letters match"
_PURPOSES = {FetchKind.SITEMAP: "sitemap", FetchKind.REQUISITE: "requisite"}
_PAGES = frozenset({Outcome.OK.value, Outcome.NOT_MODIFIED.value})


class Revived(Struct):
    """How many rows were queued again."""

    letters: int = 0  # without requisites
    requisites: int = 0  # dead letters or not
    pages: int = 0  # of them, pages that count as not fetched from now on
    others: int = 0  # redirects, sitemaps and the like


class Revival:
    """Queues again what has ended, before a run or before a shard is taken."""

    def __init__(self, ledger: Ledger, hosts: HostDirectory, holding: Holding, emitter: EventEmitter) -> None:
        self._ledger = ledger
        self._hosts = hosts
        self._holding = holding
        self._events = emitter

    def retry(self, is_wanted: Callable[[UrlRecord], bool], totals: Totals, now: float) -> int:
        """Queue dead letters again, as if they had never failed; return how many of them are not requisites."""
        rows = self._ledger.urls()
        return self._revive(rows, lambda row: row.state is UrlState.DEAD and is_wanted(row), totals, now).letters

    def fulfil(
        self, requests: Sequence[OperatorRequest], shard: int, totals: Totals, counts: Counts, now: float
    ) -> None:
        """Fulfil the requests that concern a shard which is about to be used."""
        for request in requests:
            if shard in request.shards:
                counts.take_back_pages(self._fulfil(request, shard, totals, now))

    def _fulfil(self, request: OperatorRequest, shard: int, totals: Totals, now: float) -> int:
        """Fulfil a request for one shard; return how many pages count as not fetched from now on."""
        if request.pattern:
            self._release(request, shard, totals, now)
            return 0
        names = [host.name for host in self._ledger.hosts(shard) if not request.hosts or host.name in request.hosts]
        rows = (item for name in names for item in self._ledger.urls(host_id(name)))
        done = self._revive(rows, lambda row: is_requested(row, request), totals, now)
        totals.dead -= done.letters
        count = done.letters + done.requisites + done.pages + done.others
        if count:
            what = f"stored on {request.stored_on}" if request.stored_on else "dead letters"
            self._events.emit(EventName.QUEUED_AGAIN, now, links=count, reason=f"{what}, at the operator's request")
        return done.pages

    def _release(self, request: OperatorRequest, shard: int, totals: Totals, now: float) -> None:
        known = list(self._ledger.records(QUARANTINES, shard))
        for chosen in chosen_quarantines(known, request.pattern, request.at):
            count = requeue_quarantined(self._ledger, chosen)
            totals.dead -= count
            self._holding.count_quarantined(-count)
            self._events.emit(
                EventName.QUEUED_AGAIN, now, host=chosen.host, rule=chosen.name, links=chosen.held, reason="released"
            )

    def _revive(
        self,
        rows: Iterable[tuple[UrlId, UrlRecord]],
        is_wanted: Callable[[UrlRecord], bool],
        totals: Totals,
        now: float,
    ) -> Revived:
        revived: dict[str, HostRecord] = {}
        done = Revived()
        quarantined = evicted = 0
        for url_id, row in rows:
            if not is_wanted(row):
                continue
            name = host_of(row.url)
            host = revived.get(name) or self._hosts.record(name, now)
            revived[name] = host
            quarantined += row.outcome == Outcome.QUARANTINED
            evicted += row.outcome == Outcome.EVICTED
            fresh = self._as_new(url_id, row, host, totals, done)
            self._ledger.requeue(queued_from(url_id, name, fresh), fresh)
            Counts.enqueue_stored(host, 1, int(row.kind is FetchKind.REQUISITE))
        self._holding.count_quarantined(-quarantined)
        totals.evicted -= evicted
        for host in revived.values():
            host.is_dead = False
            host.failures_in_a_row = 0
            host.robots_tries = 0
            host.parked_until = 0.0
            host.park_reason = ""
            host.backoff = 0
            self._ledger.put_host(host)
            self._hosts.lift_bans(host.name)
        return done

    def _as_new(self, url_id: UrlId, row: UrlRecord, host: HostRecord, totals: Totals, done: Revived) -> UrlRecord:
        """Return the row of a URL that is to be fetched as if it had never been."""
        row.attempt = 0
        row.not_before = 0.0
        row.hops = 0
        is_dead = row.state is UrlState.DEAD
        is_requisite = row.kind is FetchKind.REQUISITE
        if is_requisite:
            done.requisites += 1
            totals.uncount_requisite(0 if is_dead else row.content_bytes, was_stored=not is_dead)
        if is_dead:
            done.letters += not is_requisite
            return row
        if row.kind is FetchKind.PAGE and row.outcome in _PAGES:
            done.pages += 1
            self._uncount(row, host, totals)
        elif not is_requisite:
            done.others += 1
        row.etag = row.last_modified = ""  # the answer must have a body
        return record_of(queued_from(url_id, host.name, row))

    def _uncount(self, row: UrlRecord, host: HostRecord, totals: Totals) -> None:
        totals.uncount_page(row.content_type, row.content_bytes, row.words)
        totals.duplicates -= bool(row.duplicate_of)
        totals.near_duplicates -= bool(row.near_duplicate_of and not row.duplicate_of)
        host.pages -= 1
        totals.unique_hosts -= host.pages == 0
        domain = self._ledger.domain(host.domain)
        if domain is not None:
            domain.pages -= 1
            totals.unique_domains -= domain.pages == 0
            self._ledger.put_domain(domain)


def dead_letters(outcomes: Sequence[str] = (), hosts: Sequence[str] = ()) -> OperatorRequest:
    """Return a request for the dead letters of all shards; for those with some outcomes, or of some hosts."""
    return OperatorRequest(inf, [], outcomes=list(outcomes), hosts=list(hosts))


def purpose_of(row: UrlRecord) -> str:
    """Return what a URL was requested for. Dead letters are not only pages: a sitemap can be retried, too."""
    if row.kind in _PURPOSES:
        return _PURPOSES[row.kind]
    return "probe" if row.source is Source.PROBE else "page"


def is_requested(row: UrlRecord, request: OperatorRequest) -> bool:
    """Return whether a request for dead letters, or for what a node stored, concerns a row."""
    if row.fetched_at >= request.at or (request.hosts and host_of(row.url) not in request.hosts):
        return False
    if request.stored_on:
        if row.archived is None or row.state is UrlState.QUEUED:
            return False
        return row.archived.file in request.files or node_of(row.archived.file) == request.stored_on
    return row.state is UrlState.DEAD and (not request.outcomes or row.outcome in request.outcomes)


def queued_again(letters: int) -> str:
    """Return for people how many dead letters are queued again."""
    return "1 dead letter is queued again" if letters == 1 else f"{letters:,} dead letters are queued again"
