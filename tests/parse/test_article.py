"""What a page says, to a search engine."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parse.text.article import MAX_LINKS, MAX_TEXT_CHARS, Article, Heading, PageSource, read_article

NOW = 1_780_000_000.0
PARAGRAPH = "The old bridge, which was built in 1850, has been closed for repairs since Monday, the council said."
HOSTILE_BYTES = 2_000_000

PAGE = f"""<!doctype html><html lang="en-GB"><head><title> Great
 bridges </title><meta name=description content="About bridges"><link rel=canonical href="/bridges">
<meta property="article:published_time" content="2024-05-01T10:00:00+02:00">
<script type="application/ld+json">{{"@graph":[{{"@type":"Article","dateModified":"2024-06-01"}}]}}</script></head>
<body><header><a href="/">Home</a></header>
<nav><ul><li><a href="a">Menu</a><li><a href="b" rel="nofollow me">B</a></ul></nav>
<main><h1>Great bridges</h1><p>{PARAGRAPH}</p><ul><li>stone</li><li>steel</li></ul>
<h2>The <em>second</em> part</h2><p>{PARAGRAPH} <a href="../up?x=1#f">See <b>more</b></a></p></main>
<aside>Related stories</aside><footer>Copyright</footer></body></html>"""


def article(
    html: str | bytes,
    content_type: str = "text/html",
    headers: Sequence[tuple[str, str]] = (),
    header_charset: str = "",
) -> Article:
    page = PageSource(
        url="http://h.test/p/q",
        content_type=content_type,
        content=html.encode() if isinstance(html, str) else html,
        headers=list(headers),
        header_charset=header_charset,
        fetched_at=NOW,
    )
    return read_article(page)


def test_the_main_text_has_blocks_headings_and_items_and_no_menu() -> None:
    text = article(PAGE).text
    assert text.split("\n\n") == [
        "# Great bridges",
        PARAGRAPH,
        "- stone\n- steel",
        "## The second part",
        f"{PARAGRAPH} See more",
    ]


def test_facts_are_read() -> None:
    found = article(PAGE)
    assert found.title == "Great bridges"
    assert found.description == "About bridges"
    assert found.canonical == "http://h.test/bridges"
    assert (found.language, found.language_declared) == ("en", "en")
    assert (found.published, found.modified) == ("2024-05-01T08:00:00Z", "2024-06-01")
    assert found.headings == [Heading(1, "Great bridges"), Heading(2, "The second part")]
    assert found.text_words == len(found.text.split())


def test_headings_are_those_that_a_reader_sees() -> None:
    found = article('<h1>Bridges<a class="headerlink" href="#b">\u00b6</a></h1><h2 hidden>Not here</h2><h2>C#</h2>')
    assert found.headings == [Heading(1, "Bridges"), Heading(2, "C#")]
    assert found.title == "Bridges"


def test_links_are_resolved_with_text_and_rel() -> None:
    links = [(link.url, link.text, link.rel, link.nofollow) for link in article(PAGE).links]
    assert links == [
        ("http://h.test/", "Home", "", False),
        ("http://h.test/p/a", "Menu", "", False),
        ("http://h.test/p/b", "B", "nofollow me", True),
        ("http://h.test/up?x=1", "See more", "", False),
    ]


@pytest.mark.parametrize("rel", ["nofollow", "UGC", "noopener sponsored"])
def test_links_that_are_not_vouched_for_are_marked(rel: str) -> None:
    assert article(f'<a href=x rel="{rel}">x</a>').links[0].nofollow


def test_a_page_that_says_nofollow_marks_all_its_links() -> None:
    found = article('<meta name=robots content="noindex, nofollow"><a href=x>x</a>')
    assert found.links[0].nofollow
    assert found.noindex


def test_links_follow_the_base_and_leave_out_other_schemes() -> None:
    page = '<base href="/b/"><a href=x>x</a><a href="mailto:a@b">m</a><a href="javascript:1">j</a><a href="">e</a>'
    assert [link.url for link in article(page).links] == ["http://h.test/b/x"]


def test_an_image_speaks_for_its_link() -> None:
    assert article('<a href=x><img alt="A cat" src=c></a>').links[0].text == "A cat"


def test_a_page_without_main_content_gives_all_that_is_seen() -> None:
    found = article("<nav><a href=a>One</a> <a href=b>Two</a></nav><p>Short.</p><script>no()</script><style>no</style>")
    assert "One" in found.text
    assert "Short." in found.text
    assert "no" not in found.text


def test_a_dense_corner_does_not_hide_the_page() -> None:
    sections = "".join(f"<section><h2>Part {n}</h2><p>{PARAGRAPH}</p></section>" for n in range(10))
    found = article(f"<body><div>{sections}</div><footer>Copyright</footer></body>")
    assert found.text.count("closed for repairs") == 10
    assert "Copyright" not in found.text


def test_what_is_hidden_is_not_read() -> None:
    found = article(f"<p>{PARAGRAPH}</p><p hidden>secret</p><noscript>turn it on</noscript><iframe>old</iframe>")
    assert "secret" not in found.text
    assert "turn it on" not in found.text
    assert "old" not in found.text.replace("old bridge", "")


def test_x_robots_tag_and_last_modified_have_a_say() -> None:
    headers = [("x-robots-tag", "noindex"), ("last-modified", "Wed, 01 May 2024 10:00:00 GMT")]
    found = article("<p>x", headers=headers)
    assert found.noindex
    assert found.modified == "2024-05-01T10:00:00Z"


@pytest.mark.parametrize(
    "page",
    [
        '<meta name=date content="2024-05-01">',
        '<meta itemprop=datePublished content="2024-05-01">',
        "<time datetime=2024-05-01>May</time>",
        '<script type="application/ld+json">[{"x":[{"datePublished":"2024-05-01"}]}]</script>',
        '<meta name=date content="2091-05-01"><time datetime=nonsense></time><time datetime=2024-05-01>May</time>',
    ],
)
def test_a_date_of_publication_is_found(page: str) -> None:
    assert article(page).published == "2024-05-01"


def test_the_language_is_detected_beside_the_declared_one() -> None:
    found = article("<html lang=en><p>Der Gemeinderat hat am Montag beschlossen, die alte Brücke zu sperren.</p>")
    assert (found.language, found.language_declared) == ("de", "en")


def test_plain_text_is_its_own_text() -> None:
    found = article(b"Gr\xfc\xdfe aus der Stadt", content_type="text/plain", header_charset="iso-8859-1")
    assert found.text == "Grüße aus der Stadt"


@pytest.mark.parametrize("kind", ["application/rss+xml", "image/png", ""])
def test_other_types_have_no_article(kind: str) -> None:
    assert article("<p>x</p>", content_type=kind).text == ""


def test_a_page_in_an_old_charset_is_read() -> None:
    found = article("<meta charset=windows-1251><title>Привет</title>".encode("cp1251"))
    assert found.title == "Привет"


HOSTILE = {
    "nested_div": b"<div>",
    "nested_text": b"<div>a,b",
    "nested_anchor": b"<a href=x><object>",
    "nested_heading": b"<h1><div>",
    "nested_list": b"<ul><li>x",
    "nested_table": b"<table><tr><td>x",
    "nested_inline": b"<b>x",
    "asides": b"<aside>x",
    "headers": b"<header>x</header>",
    "anchors": b"<a href=x>y</a>",
    "metas": b"<meta name=a content=b>",
    "times": b"<time datetime=x>",
    "json_ld": b'<script type="application/ld+json">[[{"a":[{}]}]]</script>',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_costs_what_its_size_costs(name: str) -> None:
    piece = HOSTILE[name]
    started = time.process_time()
    found = article(b"<body>" + piece * (HOSTILE_BYTES // len(piece)))
    assert time.process_time() - started < 8  # most take 0.2 s; a quadratic one takes minutes
    assert len(found.text) <= MAX_TEXT_CHARS
    assert len(found.links) <= MAX_LINKS


@given(st.binary(max_size=300))
def test_no_bytes_break_it(content: bytes) -> None:
    found = article(b"<title>" + content + b"</title><a href='" + content + b"'>" + content)
    found.text.encode()
    found.title.encode()
