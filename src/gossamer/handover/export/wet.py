"""The texts as WARC: `conversion` records, as the WET files of Common Crawl.

One gzip member per record, WARC 1.1; each refers to the response that it was made from.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping

from isal import igzip_lib

from gossamer.archive.warc import GZIP_LEVEL, new_record_id, sha1_base32, target_uri, warcinfo_record
from gossamer.handover.export.documents import PageDocument


def wet_members(documents: Iterable[PageDocument], filename: str, about: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the members of a WET file: its description, then one record per page that has text."""
    info_id = new_record_id()
    yield warcinfo_record(filename=filename, date=time.time(), record_id=info_id, fields=about)
    for document in documents:
        if document.article.text:
            yield conversion_member(document, info_id)


def conversion_member(document: PageDocument, warcinfo_id: str) -> bytes:
    """Return the record of one page's text."""
    facts = document.facts
    article = document.article
    block = article.text.encode() + b"\n"
    said = f"WARC-Identified-Content-Language: {document.language}\r\n" if document.language else ""
    digest = sha1_base32(hashlib.sha1(block, usedforsecurity=False).digest())
    head = (
        f"WARC/1.1\r\nWARC-Type: conversion\r\nWARC-Record-ID: <{new_record_id()}>\r\n"
        f"WARC-Target-URI: {target_uri(facts.url)}\r\nWARC-Date: {facts.fetched_at}\r\n"
        f"WARC-Warcinfo-ID: <{warcinfo_id}>\r\nWARC-Refers-To: <{facts.storage.record_id}>\r\n"
        f"WARC-Block-Digest: {digest}\r\n{said}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return bytes(igzip_lib.compress(head.encode() + block + b"\r\n\r\n", GZIP_LEVEL, igzip_lib.COMP_GZIP))
