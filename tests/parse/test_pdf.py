from __future__ import annotations

import time
import zlib

import pytest

from gossamer.parse.pdf.pdf import MAX_INFLATED_BYTES, MAX_STREAMS, pdf_links


def hrefs_of(content: bytes) -> list[str]:
    return pdf_links(content).hrefs


def flate_stream(text: bytes, dictionary: bytes = b"") -> bytes:
    data = zlib.compress(text)
    return b"8 0 obj\n<<%s/Filter/FlateDecode/Length %d>>stream\n%s\nendstream\n" % (dictionary, len(data), data)


def object_stream(objects: bytes) -> bytes:
    data = zlib.compress(objects)
    dictionary = b"<</Type /ObjStm /N 1 /First 5 /Filter /FlateDecode /Length %d>>" % len(data)
    return b"7 0 obj\n" + dictionary + b"\nstream\r\n" + data + b"\nendstream\nendobj\n"


@pytest.mark.parametrize(
    ("annotation", "links"),
    [
        (b"/A <</S /URI /URI (http://a.test/x)>>", ["http://a.test/x"]),
        (b"/URI(https://a.test/p\\(1\\)?q=\\101)", ["https://a.test/p(1)?q=A"]),
        (b"/URI (http://a.test/w(2))", ["http://a.test/w(2)"]),
        (b"/URI <687474703a2f2f612e746573742f>", ["http://a.test/"]),
        (b"/URI (\xfe\xff" + "http://b.test/\u00e9".encode("utf-16be") + b")", ["http://b.test/\u00e9"]),
        (b"/URI (http://a.test/caf\xe9)", ["http://a.test/caf\u00e9"]),
        (b"/URI (http://a.test/one\\\ntwo)", ["http://a.test/onetwo"]),
        (b"/URI (mailto:a@b.c) /URI (javascript:x) /URI (page.html)", []),
        (b"/URI (http://a.test/#1) /URI (http://a.test/#2)", ["http://a.test/"]),
        (b"/URI (http://a.test/unclosed", ["http://a.test/unclosed"]),
    ],
)
def test_links_are_found_in_the_open_and_in_object_streams(annotation: bytes, links: list[str]) -> None:
    assert hrefs_of(b"%PDF-1.4\n1 0 obj <<" + annotation + b">> endobj") == links
    assert hrefs_of(b"%PDF-1.5\n" + object_stream(b"1 0 <<" + annotation + b">>")) == links


def test_all_object_streams_are_read() -> None:
    content = b"%PDF-1.5\n" + b"".join(object_stream(b"/URI (http://a.test/%d)" % i) for i in range(300))
    assert len(hrefs_of(content)) == 300


def test_a_bomb_stops_at_the_cap() -> None:
    bomb = object_stream(b"/URI (http://a.test/early)" + b" " * (4 * MAX_INFLATED_BYTES) + b"/URI (http://a.test/late)")
    found = pdf_links(b"%PDF-1.5\n" + bomb * 3)
    assert found.hrefs == ["http://a.test/early"]
    assert found.problem == "pdf: more than 16 MiB inflated; what follows was not searched"


@pytest.mark.timed
@pytest.mark.parametrize(
    "piece", [b"/URI (", b"/URI (\\", b"/URI ((", b"/ObjStm stream\n", b"/ObjStm ", b"/URI <4", b"://", b"http:/"]
)
def test_malice_costs_linear_time(piece: bytes) -> None:
    started = time.process_time()
    assert hrefs_of(b"%PDF-1.5\n" + piece * 200_000) == []
    assert time.process_time() - started < 2


def test_damaged_streams_are_passed_over() -> None:
    broken = b"/ObjStm >>\nstream\nnot deflate at all\nendstream\n"
    assert hrefs_of(broken + object_stream(b"/URI (http://a.test/)")) == ["http://a.test/"]


def test_urls_are_found_wherever_they_are_written() -> None:
    metadata = b'<rdf:RDF xmlns:pdf="http://ns.test/1.3/"><dc:source>https://a.test/meta</dc:source></rdf:RDF>'
    page = b"BT (see HTTP://a.test/page?x=1&y=2.) Tj (ftp://no.test/) Tj ET"
    content = b"%PDF-1.4\n" + metadata + flate_stream(page) + b"% https://a.test/comment,\n"
    assert hrefs_of(content) == ["https://a.test/meta", "https://a.test/comment", "HTTP://a.test/page?x=1&y=2"]


