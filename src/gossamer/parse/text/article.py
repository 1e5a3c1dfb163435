"""The content of a page for a search engine.

Made during export, from the archived bytes; a crawl does not wait for it. The main text is
what the page marks as its main part; else the densest part by turbohtml's scoring, with its
surroundings until it is half of the page; else the page without menus, side bars and
footers; if that is almost empty, all visible text. Blocks are separated by blank lines,
headings begin with as many `#` as their level, list items with `- `.

Linear in the size of the page: for the text of an anchor or heading a bounded number of
nodes is read, since hostile pages nest anchors. About 1.2 ms for a page of 26 KB with 75 links,
0.2 of it for the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import turbohtml
from msgspec import Struct
from turbohtml import Element, Namespace, PlainText, Text

from gossamer.core.url.forms import canonical
from gossamer.model.exchanges import Document
from gossamer.parse.html.markup import Markup, document_of, one_line
from gossamer.parse.html.tree import load_tree, read_markup
from gossamer.parse.text.language import detect_language
from gossamer.parse.types.charset import decode_text
from gossamer.parse.types.directives import ROBOTS_TOKEN, directives_of, header_words
from gossamer.parse.types.query_charset import encode_query

# Dates of pages.
#
# Dates are returned in ISO 8601: `2024-05-01`, or `2024-05-01T12:30:00Z` if there is a time of
# day (a time without an offset counts as UTC). A date before the web existed, or after the page
# was fetched, is an error and is ignored.

FIRST_YEAR = 1990
MAX_CHARS = 64
_SLACK = timedelta(days=2)  # clocks and zones differ
_UTC = re.compile(r"(?<=\d) ?(?:UTC|GMT)$")
_DATE = re.compile(r"(\d{4})[-/.]?(\d{2})[-/.]?(\d{2})")


def iso_date(text: str, fetched_at: float) -> str:
    """Return a date of a page or header in ISO 8601; empty if it is none, or absurd."""
    text = text[: MAX_CHARS * 2].strip()[:MAX_CHARS]
    found = _parsed(text)
    if found is None:
        return ""
    try:
        if not isinstance(found, datetime):
            moment = datetime(found.year, found.month, found.day, tzinfo=UTC)
            return found.isoformat() if _is_sane(moment, fetched_at) else ""
        moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z" if _is_sane(moment, fetched_at) else ""
    except (OverflowError, ValueError):
        return ""


def _parsed(text: str) -> datetime | date | None:
    """Return the time that a text denotes; a day if there is no time of day."""
    if not text.isascii():
        return None
    day = _DATE.fullmatch(text)
    try:
        if day is not None:
            return date(int(day[1]), int(day[2]), int(day[3]))
        if _DATE.match(text):
            return datetime.fromisoformat(_UTC.sub("Z", text.replace("/", "-")))
        from email.utils import parsedate_to_datetime  # 5 ms: most dates are of the other forms

        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _is_sane(moment: datetime, fetched_at: float) -> bool:
    latest = datetime.fromtimestamp(fetched_at, UTC) + _SLACK if fetched_at else datetime.max.replace(tzinfo=UTC)
    return moment.year >= FIRST_YEAR and moment <= latest


MAX_TEXT_CHARS = 1_000_000
MAX_LINKS = 10_000
MAX_HEADINGS = 500
MAX_ANCHOR_CHARS = 300
MIN_MAIN_CHARS = 140
MIN_MAIN_SHARE = 0.5  # of the page without its menus
_NODES_READ = 64  # of one anchor or heading
_JSON_NODES_READ = 5000
_MAINS_READ = 4
_STEPS_UP = 8
_MAX_GROWTH = 1.15
_BLANK_LINES = re.compile(r"\n{3,}")
_LONE_MARK = re.compile(r"^( *-)\n +", re.MULTILINE)

_TEXT_LAYOUT = PlainText(layout="strict", bullet="- ", table_cell_separator=" ")
_UNSEEN = "noscript, iframe, [hidden], a.headerlink"
_BOILERPLATE = (
    "nav, aside, footer, body > header, [role=navigation], [role=banner], [role=contentinfo], [role=complementary]"
)
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_PUBLISHED = (
    "article:published_time",
    "datepublished",
    "date",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "dc.date",
    "pubdate",
)
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified")
_LINKED = "a[href], a[xlink\\:href], area[href], iframe[src], frame[src]"
_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})


class Heading(Struct, frozen=True, gc=False):
    level: int  # 1 to 6
    text: str


class Outlink(Struct, frozen=True, gc=False):
    url: str
    text: str
    rel: str = ""  # in lower case, as on the page
    nofollow: bool = False  # by its own rel (nofollow, ugc, sponsored) or for the whole page


class Article(Struct, kw_only=True):
    title: str = ""
    description: str = ""
    canonical: str = ""  # resolved; empty if the page names none
    language: str = ""  # detected
    language_confidence: float = 0.0
    language_declared: str = ""
    published: str = ""
    modified: str = ""
    noindex: bool = False
    text_words: int = 0  # in `text`
    headings: list[Heading] = []
    text: str = ""
    links: list[Outlink] = []


class PageSource(Struct, kw_only=True):
    url: str
    content_type: str  # as sniffed when the page was fetched
    content: bytes  # decoded
    headers: list[tuple[str, str]] = []
    robots_token: str = ROBOTS_TOKEN
    header_charset: str = ""
    fetched_at: float = 0.0
    for_search: bool = False  # no links, and no guess at a language that the page declares: half of the time

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


def read_article(page: PageSource) -> Article:
    """Return the article of a page; other types than HTML and text have none."""
    if page.content_type in ("text/html", "application/xhtml+xml"):
        article = _from_html(page)
    elif page.content_type.startswith("text/") and not page.content_type.endswith("xml"):
        article = Article(text=decode_text(page.content, page.header_charset)[0][:MAX_TEXT_CHARS])
    else:
        article = Article()
    asked = directives_of(header_words(page.values("x-robots-tag"), page.robots_token))
    article.noindex |= asked.is_noindex
    article.modified = article.modified or iso_date(next(iter(page.values("last-modified")), ""), page.fetched_at)
    if not (page.for_search and article.language_declared):
        guess = detect_language(article.text)
        article.language = guess.code
        article.language_confidence = guess.confidence
    article.text_words = len(article.text.split())
    return article


def _from_html(page: PageSource) -> Article:
    tree = load_tree(page.content, page.header_charset)
    markup = read_markup(tree)
    said = document_of(markup, page.robots_token)
    said.canonical = encode_query(said.canonical, said.charset)
    base = (canonical(said.base, page.url) if said.base else None) or page.url
    published, modified = _dates(tree, markup, page.fetched_at)
    article = Article(
        title=said.title or one_line(_meta(markup, "og:title"), 300),
        description=said.description,
        canonical=(canonical(said.canonical, base) or "") if said.canonical else "",
        language_declared=said.language,
        published=published,
        modified=modified,
        noindex=said.is_noindex,
        links=outlinks(tree, base, said) if not page.for_search else [],
    )
    tree.remove(_UNSEEN)
    article.headings = _headings(tree)
    article.text = main_text(tree)
    if not article.title and article.headings:
        article.title = article.headings[0].text
    return article


# -- text -----------------------------------------------------------------------------------------


def main_text(tree: turbohtml.Document) -> str:
    """Return the main text of a page without `_UNSEEN`. Changes the tree: read everything else first."""
    dense = tree.main_content()
    for heading in islice(tree.select(_HEADINGS), MAX_HEADINGS):
        heading.insert(0, Text("#" * int(heading.tag[1]) + " "))
    whole = tree.to_text(_TEXT_LAYOUT)
    tree.remove(_BOILERPLATE)
    kept = tree.to_text(_TEXT_LAYOUT)
    text = _marked_main(tree) or _dense_main(dense, len(kept)) or (kept if len(kept) >= MIN_MAIN_CHARS else whole)
    return _tidied(text[: 2 * MAX_TEXT_CHARS])[:MAX_TEXT_CHARS]


def _marked_main(tree: turbohtml.Document) -> str:
    """Return the text of what the page marks as its main part; empty if that is almost empty."""
    texts = [main.to_text(_TEXT_LAYOUT) for main in islice(tree.select("main, [role=main]"), _MAINS_READ)]
    text = max(texts, key=len, default="")
    return text if len(text) >= MIN_MAIN_CHARS else ""


def _dense_main(dense: Element | None, kept_chars: int) -> str:
    """Return the text of the dense part with its surroundings; empty if that is too little of the page.

    Scoring finds the densest section, of a manual for example. The elements around it are added until there is
    enough, and then as long as they add little: a heading, an introduction.
    """
    least = max(MIN_MAIN_CHARS, MIN_MAIN_SHARE * kept_chars)
    text = ""
    around: object = dense
    for _ in range(_STEPS_UP):
        if not isinstance(around, Element) or around.tag in ("body", "html"):
            break
        wider = around.to_text(_TEXT_LAYOUT)
        if len(text) >= least and len(wider) > _MAX_GROWTH * len(text):
            break
        text = wider
        around = around.parent
    return text if len(text) >= least else ""


def _tidied(text: str) -> str:
    """Return text without trailing white space, and with list items on the lines of their marks."""
    text = "\n".join([line.rstrip() for line in text.split("\n")]).strip()
    if "-\n" in text:
        text = _LONE_MARK.sub(r"\1 ", text)
    return _BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text


def _headings(tree: turbohtml.Document) -> list[Heading]:
    found = []
    for heading in islice(tree.select(_HEADINGS), MAX_HEADINGS):
        text = _some_text(heading)
        if text:
            found.append(Heading(int(heading.tag[1]), text))
    return found


def _some_text(element: Element) -> str:
    """Return the text of an element's first nodes on one line."""
    nodes = islice(element.descendants, _NODES_READ)
    return one_line("".join(node.data for node in nodes if type(node) is Text), MAX_ANCHOR_CHARS)


