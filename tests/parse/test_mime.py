from __future__ import annotations

import pytest

from gossamer.parse.charset import canonical_charset
from gossamer.parse.mime import NO_TYPE, combined_mime_type, parse_mime_type

from . import vectors


def test_the_public_cases_for_one_type_hold() -> None:
    known = vectors.load("http_content_type.json")
    for case in [*known["mime"], *known["generated"]]:
        if isinstance(case, str):
            continue
        parsed = parse_mime_type(case["input"])
        assert (None if parsed is NO_TYPE else str(parsed)) == case["output"], case
        if "encoding" in case:
            assert canonical_charset(parsed.charset) == (case["encoding"] or "").lower(), case


def test_the_public_cases_for_several_headers_hold() -> None:
    for case in vectors.load("http_content_type.json")["content_type"]:
        combined = combined_mime_type(case["contentType"])
        assert str(combined) == case["mimeType"], case
        assert canonical_charset(combined.charset) == (case["encoding"] or "").lower(), case


@pytest.mark.parametrize(
    ("header", "essence", "charset"),
    [
        ("text/html", "text/html", ""),
        ("Text/HTML; Charset=UTF-8", "text/html", "UTF-8"),
        ('text/html; charset="gb k"', "text/html", "gb k"),
        ("nonsense", "", ""),
        ("", "", ""),
    ],
)
def test_a_header_is_read(header: str, essence: str, charset: str) -> None:
    found = combined_mime_type([header])
    assert (found.essence, found.charset) == (essence, charset)
