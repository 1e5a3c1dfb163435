from __future__ import annotations

import gzip
import hashlib
import io
from base64 import b32encode

import fastwarc.warc
import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.archive.warc import RefersTo, compose_exchange, new_record_id, stored_head, warc_date, warcinfo_record
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome, Truncation

from .samples import NOW, exchange, odd_exchanges

INFO_ID = new_record_id()


def composed(one: Exchange, duplicate_of: RefersTo | None = None) -> bytes:
    return compose_exchange(one, date=NOW, warcinfo_id=INFO_ID, duplicate_of=duplicate_of).data


def sha1(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


def read_back(data: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Return fields and block of every record as warcio reads them, digests checked."""
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise", verify_http=True):
        record.content_stream().read()
    blocks = ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    return [(dict(record.rec_headers.headers), record.raw_stream.read()) for record in blocks]


def test_request_and_response_are_written_with_their_fields() -> None:
    one = exchange()
    (request, request_block), (response, response_block) = read_back(composed(one))
    assert request_block == one.request_head
    assert response_block == one.response_head + one.body
    assert (request["WARC-Type"], response["WARC-Type"]) == ("request", "response")
    assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert response["WARC-Payload-Digest"] == sha1(one.body)
    assert response["WARC-Block-Digest"] == sha1(response_block)
    for fields in (request, response):
        assert fields["WARC-Target-URI"] == one.url
        assert fields["WARC-IP-Address"] == "192.0.2.1"
        assert fields["WARC-Warcinfo-ID"] == f"<{INFO_ID}>"
        assert fields["WARC-Date"] == "2023-11-14T22:13:20.123456Z"
        assert fields["WARC-Protocol"] == "http/1.1"
    assert response["Content-Type"] == "application/http; msgtype=response"
    assert "WARC-Truncated" not in response


def test_every_record_is_one_gzip_member() -> None:
    made = compose_exchange(exchange(), date=NOW, warcinfo_id=INFO_ID)
    assert gzip.decompress(made.data[: made.response_offset]).startswith(b"WARC/1.1\r\nWARC-Type: request")
    assert gzip.decompress(made.data[made.response_offset :]).startswith(b"WARC/1.1\r\nWARC-Type: response")


def test_truncation_is_said() -> None:
    (_, _), (response, _) = read_back(composed(exchange(truncated=Truncation.LENGTH)))
    assert response["WARC-Truncated"] == "length"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            b"Transfer-Encoding: chunked\r\nA: b\r\n",
            b"X-Crawler-Transfer-Encoding: chunked\r\nA: b\r\nContent-Length: 11\r\n",
        ),
        (
            b"Content-Length: 3\r\ntransfer-encoding:chunked\r\n",
            b"X-Crawler-transfer-encoding:chunked\r\nContent-Length: 11\r\n",
        ),
        (b"Content-Length: 3\r\nA: b\r\n", b"Content-Length: 3\r\nA: b\r\n"),
        (b"A: b\nC: d\r\n", b"A: b\r\nC: d\r\n"),
        (b"A: b\r\n\tc\r\n", b"A: b c\r\n"),
        (b"A: x\0y\r\nB: x\ry\r\nC: d\r\n", b"C: d\r\n"),
        (b"\r\nA: b\r\n \r\nC: d\r\n\xa0\r\n", b"A: b\r\nC: d\r\n"),
    ],
)
def test_heads_are_stored_with_one_blank_line_at_the_end(head: bytes, expected: bytes) -> None:
    assert stored_head(exchange(headers=head)) == b"HTTP/1.1 200 Some Reason\r\n" + expected + b"\r\n"


def test_http2_heads_become_http1_status_lines() -> None:
    one = exchange()
    one.http_version, one.response_head = "2", b"HTTP/2 404 \r\na: b\r\n\r\n"
    one.status, one.tls_version = 404, "TLSv1.3"
    assert stored_head(one) == b"HTTP/1.1 404 Not Found\r\na: b\r\n\r\n"
    text = gzip.decompress(composed(one))
    assert b"WARC-Protocol: h2\r\nWARC-Protocol: tls/1.3\r\n" in text


def test_the_same_bytes_become_a_revisit_and_other_bytes_do_not() -> None:
    first = compose_exchange(exchange(), date=NOW, warcinfo_id=INFO_ID)
    refers = RefersTo("http://www.example.com/first", NOW - 5, first.payload_digest, first.record_id)
    (_, _), (revisit, block) = read_back(composed(exchange(), refers))
    assert revisit["WARC-Type"] == "revisit"
    assert revisit["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert revisit["WARC-Refers-To-Target-URI"] == "http://www.example.com/first"
    assert revisit["WARC-Refers-To-Date"] == warc_date(NOW - 5)
    assert revisit["WARC-Refers-To"] == f"<{first.record_id}>"
    assert revisit["WARC-Payload-Digest"] == sha1(b"<p>body</p>")
    assert block == exchange().response_head
    other = compose_exchange(exchange(body=b"zipped otherwise"), date=NOW, warcinfo_id=INFO_ID, duplicate_of=refers)
    assert not other.is_revisit
    cut = compose_exchange(exchange(truncated=Truncation.LENGTH), date=NOW, warcinfo_id=INFO_ID, duplicate_of=refers)
    assert not cut.is_revisit, "the rest of a truncated body may differ"


def test_a_304_is_a_revisit_of_the_copy_that_is_stored() -> None:
    refers = RefersTo("http://www.example.com/a", NOW - 5, b"x" * 20)
    answer = exchange(status=304, body=b"", outcome=Outcome.NOT_MODIFIED)
    (_, _), (revisit, _) = read_back(composed(answer, refers))
    assert revisit["WARC-Profile"].endswith("/server-not-modified")
    assert revisit["WARC-Payload-Digest"] == "sha1:" + b32encode(b"x" * 20).decode()


def test_the_warcinfo_says_what_was_given_and_the_format() -> None:
    member = warcinfo_record(
        filename="a.warc.gz", date=NOW, record_id=INFO_ID, fields={"operator": "x\r\nWARC-Type: y"}
    )
    ((fields, block),) = read_back(member)
    assert fields["WARC-Filename"] == "a.warc.gz"
    assert block.startswith(b"operator: x WARC-Type: y\r\nformat: WARC File Format 1.1\r\nconformsTo: http://iipc")


@pytest.mark.parametrize("number", range(51))
def test_w02_nothing_breaks_the_framing(number: int) -> None:
    one = odd_exchanges()[number]
    records = read_back(composed(one))
    assert [fields["WARC-Type"] for fields, _ in records] == (["request"] if one.request_head else []) + ["response"]
    assert records[-1][1].endswith(b"\r\n\r\n" + one.body)
    quick = list(fastwarc.warc.ArchiveIterator(io.BytesIO(composed(one)), parse_http=True))
    assert len(quick) == len(records)


def test_w02_a_url_with_line_breaks_cannot_add_fields() -> None:
    (_, _), (response, _) = read_back(composed(exchange("http://x/\r\nWARC-Type: conversion\r\n\r\n \u00e9")))
    assert response["WARC-Target-URI"] == "http://x/%0D%0AWARC-Type:%20conversion%0D%0A%0D%0A%20%C3%A9"


def test_ids_are_uuids_and_differ() -> None:
    ids = {new_record_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(one[23] == "4" and len(one) == 45 for one in ids)