# -- links ----------------------------------------------------------------------------------------


def outlinks(tree: turbohtml.Document, base: str, said: Document) -> list[Outlink]:
    """Return the links of a page in document order, a URL as often as it is linked."""
    found: list[Outlink] = []
    for anchor in islice(tree.select(_LINKED), MAX_LINKS):
        href = _target_of(anchor).strip()
        if not href.isascii():
            href = encode_query(href.partition("#")[0], said.charset)
        url = canonical(href, base) if href and href[0] != "#" else None
        if url is None:  # the page itself, or not http
            continue
        rel = one_line((anchor.attr("rel") or "").lower(), 100)
        text = _some_text(anchor) or _image_text(anchor)
        is_barred = said.is_nofollow or not _NOT_FOLLOWED.isdisjoint(rel.split())
        found.append(Outlink(url, text, rel, is_barred))
    return found


def _target_of(element: Element) -> str:
    """Return the target of an anchor, area or frame; an anchor of svg may have it in `xlink:href`."""
    if element.tag in ("iframe", "frame"):
        return element.attr("src") or ""
    href = element.attr("href")
    if href is None and element.namespace is not Namespace.HTML:
        href = element.attr("xlink:href")
    return href or ""


def _image_text(anchor: Element) -> str:
    """Return the alternative text of an anchor's images, or its own label."""
    own = anchor.attr("alt") or anchor.attr("aria-label") or anchor.attr("title")
    if own:
        return one_line(own, MAX_ANCHOR_CHARS)
    nodes = islice(anchor.descendants, _NODES_READ)
    alts = [node.attr("alt") or "" for node in nodes if isinstance(node, Element) and node.tag == "img"]
    return one_line(" ".join(alts), MAX_ANCHOR_CHARS)


