"""From rows of the ledger to rows of a catalog store.

What is a page, or a dead letter, is decided here for the commit of a running crawl, and for those who compare a store
with the ledger afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from msgspec import Struct
from msgspec.msgpack import Decoder

from gossamer.core.ledger.archive_names import node_of
from gossamer.core.ledger.rows import decode_host, decode_url
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.model.records import FetchKind, HostRecord, Outcome, UrlId, UrlRecord, UrlState
from gossamer.ports import Row
from gossamer.ports.catalog_store import CatalogChanges, CatalogHost, CatalogPage, DeadLetter

BATCH_PAGES = 50
BATCH_OTHERS = 1000  # rows of hosts, and of URLs that are no pages
_OK = Outcome.OK.value
_Item = TypeVar("_Item")


class _Head(Struct, array_like=True, gc=False):
    """The first fields of a `UrlRecord`: most rows of a commit are queued URLs, of which nothing else is needed."""

    url: str
    state: UrlState


_decode_head = Decoder(_Head).decode


def is_page(row: UrlRecord) -> bool:
    """Return whether the last visit of a URL brought a page."""
    return row.state is UrlState.DONE and row.outcome == _OK and row.kind is FetchKind.PAGE


class CatalogRows:
    """Makes rows. `look_up` finds the URL of the page that led to another one."""

    def __init__(self, look_up: Callable[[UrlId], UrlRecord | None], node: str = "") -> None:
        self._look_up = look_up
        self._node = node
        self._url_of = lru_cache(maxsize=1000)(self._found_url)  # many dead letters of a commit have one parent

    def changes(self, rows: Iterable[Row], committed_at: float) -> Iterator[CatalogChanges]:
        """Yield what the rows of a commit change, in batches; dead letters come after all pages."""
        pages: list[CatalogPage] = []
        dead: list[DeadLetter] = []
        not_dead: list[UrlId] = []
        hosts: list[CatalogHost] = []
        for row in rows:
            if row.table == "hosts" and row.value is not None:
                hosts.append(self.host(decode_host(row.value)))
            elif row.table == "urls":
                if row.value is None or _decode_head(row.value).state is UrlState.QUEUED:
                    not_dead.append(row.key)
                    continue
                record = decode_url(row.value)
                if record.state is UrlState.DEAD:
                    dead.append(self.dead_letter(row.key, record))
                    continue
                not_dead.append(row.key)
                if is_page(record):
                    pages.append(self.page(row.key, record))
        for some in _batches(pages, BATCH_PAGES):
            yield CatalogChanges(committed_at, pages=some)
        for ids in _batches(not_dead, BATCH_OTHERS):
            yield CatalogChanges(committed_at, not_dead=ids)
        for letters in _batches(dead, BATCH_OTHERS):
            yield CatalogChanges(committed_at, dead_letters=letters)
        for some_hosts in _batches(hosts, BATCH_OTHERS):
            yield CatalogChanges(committed_at, hosts=some_hosts)

    def page(self, url_id: UrlId, row: UrlRecord) -> CatalogPage:
        """Return the row of a page."""
        host = host_of(row.url)
        span = row.archived
        return CatalogPage(
            url_id=url_id,
            visit=row.visits,
            url=row.url,
            host=host,
            domain=registrable_domain(host),
            title=row.title,
            status=row.status,
            content_type=row.content_type,
            language=row.language,
            depth=row.depth,
            size=row.content_bytes,
            words=row.words,
            links=row.links_found,
            content_hash=row.content_hash.hex(),
            duplicate_of=row.duplicate_of or None,
            near_duplicate_of=row.near_duplicate_of or None,
            fetched_at=row.fetched_at,
            archive_file=None if span is None else span.file,
            archive_offset=None if span is None else span.offset,
            # A shard may have had another owner when the page was fetched: the file's name says who it was.
            node=self._node if span is None or not self._node else node_of(span.file) or self._node,
            worker=row.worker,
        )

    def dead_letter(self, url_id: UrlId, row: UrlRecord) -> DeadLetter:
        """Return the row of a URL that failed for good."""
        return DeadLetter(
            url_id=url_id,
            url=row.url,
            host=host_of(row.url),
            outcome=row.outcome,
            status=row.status or None,
            reason=row.error,
            attempts=row.attempt + (row.visits > 0),
            found_on=self._url_of(row.parent) if row.parent else None,
            at=row.fetched_at,
            node=self._node,
        )

    def host(self, record: HostRecord) -> CatalogHost:
        """Return the row of a host."""
        return CatalogHost(
            name=record.name,
            domain=record.domain,
            pages=record.pages,
            fetches=record.fetches,
            errors=record.errors,
            queued=record.queued,
            bytes=record.bytes,
            rank=record.rank,
            delay_s=record.delay_s,
            latency_s=record.latency_s,
            is_blocked=record.is_blocked,
            is_dead=record.is_dead,
            park_reason=record.park_reason,
            parked_until=record.parked_until,
            first_seen_at=record.first_seen_at,
            last_fetch_at=record.last_fetch_at,
            node=self._node,
        )

    def _found_url(self, parent: UrlId) -> str | None:
        row = self._look_up(parent)
        return None if row is None else row.url


def _batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
