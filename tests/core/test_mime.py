from __future__ import annotations

import pytest

from gossamer.core.content.mime import NO_TYPE, combined_mime_type, parse_mime_type


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
    found = combined_mime_type((header,))
    assert (found.essence, found.charset) == (essence, charset)


@pytest.mark.parametrize(
    ("text", "serialized"),
    [
        ("text/html", "text/html"),
        (" \t\r\ntext/html \n", "text/html"),
        ("TEXT/HTML;CHARSET=GBK", "text/html;charset=GBK"),
        ("text/html;charset=gbk;charset=utf-8", "text/html;charset=gbk"),
        ("text/html; a = b", "text/html"),
        ("text/html;a=b c", 'text/html;a="b c"'),
        ("text/html; ;;a=b;", "text/html;a=b"),
        ("text/html;a", "text/html"),
        ("text/html;a=", "text/html"),
        ("text/html;=b", "text/html"),
        ('text/html;a=""', 'text/html;a=""'),
        ('text/html;a="b', "text/html;a=b"),
        ('text/html;a="b"c;d=e', "text/html;a=b;d=e"),
        ('text/html;a="b\\"c\\d"', 'text/html;a="b\\"cd"'),
        ('text/html;a="\\', 'text/html;a="\\\\"'),
        ("text/html;a='b'", "text/html;a='b'"),
        ('text/html;a="b;c=d"', 'text/html;a="b;c=d"'),
        ("text/html;a=\u00e9", 'text/html;a="\u00e9"'),
        ("text/html;a=\u20ac;b=c", "text/html;b=c"),
        ("text/html;\u00e9=a;b=c", "text/html;b=c"),
        ("text/html,text/plain", None),
        ("text /html", None),
        ("text/ html", None),
        ("text/", None),
        ("/html", None),
        ("text", None),
        ("te(xt/html", None),
        ("text/ht\u00e9ml", None),
        ("", None),
        (";charset=gbk", None),
        ("x-9+a.b/vnd.c-d", "x-9+a.b/vnd.c-d"),
    ],
)
def test_one_type_is_read_by_the_standard(text: str, serialized: str | None) -> None:
    parsed = parse_mime_type(text)
    assert (None if parsed is NO_TYPE else str(parsed)) == serialized


@pytest.mark.parametrize(
    ("headers", "serialized"),
    [
        (["text/html", "text/plain"], "text/plain"),
        (["text/plain, text/html"], "text/html"),
        (["text/html;charset=gbk", "text/html"], "text/html;charset=gbk"),
        (["text/html;charset=gbk", "text/html;charset=big5"], "text/html;charset=big5"),
        (["text/html;charset=gbk", "text/html;a=b"], "text/html;a=b;charset=gbk"),
        (["text/html;charset=gbk", "text/plain", "text/html"], "text/html"),
        (["text/html;charset=gbk", "nonsense"], "text/html;charset=gbk"),
        (["text/html;charset=gbk", "*/*"], "text/html;charset=gbk"),
        (['text/html;a="b,c"'], 'text/html;a="b,c"'),
        (['text/html;a="', '",text/plain'], "text/plain"),
        (['text/html;a="', "text/plain"], 'text/html;a=", text/plain"'),
        ([",text/html,"], "text/html"),
    ],
)
def test_the_last_type_counts_and_inherits_the_charset(headers: list[str], serialized: str) -> None:
    assert str(combined_mime_type(tuple(headers))) == serialized
