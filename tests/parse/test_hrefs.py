from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parse.html.hrefs import clean_hrefs


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (["/a", "/b", "/a", "/a#x"], ["/a", "/b"]),
        (["#top", "", "  ", "#"], []),
        (["  /a\n", "/a"], ["/a"]),
        (["/a\tb\nc", "\x00\x1f/d\x0c"], ["/abc", "/d"]),
        (
            ["javascript:void(0)", "mailto:a@b.c", "data:,x", "tel:1", "blob:x", "about:blank", "ftp://x/", "ws://x/"],
            [],
        ),
        (["java\nscript:alert(1)", "  JAVASCRIPT:x"], []),
        (["HTTP://x/", "https:/y", "http:z"], ["HTTP://x/", "https:/y", "http:z"]),
        (["a:b/c", "/x:y", "?q=a:b", "./a:b"], ["/x:y", "?q=a:b", "./a:b"]),
        (["1:2"], ["1:2"]),
        (["?"], ["?"]),
        (["b?d #e", "b #e", "b\x01 \t\n #", " #e", "b ", "b \t"], ["b?d%20", "b%20", "b%01%20%20", "b"]),
        (["/" + "a" * 20_000], []),
        (["/\u00a0x", "/caf\u00e9"], ["/\u00a0x", "/caf\u00e9"]),
    ],
)
def test_hrefs_are_cleaned(raw: list[str], kept: list[str]) -> None:
    assert clean_hrefs(raw) == kept


@given(st.lists(st.text(max_size=30), max_size=20))
def test_cleaning_twice_changes_nothing(raw: list[str]) -> None:
    once = clean_hrefs(raw)
    assert clean_hrefs(once) == once
    assert len(set(once)) == len(once)
    assert not any("#" in href or "\n" in href or href != href.strip(" \t\r\n") for href in once)
