"""Own cases of the URL standard, part by part: what a browser would request, for every kind of reference and host."""

from __future__ import annotations

import unicodedata

import ada_url
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.core.url.forms import canonical
from tests.amount import amount

BASE = "http://h.test/a/b/c?q=1#f"


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("d", "http://h.test/a/b/d"),
        ("./d", "http://h.test/a/b/d"),
        ("d/.", "http://h.test/a/b/d/"),
        ("d/..", "http://h.test/a/b/"),
        ("..", "http://h.test/a/"),
        ("../..", "http://h.test/"),
        ("../../../../d", "http://h.test/d"),
        ("/d", "http://h.test/d"),
        ("//i.test", "http://i.test/"),
        ("//i.test/d", "http://i.test/d"),
        ("?", "http://h.test/a/b/c?"),
        ("?r=2", "http://h.test/a/b/c?r=2"),
        ("#g", "http://h.test/a/b/c?q=1"),
        ("", "http://h.test/a/b/c?q=1"),
        ("d?r/../s", "http://h.test/a/b/d?r/../s"),
        ("d#r/../s", "http://h.test/a/b/d"),
        ("http:d", "http://h.test/a/b/d"),
        ("http:/d", "http://h.test/d"),
        ("https:d", "https://d/"),
        ("http:///i.test/d", "http://i.test/d"),
        ("\\\\i.test\\d", "http://i.test/d"),
        ("\\d\\e", "http://h.test/d/e"),
        ("d;e=1,2", "http://h.test/a/b/d;e=1,2"),
        ("d//e", "http://h.test/a/b/d//e"),
        ("d:e", None),
        ("./d:e", "http://h.test/a/b/d:e"),
    ],
)
def test_a_reference_is_resolved_against_its_page(reference: str, url: str | None) -> None:
    assert canonical(reference, BASE) == url


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("  \t http://h.test/a \n", "http://h.test/a"),
        ("ht\ntp://h.te\tst/a\rb", "http://h.test/ab"),
        ("\x01http://h.test/\x1f", "http://h.test/"),
        ("http://h.test/a b", "http://h.test/a%20b"),
        ("http://h.test/\u00e4?\u00e4", "http://h.test/%C3%A4?%C3%A4"),
        ("http://h.test/\U0001f577", "http://h.test/%F0%9F%95%B7"),
        ("http://h.test/\"<>`{}^|'", "http://h.test/%22%3C%3E%60%7B%7D%5E|'"),
        ("http://h.test/?\"<>`{}^|'", "http://h.test/?%22%3C%3E`{}^|%27"),
        ("http://h.test/%2F%2f%zz%", "http://h.test/%2F%2f%zz%"),
        ("http://h.test/%2e/a/%2E%2e/b", "http://h.test/b"),
        ("http://h.test/a/.%2e/b", "http://h.test/b"),
        ("http://h.test/a/...", "http://h.test/a/..."),
        ("http://h.test/a/.b", "http://h.test/a/.b"),
        ("http://h.test?a", "http://h.test/?a"),
        ("http://h.test#a", "http://h.test/"),
        ("http://h.test/\x7f\x00/", "http://h.test/%7F%00/"),
    ],
)
def test_characters_are_escaped_or_dropped_as_in_a_browser(reference: str, url: str) -> None:
    assert canonical(reference) == url


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("EXAMPLE.test", "example.test"),
        ("ex%41mple.test", "example.test"),
        ("a_b.test", "a_b.test"),
        ("-a-.test", "-a-.test"),
        ("h.test:", "h.test"),
        ("h.test:080", "h.test"),
        ("h.test:00081", "h.test:81"),
        ("h.test:65535", "h.test:65535"),
        ("a:b:c@h.test", "h.test"),
        ("a@b@h.test", "h.test"),
        ("@h.test", "h.test"),
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4.", "1.2.3.4"),
        ("0x10.1", "16.0.0.1"),
        ("010.1.1", "8.1.0.1"),
        ("1.2.3", "1.2.0.3"),
        ("4294967295", "255.255.255.255"),
        ("[1:2::0:0:3]", "[1:2::3]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[1::2:0:0:0:3]", "[1:0:0:2::3]"),
        ("[::1.2.3.4]", "[::102:304]"),
        ("[ABCD::]:80", "[abcd::]"),
    ],
)
def test_hosts_have_one_form(authority: str, host: str) -> None:
    assert canonical(f"http://{authority}/x") == f"http://{host}/x"


