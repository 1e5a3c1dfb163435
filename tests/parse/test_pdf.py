from __future__ import annotations

import time
import zlib

import pytest

from gossamer.parse.pdf import MAX_INFLATED_BYTES, pdf_hrefs


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
        (b"/URI (http://a.test/unclosed", []),
    ],
)
def test_links_are_found_in_the_open_and_in_object_streams(annotation: bytes, links: list[str]) -> None:
    assert pdf_hrefs(b"%PDF-1.4\n1 0 obj <<" + annotation + b">> endobj") == links
    assert pdf_hrefs(b"%PDF-1.5\n" + object_stream(b"1 0 <<" + annotation + b">>")) == links


def test_all_object_streams_are_read() -> None:
    content = b"%PDF-1.5\n" + b"".join(object_stream(b"/URI (http://a.test/%d)" % i) for i in range(300))
    assert len(pdf_hrefs(content)) == 300


def test_a_bomb_stops_at_the_cap() -> None:
    bomb = object_stream(b"/URI (http://a.test/early)" + b" " * (4 * MAX_INFLATED_BYTES) + b"/URI (http://a.test/late)")
    assert pdf_hrefs(b"%PDF-1.5\n" + bomb * 3) == ["http://a.test/early"]


@pytest.mark.parametrize("piece", [b"/URI (", b"/URI (\\", b"/URI ((", b"/ObjStm stream\n", b"/ObjStm ", b"/URI <4"])
def test_malice_costs_linear_time(piece: bytes) -> None:
    started = time.process_time()
    assert pdf_hrefs(b"%PDF-1.5\n" + piece * 200_000) == []
    assert time.process_time() - started < 2


def test_damaged_streams_are_passed_over() -> None:
    broken = b"/ObjStm >>\nstream\nnot deflate at all\nendstream\n"
    assert pdf_hrefs(broken + object_stream(b"/URI (http://a.test/)")) == ["http://a.test/"]