# -- dates ----------------------------------------------------------------------------------------


def _dates(tree: turbohtml.Document, markup: Markup, fetched_at: float) -> tuple[str, str]:
    """Return when a page was published and modified: from meta elements, else JSON-LD, else `time` elements."""
    linked = _json_ld_dates(tree)
    times = [time.attr("datetime") or "" for time in islice(tree.find_all("time"), 20)]
    items = {
        (meta.attr("itemprop") or "").lower(): meta.attr("content") or "" for meta in tree.select("meta[itemprop]")
    }
    published = [_meta(markup, name) for name in _PUBLISHED]
    modified = [_meta(markup, name) for name in _MODIFIED]
    return (
        _first_date([*published, linked.get("datePublished", ""), items.get("datepublished", ""), *times], fetched_at),
        _first_date([*modified, linked.get("dateModified", ""), items.get("datemodified", "")], fetched_at),
    )


def _meta(markup: Markup, name: str) -> str:
    return next((content for key, content in markup.metas if key.strip().lower() == name), "")


def _first_date(texts: Iterable[str], fetched_at: float) -> str:
    return next(filter(None, (iso_date(text, fetched_at) for text in texts if text)), "")


def _json_ld_dates(tree: turbohtml.Document) -> dict[str, str]:
    """Return the first dates that JSON-LD states, outermost first."""
    found: dict[str, str] = {}
    if not tree.find_all("script"):
        return found
    for node in islice(_objects(tree.json_ld()), _JSON_NODES_READ):
        for name in ("datePublished", "dateModified"):
            value = node.get(name)
            if isinstance(value, str):
                found.setdefault(name, value)
    return found


def _objects(values: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Yield the objects of JSON values, level by level; of a long list only the beginning."""
    level = [values]
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                yield value
                below += [inner for inner in islice(value.values(), _JSON_NODES_READ) if isinstance(inner, dict | list)]
            else:
                below += [inner for inner in value[:_JSON_NODES_READ] if isinstance(inner, dict | list)]
        level = below[:_JSON_NODES_READ]
