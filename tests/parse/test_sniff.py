from __future__ import annotations

import random

import pytest

from gossamer.parse.types.sniff import sniff_type

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("declared", "content", "expected"),
    [
        ("text/html", b"<!doctype html><p>x", "text/html"),
        ("text/html", b"", "text/html"),
        ("text/html", b"just words", "text/html"),
        ("text/html", b"  \n<p>\0\0\0\0\0\0\0", "text/html"),
        ("text/html", b"%PDF-1.7\n...", "application/pdf"),
        ("text/html", PNG, "image/png"),
        ("text/html", b"\x7fELF\2\1\1" + b"\0" * 500, "application/octet-stream"),
        ("text/html", b"\1\2\3\4\5\6\7 <html>", "application/octet-stream"),
        ("text/html", "<p>x".encode("utf-16le"), "text/html"),
        ("text/html", b"\xff\xfe" + "p x".encode("utf-16le"), "text/html"),
        ("text/html", b"BMW is a maker of cars", "text/html"),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html>", "application/xhtml+xml"),
        ("text/plain", b"<html> is a tag", "text/plain"),
        ("text/plain", b"\x1f\x8b\x08\0\0", "application/gzip"),
        ("text/xml", b"<?xml version='1.0'?><rss><item>", "text/xml"),
        ("application/xml", b"<?xml?><!-- x --><html xmlns='...'>", "application/xhtml+xml"),
        ("application/pdf", b"%PDF-1.7", "application/pdf"),
        ("image/png", b"<html>", "image/png"),
        ("", b"<!DOCTYPE html><p>", "text/html"),
        ("", b"\xef\xbb\xbf <HTML>", "text/html"),
        ("", b"<!-- x -->", "text/html"),
        ("", b"<banana>", "text/plain"),
        ("", b"<?xml version='1.0'?><urlset>", "text/xml"),
        ("", b"<?xml version='1.0'?><html>", "application/xhtml+xml"),
        ("*/*", b"%PDF-1.4", "application/pdf"),
        ("", b"RIFF\1\2\3\4WEBPVP8", "image/webp"),
        ("", b"\0\0\0\x18ftypmp42", "video/mp4"),
        ("text/plain", b"\0\0\0\x20ftypisom", "video/mp4"),
        ("", b"hello", "text/plain"),
        ("", b"hello\0\0\0\0", "application/octet-stream"),
    ],
)
def test_type_by_header_and_content(declared: str, content: bytes, expected: str) -> None:
    assert sniff_type(declared, content) == expected


def test_random_bytes_are_never_html() -> None:
    source = random.Random(7)
    for _ in range(200):
        content = bytes([source.randrange(0x80, 0x100)]) + source.randbytes(2047)
        assert sniff_type("text/html", content) not in ("text/html", "text/plain")
