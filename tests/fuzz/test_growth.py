"""Twice the input takes about twice the time, for every reader and every shape that is known to hurt one."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from gossamer.core.robots import parse_robots
from gossamer.core.traps import is_dated, shape_trap
from gossamer.core.url import canonical, key_of, links_from
from gossamer.parse.fingerprint import text_fingerprint
from gossamer.parse.html import parse_html
from gossamer.parse.pdf import pdf_links
from gossamer.parse.sitemap import parse_sitemap

Reader = Callable[[int], object]

SHAPES: dict[str, Reader] = {
    "url of dots": lambda n: canonical("http://a.test/" + "../" * min(n, 1300)),
    "key of escapes": lambda n: key_of("http://a.test/?" + "%41&" * n),
    "many links": lambda n: links_from("http://a.test/", [f"/{k}" for k in range(n)]),
    "repeated segments": lambda n: shape_trap("http://a.test" + "/a" * n),
    "dates": lambda n: is_dated("http://a.test/?year=2020" + "&y=2020" * n),
    "robots rules": lambda n: parse_robots(b"User-agent: *\n" + b"Disallow: /a*b*c\n" * n, "gossamer").is_allowed(
        "/a" * 99
    ),
    "robots stars": lambda n: parse_robots(b"User-agent: *\nDisallow: /" + b"*a" * 50, "gossamer").is_allowed(
        "/" + "a" * n
    ),
    "open tags": lambda n: parse_html(b"<div>" * n),
    "open formatting": lambda n: parse_html(b"<b><p>" * n),
    "open tables": lambda n: parse_html(b"<table><tr><td>" * n),
    "attributes": lambda n: parse_html(b"<a " + b"".join(b"a%d=x " % k for k in range(n)) + b">"),
    "same attributes": lambda n: parse_html(b"<a " + b"href=x " * n + b">"),
    "unclosed comment": lambda n: parse_html(b"<!--" * n),
    "entities": lambda n: parse_html(b"&amp&lt;&#x41;" * n),
    "anchors": lambda n: parse_html(b"<a href=x>" * n),
    "links": lambda n: parse_html(b"<link rel=next href=x>" * n),
    "bases": lambda n: parse_html(b"<base href=x>" * n),
    "pdf parentheses": lambda n: pdf_links(b"/URI (" * n),
    "pdf nested": lambda n: pdf_links(b"/URI (" + b"(" * n),
    "pdf escapes": lambda n: pdf_links(b"/URI (" + b"\\" * n),
    "pdf streams": lambda n: pdf_links(b"/ObjStm stream\nx\x9c" * n),
    "sitemap entries": lambda n: parse_sitemap(b"<urlset>" + b"<url><loc>http://a.test/</loc></url>" * n),
    "sitemap nesting": lambda n: parse_sitemap(b"<urlset>" + b"<url>" * n),
    "sitemap text": lambda n: parse_sitemap(b"<urlset><url><loc>" + b"x&amp;" * n),
    "sitemap lines": lambda n: parse_sitemap(b"http://a.test/\n" * n),
    "fingerprint": lambda n: text_fingerprint(b"path and more " * n, "http://a.test/path/and/more?x=path"),
}
MIN_S = 0.02
GROWTH = 9.0  # for four times the input: quadratic would be 16


def cpu_s(reader: Reader, count: int) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.thread_time()
        reader(count)
        best = min(best, time.thread_time() - started)
    return best


@pytest.mark.parametrize("name", SHAPES)
def test_time_grows_with_the_input(name: str) -> None:
    reader, count = SHAPES[name], 250
    while cpu_s(reader, count) < MIN_S and count < 60_000:
        count *= 2
    assert cpu_s(reader, 4 * count) < GROWTH * max(cpu_s(reader, count), MIN_S / 2)