@pytest.mark.parametrize(
    "authority",
    [
        ":80",
        "@",
        "h.test:65536",
        "h.test:8x",
        "h.test:-1",
        "a b",
        "a<b",
        "a>b",
        "a^b",
        "a|b",
        "a%00b",
        "a%zzb",
        "a%2fb",
        "1.2.3.256",
        "1.2.3.4.5",
        "4294967296",
        "0x1g.1",
        "09.1",
        "[1:2]",
        "[1::2::3]",
        "[12345::]",
        "[::1.2.3.256]",
        "[::1]x",
        "[fe80::1%25eth0]",
        "::1",
    ],
)
def test_what_is_no_host_is_no_url(authority: str) -> None:
    assert canonical(f"http://{authority}/x") is None


@pytest.mark.parametrize(
    ("name", "ascii_name"),
    [
        ("b\u00fccher.test", "xn--bcher-kva.test"),
        ("B\u00dcCHER.test", "xn--bcher-kva.test"),
        ("bu\u0308cher.test", "xn--bcher-kva.test"),  # u and a combining diaeresis
        ("xn--bcher-kva.test", "xn--bcher-kva.test"),
        ("XN--BCHER-KVA.test", "xn--bcher-kva.test"),
        ("xn--a.test", "xn--a.test"),  # what is ASCII already is not decoded
        ("stra\u00dfe.test", "xn--strae-oqa.test"),
        ("\u03b2\u03cc\u03bb\u03bf\u03c2.test", "xn--nxasmm1c.test"),  # with a final sigma
        ("a\u3002test", "a.test"),  # an ideographic full stop
        ("a\uff0etest", "a.test"),  # a full-width one
        ("\uff45\uff58.test", "ex.test"),
        ("a\u00adb.test", "ab.test"),  # a soft hyphen
        ("\u2460.test", "1.test"),
        ("\u0645\u062b\u0627\u0644.test", "xn--mgbh0fb.test"),
    ],
)
def test_names_in_other_scripts_have_an_ascii_form(name: str, ascii_name: str) -> None:
    assert canonical(f"http://{name}/") == f"http://{ascii_name}/"


@pytest.mark.parametrize(
    "name",
    [
        "xn--a-\u00e4.test",  # not Punycode
        "\u0301a.test",  # begins with a combining mark
        "a\u200db.test",  # a joiner outside of its context
        "a\u0627.test",  # left-to-right and right-to-left in a label
        "\ufffd.test",
        "a\u2100b.test",  # becomes a/cb
    ],
)
def test_names_without_an_ascii_form_are_no_urls(name: str) -> None:
    assert canonical(f"http://{name}/") is None


def by_ada(text: str, base: str) -> str | None:
    """Return what the slower of our two parsers, which passes the public test suites, says of a URL."""
    try:
        url = ada_url.URL(text, base or None)
    except ValueError:
        return None
    if url.protocol not in ("http:", "https:"):
        return None
    url.username = url.password = url.hash = ""
    return str(url.href)


PIECES = st.sampled_from(
    [
        *"/\\?#@:.%[]|^ \t\n\0\x7f;&=+,",
        "http:",
        "https:",
        "ftp:",
        "//",
        "..",
        "%2e",
        "%zz",
        "0x7f",
        "08",
        "::1",
        "xn--",
        "xn--a-\u00e4",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join)


@settings(max_examples=amount(250, 1000))
@given(TEXTS, st.sampled_from(["", BASE, "https://u:p@h.test/.a/", "http://b\u00fccher.test/x?y"]))
def test_both_parsers_agree(text: str, base: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert canonical(text, base) == by_ada(text, base)


@settings(max_examples=amount(125, 500))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), min_size=1, max_size=3))
def test_both_parsers_agree_on_names_in_any_script(labels: list[str]) -> None:
    text = f"http://{'.'.join(labels)}/"
    assert canonical(text) == by_ada(text, "")


def test_both_parsers_agree_on_every_character_of_a_name() -> None:
    """With the ASCII letter before it most characters are judged alone; 40,000 of them are letters of one script."""
    seen = range(0x80, 0x30000, 7)
    texts = [f"http://a{chr(code)}.test/" for code in seen if unicodedata.category(chr(code)) != "Cs"]
    assert [text for text in texts if canonical(text) != by_ada(text, "")] == []
