"""The columns of a page in Parquet: those of Common Crawl's index, in its order, then ours.

If Common Crawl has no value (the default port of the scheme, the redirect target of a page
that is no redirect) there is none here either. `content_languages` has ISO 639-3 codes as
there, `language` the two-letter code. Dates are points in time: a day without a time of day is midnight UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from publicsuffixlist import PublicSuffixList

from gossamer.archive.surt import surt
from gossamer.core.content.written_dates import written_time
from gossamer.core.url.forms import host_of
from gossamer.handover.export.documents import PageDocument

_ISO_639_3 = dict(
    pair.split(":")
    for pair in "en:eng de:deu fr:fra es:spa pt:por it:ita nl:nld sv:swe da:dan no:nor fi:fin pl:pol cs:ces sk:slk "
    "sl:slv hr:hrv hu:hun ro:ron tr:tur id:ind vi:vie ca:cat et:est lv:lav lt:lit ru:rus uk:ukr be:bel bg:bul "
    "sr:srp mk:mkd kk:kaz ar:ara fa:fas ur:urd hi:hin mr:mar ne:nep el:ell hy:hye he:heb bn:ben pa:pan gu:guj "
    "ta:tam te:tel kn:kan ml:mal si:sin th:tha lo:lao my:mya ka:kat am:amh km:khm zh:zho ja:jpn ko:kor".split()
)


class HostParts(Struct, frozen=True, gc=False):
    """A host name as in the index."""

    name: str
    parts: tuple[str | None, ...]  # last, second last … fifth last
    registry_suffix: str | None
    registered_domain: str | None
    private_suffix: str | None
    private_domain: str | None
    reversed_name: str


@lru_cache(maxsize=2)
def _suffix_list(*, only_icann: bool) -> PublicSuffixList:
    return PublicSuffixList(only_icann=only_icann)


@lru_cache(maxsize=20_000)
def host_parts(host: str) -> HostParts:
    """Return the parts of a host name; an address has none."""
    if host.startswith("[") or host.rsplit(".", 1)[-1].isdigit():
        return HostParts(host, (None,) * 5, None, None, None, None, host)
    labels = host.split(".")[::-1]
    registry = _suffix_list(only_icann=True)
    private = _suffix_list(only_icann=False)
    return HostParts(
        name=host,
        parts=tuple(labels[at] if at < len(labels) else None for at in range(5)),
        registry_suffix=registry.publicsuffix(host),
        registered_domain=registry.privatesuffix(host),
        private_suffix=private.publicsuffix(host),
        private_domain=private.privatesuffix(host),
        reversed_name=".".join(labels),
    )


class _Page:
    """What columns are read from."""

    def __init__(self, document: PageDocument, segment: str) -> None:
        self.document = document
        self.facts = document.facts
        self.article = document.article
        self.segment = segment
        self.parts = urlsplit(document.facts.url)
        self.host = host_parts(host_of(document.facts.url))
        self.fetched_at = datetime.fromisoformat(document.facts.fetched_at).timestamp()


def _moment(text: str, fetched_at: float) -> datetime | None:
    """Return the point in time that a date denotes; None if it denotes none, or lies after the fetch."""
    seconds = written_time(text, fetched_at) if text else 0.0
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


class Column(Struct, frozen=True):
    """A column: its name, the name of its type in pyarrow, and how it is read."""

    name: str
    kind: str
    value: Callable[[_Page], Any]


COMMON_CRAWL = (
    Column("url_surtkey", "string", lambda page: surt(page.facts.url)),
    Column("url", "string", lambda page: page.facts.url),
    Column("url_host_name", "string", lambda page: page.host.name),
    Column("url_host_tld", "string", lambda page: page.host.parts[0]),
    Column("url_host_2nd_last_part", "string", lambda page: page.host.parts[1]),
    Column("url_host_3rd_last_part", "string", lambda page: page.host.parts[2]),
    Column("url_host_4th_last_part", "string", lambda page: page.host.parts[3]),
    Column("url_host_5th_last_part", "string", lambda page: page.host.parts[4]),
    Column("url_host_registry_suffix", "string", lambda page: page.host.registry_suffix),
    Column("url_host_registered_domain", "string", lambda page: page.host.registered_domain),
    Column("url_host_private_suffix", "string", lambda page: page.host.private_suffix),
    Column("url_host_private_domain", "string", lambda page: page.host.private_domain),
    Column("url_host_name_reversed", "string", lambda page: page.host.reversed_name),
    Column("url_protocol", "string", lambda page: page.parts.scheme),
    Column("url_port", "int32", lambda page: page.parts.port),
    Column("url_path", "string", lambda page: page.parts.path),
    Column("url_query", "string", lambda page: page.parts.query or None),
    Column("fetch_time", "timestamp", lambda page: datetime.fromisoformat(page.facts.fetched_at)),
    Column("fetch_status", "int16", lambda page: page.facts.status),
    Column("fetch_redirect", "string", lambda page: page.facts.redirect_to or None),
    Column("content_digest", "string", lambda page: page.facts.payload_digest.removeprefix("sha1:") or None),
    Column("content_mime_type", "string", lambda page: page.facts.declared_type or None),
    Column("content_mime_detected", "string", lambda page: page.facts.content_type or None),
    Column("content_charset", "string", lambda page: page.facts.charset.upper() or None),
    Column(
        "content_languages",
        "string",
        lambda page: _ISO_639_3.get(page.document.language, page.document.language) or None,
    ),
    Column("content_truncated", "string", lambda page: page.facts.truncated or None),
    Column("warc_filename", "string", lambda page: f"archive/{page.facts.storage.file}"),
    Column("warc_record_offset", "int64", lambda page: page.facts.storage.offset),
    Column("warc_record_length", "int64", lambda page: page.facts.storage.length),
    Column("warc_segment", "string", lambda page: page.segment),
)
OURS = (
    Column("title", "string", lambda page: page.article.title or None),
    Column("description", "string", lambda page: page.article.description or None),
    Column("language", "string", lambda page: page.article.language or None),
    Column("language_declared", "string", lambda page: page.article.language_declared or None),
    Column("published", "timestamp", lambda page: _moment(page.article.published, page.fetched_at)),
    Column("modified", "timestamp", lambda page: _moment(page.article.modified, page.fetched_at)),
    Column("canonical", "string", lambda page: page.article.canonical or None),
    Column("depth", "int32", lambda page: page.facts.depth),
    Column("parent", "string", lambda page: page.facts.parent or None),
    Column("found_via", "string", lambda page: page.facts.found_via),
    Column("seed", "string", lambda page: page.facts.seed or None),
    Column("seed_metadata", "map", lambda page: list(page.facts.seed_metadata.items())),
    Column("duplicate_of", "string", lambda page: page.facts.duplicate_of or None),
    Column("near_duplicate_of", "string", lambda page: page.facts.near_duplicate_of or None),
    Column(
        "similarity",
        "float",
        lambda page: page.facts.similarity if page.facts.duplicate_of or page.facts.near_duplicate_of else None,
    ),
    Column("spam", "float", lambda page: page.facts.spam or None),
    Column("spam_signals", "string", lambda page: ", ".join(page.facts.spam_signals) or None),
    Column("words", "int32", lambda page: page.facts.words),
    Column("text_words", "int32", lambda page: page.article.text_words),
    Column("content_bytes", "int64", lambda page: page.facts.bytes),
    Column("outlinks", "int32", lambda page: len(page.article.links)),
    Column("directives", "string", lambda page: page.facts.directives or None),
    Column("usage", "string", lambda page: page.facts.usage or None),
    Column("lastmod", "timestamp", lambda page: _moment(page.facts.lastmod, page.fetched_at)),
    Column("worker", "int32", lambda page: page.facts.worker),
    Column("redirected_from", "list", lambda page: page.facts.redirected_from),
    Column("redirects", "list", lambda page: page.facts.redirects),
    Column("redirect_loop", "bool", lambda page: page.facts.redirect_loop),
    Column("meta", "string", lambda page: msgspec.json.encode(page.facts.meta).decode() if page.facts.meta else None),
    Column("connect_ms", "int32", lambda page: page.facts.connect_ms),
    Column("tls_ms", "int32", lambda page: page.facts.tls_ms),
    Column("first_byte_ms", "int32", lambda page: page.facts.first_byte_ms),
    Column("total_ms", "int32", lambda page: page.facts.total_ms),
)
_TEXT = Column("text", "string", lambda page: page.article.text)


def columns(*, with_text: bool) -> Sequence[Column]:
    """Return all columns, in order."""
    return (*COMMON_CRAWL, *OURS, *((_TEXT,) if with_text else ()))


def values_of(document: PageDocument, segment: str, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the values of one page by column."""
    page = _Page(document, segment)
    return {column.name: column.value(page) for column in columns}