@pytest.mark.parametrize("kind", [b"/Subtype/Image", b"/Length1 9", b"/Subtype /Type1C", b"/N 3"])
def test_streams_without_text_are_omitted(kind: bytes) -> None:
    assert hrefs_of(b"%PDF-1.4\n" + flate_stream(b"http://www.profile.test/", kind)) == []


def test_object_streams_come_first() -> None:
    large = flate_stream(b"x" * MAX_INFLATED_BYTES)
    assert hrefs_of(b"%PDF-1.5\n" + large + object_stream(b"/URI (http://a.test/)")) == ["http://a.test/"]


def test_what_a_stream_holds_before_it_breaks_is_kept() -> None:
    text = b"".join(b"(http://a.test/%d) %d\n" % (number, number * 2654435761 % 2**32) for number in range(5000))
    whole = flate_stream(text)
    broken = whole[: len(whole) // 2] + b"\nendstream"
    assert 500 < len(hrefs_of(broken)) < 5000
    corrupt = bytearray(whole)
    corrupt[len(whole) // 2 : len(whole) // 2 + 200] = b"\xff" * 200
    assert 500 < len(hrefs_of(bytes(corrupt))) < 5000


def test_more_streams_than_are_searched_are_reported() -> None:
    found = pdf_links(flate_stream(b"x") * (MAX_STREAMS + 1))
    assert found.problem == "pdf: more than 4096 streams; the others were not searched"


def test_an_encrypted_file_is_reported() -> None:
    assert "encrypted" in pdf_links(b"%PDF-1.6\ntrailer <</Encrypt 5 0 R>>").problem


ONE_LINK = b"/URI (http://a.test/x) " + b" ".join(b"%d" % number for number in range(1500))


@pytest.mark.parametrize("spoilt", [b"\xff" * 4, b""], ids=["wrong", "missing"])
def test_an_object_stream_that_breaks_at_its_end_is_read_up_to_there(spoilt: bytes) -> None:
    packed = zlib.compress(ONE_LINK)
    assert pdf_links(b"1 0 obj<</Type/ObjStm>>stream\n" + packed[:-4] + spoilt + b"endstream").hrefs == [
        "http://a.test/x"
    ]


def test_an_object_stream_is_read_up_to_a_fault_in_its_middle() -> None:
    packed = bytearray(zlib.compress(ONE_LINK))
    packed[1500:] = b"\xff" * 500
    assert pdf_links(b"1 0 obj<</Type/ObjStm>>stream\n" + packed + b"endstream").hrefs == ["http://a.test/x"]


@pytest.mark.timed
@pytest.mark.parametrize("piece", [b"/URI(", b"/URI((", b"://", b"http://x ", b'xmlns="http://a '])
def test_a_bomb_of_what_looks_like_links_is_searched_in_part(piece: bytes) -> None:
    bomb = b"1 0 obj<</Type/ObjStm>>stream\n" + zlib.compress(piece * (16_000_000 // len(piece))) + b"endstream"
    begun = time.process_time()
    found = pdf_links(bomb)
    assert time.process_time() - begun < 0.8  # up to 3 s for all of it
    assert found.problem == "pdf: more than 100000 places that look like a link; what follows was not searched"


@pytest.mark.parametrize("length", [10, 4_000, 20_000])
def test_a_string_is_a_link_if_it_is_no_longer_than_a_url_can_be(length: int) -> None:
    escaped = b"/URI(http://a.test/" + b"x" * length + rb"\(1\)(y))"
    found = pdf_links(b"1 0 obj<<" + escaped + b">>").hrefs
    assert ("http://a.test/" + "x" * length + "(1)(y)" in found) is (length < 9_000)


@pytest.mark.timed
def test_strings_full_of_parentheses_do_not_take_long() -> None:
    part = b"/URI(" + b"~>(/Type /ObjStm)" * 654
    begun = time.process_time()
    pdf_links(b"%PDF-1.7\n" + part * 1_400)  # 16 MB
    assert time.process_time() - begun < 2  # 0.3 s; character by character it took 1 s
