"""The columns of a page in Parquet: those of Common Crawl's index, in its order, then ours.

If Common Crawl has no value (the default port of the scheme, the redirect target of a page
that is no redirect) there is none here either. `content_languages` has ISO 639-3 codes as
there, `language` the two-letter code. Dates are points in time: a day without a time of day is midnight UTC.
"""

from __future__ import annotations

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

# Name, and the type's name in pyarrow.
COMMON_CRAWL: tuple[tuple[str, str], ...] = (
    ("url_surtkey", "string"),
    ("url", "string"),
    ("url_host_name", "string"),
    ("url_host_tld", "string"),
    ("url_host_2nd_last_part", "string"),
    ("url_host_3rd_last_part", "string"),
    ("url_host_4th_last_part", "string"),
    ("url_host_5th_last_part", "string"),
    ("url_host_registry_suffix", "string"),
    ("url_host_registered_domain", "string"),
    ("url_host_private_suffix", "string"),
    ("url_host_private_domain", "string"),
    ("url_host_name_reversed", "string"),
    ("url_protocol", "string"),
    ("url_port", "int32"),
    ("url_path", "string"),
    ("url_query", "string"),
    ("fetch_time", "timestamp"),
    ("fetch_status", "int16"),
    ("fetch_redirect", "string"),
    ("content_digest", "string"),
    ("content_mime_type", "string"),
    ("content_mime_detected", "string"),
    ("content_charset", "string"),
    ("content_languages", "string"),
    ("content_truncated", "string"),
    ("warc_filename", "string"),
    ("warc_record_offset", "int64"),
    ("warc_record_length", "int64"),
    ("warc_segment", "string"),
)
OURS: tuple[tuple[str, str], ...] = (
    ("title", "string"),
    ("description", "string"),
    ("language", "string"),
    ("language_declared", "string"),
    ("published", "timestamp"),
    ("modified", "timestamp"),
    ("canonical", "string"),
    ("depth", "int32"),
    ("parent", "string"),
    ("found_via", "string"),
    ("seed", "string"),
    ("seed_metadata", "map"),
    ("duplicate_of", "string"),
    ("near_duplicate_of", "string"),
    ("similarity", "float"),
    ("spam", "float"),
    ("spam_signals", "string"),
    ("words", "int32"),
    ("content_bytes", "int64"),
    ("outlinks", "int32"),
    ("directives", "string"),
    ("usage", "string"),
    ("lastmod", "timestamp"),
    ("worker", "int32"),
    ("redirected_from", "list"),
    ("redirects", "list"),
    ("redirect_loop", "bool"),
    ("meta", "string"),
    ("connect_ms", "int32"),
    ("tls_ms", "int32"),
    ("first_byte_ms", "int32"),
    ("total_ms", "int32"),
)
TEXT = ("text", "string")

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


def columns_of(document: PageDocument, segment: str, *, with_text: bool) -> dict[str, Any]:
    """Return the values of one page by column."""
    values = {**_url_columns(document.facts.url), **_fetch_columns(document, segment), **_our_columns(document)}
    if with_text:
        values["text"] = document.article.text
    return values


def _url_columns(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    host = host_parts(host_of(url))
    tld, second, third, fourth, fifth = host.parts
    return {
        "url_surtkey": surt(url),
        "url": url,
        "url_host_name": host.name,
        "url_host_tld": tld,
        "url_host_2nd_last_part": second,
        "url_host_3rd_last_part": third,
        "url_host_4th_last_part": fourth,
        "url_host_5th_last_part": fifth,
        "url_host_registry_suffix": host.registry_suffix,
        "url_host_registered_domain": host.registered_domain,
        "url_host_private_suffix": host.private_suffix,
        "url_host_private_domain": host.private_domain,
        "url_host_name_reversed": host.reversed_name,
        "url_protocol": parts.scheme,
        "url_port": parts.port,
        "url_path": parts.path,
        "url_query": parts.query or None,
    }


def _fetch_columns(document: PageDocument, segment: str) -> dict[str, Any]:
    facts = document.facts
    language = document.language
    return {
        "fetch_time": datetime.fromisoformat(facts.fetched_at),
        "fetch_status": facts.status,
        "fetch_redirect": facts.redirect_to or None,
        "content_digest": facts.payload_digest.removeprefix("sha1:") or None,
        "content_mime_type": facts.declared_type or None,
        "content_mime_detected": facts.content_type or None,
        "content_charset": facts.charset.upper() or None,
        "content_languages": _ISO_639_3.get(language, language) or None,
        "content_truncated": facts.truncated or None,
        "warc_filename": f"archive/{facts.storage.file}",
        "warc_record_offset": facts.storage.offset,
        "warc_record_length": facts.storage.length,
        "warc_segment": segment,
    }


def _our_columns(document: PageDocument) -> dict[str, Any]:
    facts = document.facts
    article = document.article
    fetched_at = datetime.fromisoformat(facts.fetched_at).timestamp()
    return {
        "title": article.title or None,
        "description": article.description or None,
        "language": article.language or None,
        "language_declared": article.language_declared or None,
        "published": _moment(article.published, fetched_at),
        "modified": _moment(article.modified, fetched_at),
        "canonical": article.canonical or None,
        "depth": facts.depth,
        "parent": facts.parent or None,
        "found_via": facts.found_via,
        "seed": facts.seed or None,
        "seed_metadata": list(facts.seed_metadata.items()),
        "duplicate_of": facts.duplicate_of or None,
        "near_duplicate_of": facts.near_duplicate_of or None,
        "similarity": facts.similarity if facts.duplicate_of or facts.near_duplicate_of else None,
        "spam": facts.spam or None,
        "spam_signals": ", ".join(facts.spam_signals) or None,
        "words": article.words,
        "content_bytes": facts.bytes,
        "outlinks": len(article.links),
        "directives": facts.directives or None,
        "usage": facts.usage or None,
        "lastmod": _moment(facts.lastmod, fetched_at),
        "worker": facts.worker,
        "redirected_from": facts.redirected_from,
        "redirects": facts.redirects,
        "redirect_loop": facts.redirect_loop,
        "meta": msgspec.json.encode(facts.meta).decode() if facts.meta else None,
        "connect_ms": facts.connect_ms,
        "tls_ms": facts.tls_ms,
        "first_byte_ms": facts.first_byte_ms,
        "total_ms": facts.total_ms,
    }


def _moment(text: str, fetched_at: float) -> datetime | None:
    """Return the point in time that a date denotes; None if it denotes none, or lies after the fetch."""
    seconds = written_time(text, fetched_at) if text else 0.0
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
