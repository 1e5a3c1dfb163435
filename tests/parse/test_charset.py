from __future__ import annotations

import pytest
import turbohtml
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parse.html.html import parse_html
from gossamer.parse.types.charset import canonical_charset, decode_html, decode_in_pieces, decode_text, html_charset


@pytest.mark.parametrize(
    "label", ["zip", "rot13", "idna", "utf-7", "../../etc", "utf_8_sig", "unicode_escape", "punycode", "gbk\0", "é", ""]
)
def test_a_label_that_the_whatwg_does_not_know_names_nothing(label: str) -> None:
    assert canonical_charset(label) == ""
    document = parse_html("<title>caf\u00e9</title>".encode(), label)
    assert (document.title, document.charset) == ("caf\u00e9", "utf-8")
    assert decode_text("caf\u00e9".encode(), label) == ("caf\u00e9", "utf-8")


@pytest.mark.parametrize(
    ("label", "name"),
    [("latin1", "windows-1252"), (" UTF8 ", "utf-8"), ("x-sjis", "shift_jis"), ("hz-gb-2312", "replacement")],
)
def test_a_label_means_what_the_whatwg_says(label: str, name: str) -> None:
    assert canonical_charset(label) == name


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        (b"<meta charset=gbk>", "gbk"),
        (b"<META CHARSET = 'GBK' >", "gbk"),
        (b'<meta\n\fcharset\t=\r"x-gbk"/>', "gbk"),
        (b"<meta/charset=gbk>", "gbk"),
        (b"<meta a b=c charset=gbk charset=big5>", "gbk"),
        (b"<meta name=charset content=gbk>", "utf-8"),
        (b"<metacharset=gbk>", "utf-8"),
        (b"<meta http-equiv=content-type content='text/html; charset=gbk'>", "gbk"),
        (b"<meta content='text/html;charset = \"gbk\" x' http-equiv=Content-Type>", "gbk"),
        (b"<meta http-equiv=content-type content='x charset charset=gbk;y'>", "gbk"),
        (b"<meta content='text/html; charset=gbk'>", "utf-8"),
        (b"<meta http-equiv=refresh content='1; charset=gbk'>", "utf-8"),
        (b"<meta charset=nonsense><meta charset=gbk>", "gbk"),
        (b"<meta charset=gbk><meta charset=big5>", "gbk"),
        (b"<!-- <meta charset=gbk> --><meta charset=big5>", "big5"),
        (b"<!--><meta charset=gbk>", "gbk"),
        (b"<a title='<meta charset=gbk>'><meta charset=big5>", "big5"),
        (b"</p title='<meta charset=gbk>'><meta charset=big5>", "big5"),
        (b"<?x <meta charset=gbk>", "utf-8"),
        (b"<meta charset=utf-16le>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b" " * 1000 + b"<meta charset=gbk>", "gbk"),
        (b" " * 1100 + b"<meta charset=gbk>", "gbk"),  # late, but before the first text
    ],
)
def test_a_page_declares_its_charset_in_a_meta_element(head: bytes, charset: str) -> None:
    assert parse_html(head + "<p>\u00e9\u4e2d".encode()).charset == charset


PAGE = '<title>caf\u00e9</title><a href="/caf\u00e9">x</a>'


@pytest.mark.parametrize(
    ("content", "header", "charset"),
    [
        (b"\xff\xfe" + PAGE.encode("utf-16le"), "utf-8", "utf-16le"),
        (b"\xfe\xff" + PAGE.encode("utf-16be"), "utf-8", "utf-16be"),
        (b"\xef\xbb\xbf" + PAGE.encode(), "windows-1252", "utf-8"),
        (PAGE.encode("utf-16le"), "utf-8", "utf-16le"),
        (PAGE.encode("utf-16be"), "", "utf-16be"),
        (PAGE.encode("latin-1"), "latin1", "windows-1252"),
        (b"<meta charset=utf-8>" + PAGE.encode("latin-1"), "latin1", "windows-1252"),
        (b"<meta charset=latin1>" + PAGE.encode("latin-1"), "", "windows-1252"),
        (b"<meta charset=rot13>" + PAGE.encode(), "", "utf-8"),
        (PAGE.encode(), "", "utf-8"),
    ],
)
def test_mark_then_header_then_meta_then_content_decides(content: bytes, header: str, charset: str) -> None:
    document = parse_html(content, header)
    assert (document.charset, document.title, document.hrefs) == (charset, "caf\u00e9", ["/caf\u00e9"])


