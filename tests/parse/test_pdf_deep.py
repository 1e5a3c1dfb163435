from __future__ import annotations

import sys
import zlib

import pytest

from gossamer.model.errors import UsageError
from gossamer.model.exchanges import Exchange
from gossamer.model.records import Outcome
from gossamer.parse.dispatch import parse_exchange
from gossamer.parse.pdf.deep import DeepLimits, check_deep, read_deep
from gossamer.parse.pdf.pdf import pdf_links

KERNED = b"BT /F1 12 Tf 20 100 Td [(Report. See htt) -20 (ps://a.test/kerned)] TJ ET"
COMPRESSED_LINK = b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(http://a.test/noted)>>>>"


def pdf(page: bytes = KERNED, *, pages: int = 1) -> bytes:
    """Return a file of equal pages."""
    data = zlib.compress(page)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join([b"3 0 R"] * pages), pages),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Annots[5 0 R]"
        b"/Resources<</Font<</F1 6 0 R>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(data), data),
        COMPRESSED_LINK,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Title(A report)>>",
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer <</Size %d/Root 1 0 R/Info 7 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)


def answer(content: bytes, content_type: str = "application/pdf", url: str = "http://a.test/x") -> Exchange:
    return Exchange(url=url, outcome=Outcome.OK, status=200, headers=[("content-type", content_type)], content=content)


def test_text_title_and_kerned_links_are_read() -> None:
    assert "https://a.test/kerned" not in pdf_links(pdf()).hrefs
    found = read_deep(pdf())
    assert (found.title, found.text.strip()) == ("A report", "Report. See https://a.test/kerned")
    assert found.hrefs == ["http://a.test/noted", "https://a.test/kerned"]
    assert found.problem == ""


def test_a_deep_look_adds_to_what_patterns_find() -> None:
    shallow = parse_exchange(answer(pdf()), want_text=True, want_pdf_links=True)
    assert (shallow.hrefs, shallow.text) == (["http://a.test/noted"], "")
    deep = parse_exchange(answer(pdf()), want_text=True, want_pdf_links=True, want_deep_pdf=True)
    assert deep.hrefs == ["http://a.test/noted", "https://a.test/kerned"]
    assert (deep.title, deep.words, deep.problem) == ("A report", 3, "")


def test_a_broken_file_is_reported_and_its_links_are_still_found() -> None:
    document = parse_exchange(
        answer(b"%PDF-1.4\n(http://a.test/left)"), want_text=True, want_pdf_links=True, want_deep_pdf=True
    )
    assert document.hrefs == ["http://a.test/left"]
    assert document.problem.startswith("pdf: ")


def test_memory_is_bounded() -> None:
    bomb = pdf(b" " * 60_000_000)
    assert read_deep(bomb, DeepLimits(memory_bytes=120_000_000)).problem == "pdf: pages that could not be read: 1 of 1"


@pytest.mark.timed
def test_reading_stops_in_time_and_keeps_what_it_has() -> None:
    found = read_deep(pdf(b"BT /F1 12 Tf (some words) Tj ET " * 500, pages=4000), DeepLimits(read_s=0.3))
    assert "pages that were read: " in found.problem
    assert found.text.startswith("some words")


def test_a_reader_that_does_not_end_is_killed() -> None:
    slow = pdf(b"BT /F1 12 Tf (some words) Tj ET " * 500, pages=4000)
    assert read_deep(slow, DeepLimits(wall_s=0.5)).problem == "pdf: not read within 0.5 s"
    assert read_deep(slow, DeepLimits(cpu_s=1)).problem.startswith("pdf: its reader ended with status -")


def test_a_contradiction_is_refused() -> None:
    check_deep(parses_pdf=True)
    with pytest.raises(UsageError, match="contradicts --no-parse-pdf-links"):
        check_deep(parses_pdf=False)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)  # as if it were not installed
    with pytest.raises(UsageError, match=r"needs pypdf, which is not installed: \S*pip install 'gossamer\[pdf\]'"):
        check_deep(parses_pdf=True)
