"""How a URL's row in the catalog follows from what happened to it."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.model.records import (
    ChangeKind,
    Outcome,
    QueuedUrl,
    RequestTimes,
    Result,
    Source,
    UrlId,
    UrlRecord,
    UrlState,
)

# Enum members as constants: up to Python 3.11, reading one from its class takes 80 ns.
_OK = Outcome.OK
_NOT_MODIFIED = Outcome.NOT_MODIFIED
_PROBE = Source.PROBE
_QUEUED = UrlState.QUEUED
_UPSERT = ChangeKind.UPSERT

MAX_TEXT_CHARS = 500  # of a text in rows and events that an answer chose
_ANSWERS_OWN_TEXTS = ("error", "title", "content_type", "charset", "language", "directives")


def record_of(url: QueuedUrl) -> UrlRecord:
    record = UrlRecord(
        url.url,
        _QUEUED,
        url.depth,
        url.source,
        url.kind,
        url.parent,
        url.priority,
        url.seq,
        url.hops,
        url.attempt,
        url.not_before,
        url.found_at,
        url.https_first,
    )
    if url.etag or url.last_modified or url.lastmod:
        record.etag = url.etag
        record.last_modified = url.last_modified
        record.lastmod = url.lastmod
    if url.seed:
        record.seed = url.seed
    return record


def queued_from(url_id: UrlId, host: str, record: UrlRecord) -> QueuedUrl:
    return QueuedUrl(
        url=record.url,
        id=url_id,
        host=host,
        priority=record.priority,
        seq=record.seq,
        depth=record.depth,
        kind=record.kind,
        source=record.source,
        parent=record.parent,
        hops=record.hops,
        attempt=record.attempt,
        not_before=record.not_before,
        found_at=record.found_at,
        https_first=record.https_first,
        etag=record.etag,
        last_modified=record.last_modified,
        lastmod=record.lastmod,
        seed=record.seed,
    )


def with_short_texts(result: Result) -> Result:
    """Return a result in which what an answer says about itself has a length that rows and events may have.

    The parts that make an answer have limits of their own, far above what is shown: this one holds for all of them.
    """
    texts = {name: getattr(result, name) for name in _ANSWERS_OWN_TEXTS}
    short = {name: text[: MAX_TEXT_CHARS - 1] + "…" for name, text in texts.items() if len(text) > MAX_TEXT_CHARS}
    if len(result.last_modified) > MAX_TEXT_CHARS:
        short["last_modified"] = ""  # it would be sent back
    return replace(result, **short)


def finished_record(url: QueuedUrl, state: UrlState, result: Result, before: UrlRecord | None) -> UrlRecord:
    """Return the row of a URL after a fetch; after a 304 it has the content fields of the previous visit."""
    # Positional arguments, in the order of the fields: half the time of keyword arguments.
    record = UrlRecord(
        url.url,
        state,
        url.depth,
        url.source,
        url.kind,
        url.parent,
        url.priority,
        url.seq,
        url.hops,
        url.attempt,
        url.not_before,
        url.found_at,
        url.https_first,
        result.finished_at,
        str(result.outcome),
        result.error,
        result.status,
        result.content_type,
        result.charset,
        result.language,
        result.title,
        result.wire_bytes,
        result.content_bytes,
        result.content_hash,
        result.duplicate_of,
        result.etag,
        result.last_modified,
        result.redirect_to,
        result.archived,
        1 + (before.visits if before else 0),
        str(result.truncated),
        result.directives,
        result.usage,
        url.lastmod,
        result.near_duplicate_of,
        result.similarity,
        result.nofollow_links,
        result.links_found,
        result.worker,
        url.seed,
        result.words,
    )
    if result.spam is not None:
        record.spam = result.spam
    record.times = times_of(result)
    if before is not None and result.status == 304:
        _copy_content(record, before)
    return record


def times_of(result: Result) -> RequestTimes | None:
    """Return how long a request took; None if that is not known: no answer, or one that was read from the archive."""
    sent_at = result.sent_at
    first_byte_at = result.first_byte_at
    if not first_byte_at > sent_at > 0:
        return None
    connect = result.connect_s
    tls = result.tls_s
    if connect < 0:  # a kept connection: most answers
        return RequestTimes(round(1000 * (first_byte_at - sent_at)), round(1000 * (result.finished_at - sent_at)))
    total_s = connect + max(0.0, tls) + result.finished_at - sent_at
    return RequestTimes(
        round(1000 * (first_byte_at - sent_at)),
        round(1000 * total_s),
        round(1000 * connect),
        round(1000 * tls) if tls >= 0 else -1,
    )


def _copy_content(record: UrlRecord, before: UrlRecord) -> None:
    record.content_hash = before.content_hash
    record.content_type = before.content_type
    record.title = before.title
    record.content_bytes = before.content_bytes
    record.language = before.language
    record.charset = before.charset
    record.duplicate_of = before.duplicate_of
    record.near_duplicate_of = before.near_duplicate_of
    record.similarity = before.similarity
    record.links_found = before.links_found
    record.nofollow_links = before.nofollow_links
    record.words = before.words
    record.spam = before.spam
    record.is_soft_404 = before.is_soft_404


def change_of(url: QueuedUrl, result: Result, before: UrlRecord | None, *, is_soft_404: bool) -> ChangeKind | None:
    """Return what a finished visit of a page means to an indexer; None if it shows nothing about the page."""
    if url.source is _PROBE:
        return None
    if result.status in (404, 410) or is_soft_404:
        return ChangeKind.GONE
    if result.outcome is _NOT_MODIFIED:
        return ChangeKind.UNCHANGED
    if result.outcome is not _OK:
        return None
    if before is not None and before.content_hash and before.content_hash == result.content_hash:
        return ChangeKind.UNCHANGED
    return ChangeKind.DUPLICATE if result.duplicate_of or result.near_duplicate_of else _UPSERT