def test_the_content_decides_if_nothing_is_declared() -> None:
    russian = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
    assert decode_text(russian.encode("windows-1251"), "") == (russian, "windows-1251")
    assert decode_html(f"<p>{russian}".encode("windows-1251"), "")[1] == "windows-1251"
    assert decode_html(f"<p>charset {russian}".encode("windows-1251"), "")[1] == "windows-1251", "the word alone"


@pytest.mark.parametrize("charset", ["utf-8", "utf-16le", "gbk", "big5", "shift_jis", "replacement", ""])
def test_text_can_always_be_written_as_utf8(charset: str) -> None:
    junk = b"\xc0\xaf\xed\xa0\x80\xff\x00\xd8\x00\xdc a \x00\xd8"
    decode_text(junk, charset)[0].encode("utf-8")


PIECES = st.sampled_from(
    [
        b"<!DOCTYPE html>",
        b'<?xml version="1.0" encoding="iso-8859-1"?>',
        b"\n<html lang=de>",
        b"<head>",
        b"<link rel=next href=x>",
        b"<title>Charset?</title>",
        b'<meta name="viewport" content="x">',
        b'<meta charset="UTF-8" />',
        b"<meta charset=iso-8859-1>",
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">',
        b"<!-- <meta charset=utf-8> -->",
        b"<p>text",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=7).map(b"".join), min_size=1, max_size=4))
def test_a_page_has_its_charset_whatever_was_read_before(pages: list[bytes]) -> None:
    for page in pages:
        found = (turbohtml.parse(page, detect_encoding=False).encoding or "").lower()
        assert html_charset(page, "") == found


PARTS = ("<a>", "\n", "http://a.test/", "日本語", "中文<b>", "\U0001f600", "é", "привет", "&amp;", " ")
CODECS = {
    "utf-8": "utf-8",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "gb18030": "gb18030",
    "gbk": "gbk",
    "shift_jis": "shift_jis",
    "iso-2022-jp": "iso2022_jp",
    "big5": "big5",
    "euc-jp": "euc_jp",
    "euc-kr": "euc_kr",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
}


@given(st.lists(st.sampled_from(PARTS), max_size=60), st.sampled_from(sorted(CODECS)), st.integers(32, 200))
def test_a_text_in_pieces_is_the_same_text(parts: list[str], charset: str, size: int) -> None:
    # A place to divide it in each piece: a piece of 32 bytes has one if the longest part is followed by one.
    content = "".join(f"{part}<\n" for part in parts).encode(CODECS[charset], "ignore")
    assert "".join(decode_in_pieces(content, charset, size)) == decode_text(content, charset)[0]
    assert all(len(piece) <= size for piece in decode_in_pieces(content, charset, size))


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"\xef\xbb\xbfa", b"caf\xe9", "é".encode(), b"\xfe\xff\x00a", b"a"]
)
def test_pieces_have_the_charset_of_the_whole(content: bytes) -> None:
    assert "".join(decode_in_pieces(content, "", 2)) == decode_text(content, "")[0]


@pytest.mark.parametrize("charset", sorted(CODECS))
def test_without_a_place_to_divide_a_text_it_is_divided_all_the_same(charset: str) -> None:
    pieces = list(decode_in_pieces(b"\x81\x40" * 50_000, charset, 1000))
    assert len(pieces) >= 100
    assert max(map(len, pieces)) <= 2000
