"""What a worker reads in a page, a sitemap or a stylesheet, for its result: type, hashes, links, requisites.

CPU only, and bounded whatever the answer contains: of many hrefs, or a few that are long to resolve, only the first are
examined (`parse.hrefs.max_examined`); the result's `error` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from xxhash import xxh3_64_digest

from gossamer.archive.digests import sha1
from gossamer.core.content.pdf_type import PDF
from gossamer.core.dedup.minhash import SIGNATURE_BYTES
from gossamer.core.dedup.scheme import NearDup, signature_of
from gossamer.core.spam.page import judge_page, verdict_of
from gossamer.core.url.forms import canonical, links_from
from gossamer.core.url.href_memo import HrefMemo
from gossamer.foundation import failpoints
from gossamer.foundation.expressions import expression
from gossamer.model.exchanges import Document, Exchange
from gossamer.model.records import SITEMAP_INDEX, FetchTask, Outcome, Result, UrlId
from gossamer.parse.dispatch import declared_type, parse_exchange
from gossamer.parse.feeds.feed_type import FEED_TYPES, feed_type
from gossamer.parse.html.hrefs import ALWAYS_EXAMINED, max_examined
from gossamer.parse.text.fingerprint import number_fingerprint, short_fingerprint, text_fingerprint
from gossamer.parse.types.sniff import HTML, XHTML, sniff_type

if TYPE_CHECKING:
    from gossamer.parse.feeds.sitemap import SitemapUrl
    from gossamer.runtime.workers.answers import WorkerRules

MAX_ETAG_CHARS = 1024
MAX_USAGE_CHARS = 1000
# Preferences for the use of content: Cloudflare's, the IETF's (AIPREF), the W3C's (TDMRep), and what X-Robots-Tag adds.
USAGE_HEADERS = frozenset({"content-signal", "content-usage", "tdm-reservation", "tdm-policy", "x-robots-tag"})
MAX_TREE_BYTES = 1_500_000  # of a page whose tree is needed: up to 0.2 µs each
_PREVIEW_WORDS = 20
_PREVIEW_BYTES = 4000  # of the text, in which the first paragraph is looked for
_PARAGRAPH_CHARS = 40  # entries of menus are shorter
_JUDGED_TYPES = frozenset({HTML, XHTML})
_MINHASH = NearDup.MINHASH
_ETAG = expression(r'(?:W/)?"[ !#-~]*"')


def read_sitemap(task: FetchTask, exchange: Exchange, result: Result, rules: WorkerRules) -> None:
    """Read the entries of a sitemap, or of a feed that serves as one."""
    from gossamer.parse.feeds.sitemap import MAX_ENTRIES

    entries = _feed_entries(exchange, result, rules)
    if entries is None:
        entries = _sitemap_entries(exchange, result)
    result.links_found = len(entries)
    if rules.sketches:
        from gossamer.core.revisit.text_change import sketch_of_entries

        result.sketch = sketch_of_entries(f"{entry.loc} {entry.lastmod}" for entry in entries)
    entries = entries[: max_examined(task.url, MAX_ENTRIES)]
    if len(entries) < result.links_found:
        result.error = result.error or _only(len(entries), result.links_found, "entries")
    result.links = links_from(task.url, [entry.loc for entry in entries]) if task.needs_links else []
    if result.links:
        result.lastmods = _lastmods(task.url, ((entry.loc, entry.lastmod) for entry in entries if entry.lastmod))


def _sitemap_entries(exchange: Exchange, result: Result) -> list[SitemapUrl]:
    from gossamer.parse.feeds.sitemap import parse_sitemap

    found = parse_sitemap(exchange.content)
    result.content_type = SITEMAP_INDEX if found.sitemaps else "application/x-sitemap"
    result.error = found.error
    # The newest first, as far as they are dated: among equals, what arrives first is fetched first.
    return sorted(found.sitemaps or found.urls, key=attrgetter("lastmod"), reverse=True)


def _feed_entries(exchange: Exchange, result: Result, rules: WorkerRules) -> list[SitemapUrl] | None:
    """Read the entries of a feed; None if it is something else."""
    declared = declared_type(exchange)
    if not feed_type(sniff_type(declared.essence, exchange.content), exchange.content):
        return None
    from gossamer.parse.feeds.feeds import parse_feed

    feed = parse_feed(exchange.content, exchange.url, exchange.finished_at, declared.charset)
    if not feed.kind:
        return None
    result.content_type = feed.content_type
    result.error = feed.error
    if rules.sketches and feed.interval_s:
        result.fresh_s = feed.interval_s
    from gossamer.parse.feeds.sitemap import SitemapUrl

    return [SitemapUrl(entry.url, entry.lastmod) for entry in feed.newest_first()]


def _lastmods(base: str, dated: Iterable[tuple[str, str]]) -> dict[UrlId, str]:
    return {link.id: lastmod for href, lastmod in dated for link in links_from(base, [href])}


def read_requisite(task: FetchTask, exchange: Exchange, result: Result, rules: WorkerRules) -> None:
    """Read what a page needs: its type, and of a stylesheet what it names."""
    declared = declared_type(exchange)
    result.content_type = declared.essence
    if not exchange.is_decoded:
        result.error = f"undecodable: {exchange.header('content-encoding')[:100]}"
    elif declared.essence == "text/css" and rules.max_requisites:
        from gossamer.parse.html.requisites import needs_of_css

        result.requisites = needs_of_css(exchange.content, declared.charset, task.url, rules.max_requisites)


def _read_requisites(document: Document, exchange: Exchange, result: Result, rules: WorkerRules) -> None:
    from gossamer.parse.html.requisites import needs_of_page
    from gossamer.parse.text.article import PageSource  # these take 100 ms, which most crawls do without

    page = PageSource(
        url=exchange.url,
        content_type=document.content_type,
        content=_for_tree(exchange, result, "requisites"),
        header_charset=declared_type(exchange).charset,
        robots_token=rules.robots_token,
    )
    result.requisites = needs_of_page(page, rules.max_requisites)


def read_page(task: FetchTask, exchange: Exchange, result: Result, rules: WorkerRules, memo: HrefMemo | None) -> None:
    """Read a page, without the links that are decided according to the memo."""
    failpoints.reach("in_parse", task.url)
    document = _document_of(exchange, rules)
    result.content_type = document.content_type
    if rules.html_only and not _is_wanted(document.content_type, rules):
        result.outcome = Outcome.TYPE_REFUSED  # the header said nothing, or something else
        return
    if document.content_type == PDF and PDF not in rules.accepts:
        result.outcome = Outcome.LINKS_ONLY
    result.charset = document.charset
    result.language = document.language
    result.title = document.title
    _read_directives(document, exchange, result)
    read_validators(exchange.named, result)
    if not exchange.is_decoded:
        result.error = f"undecodable: {exchange.header('content-encoding')[:100]}"
    elif document.problem:
        result.error = document.problem
    if exchange.content:
        is_body = exchange.content is exchange.body
        digest = (exchange.body_sha1 if is_body else b"") or sha1(exchange.content)
        result.content_hash = digest[:16]
    result.links_found = len(document.hrefs)
    if task.needs_links and document.hrefs:
        _read_links(task, document, result, memo)
        if rules.reads_anchors:
            _read_anchors(document, exchange, result)
    result.nofollow_links = document.nofollow_links
    _read_fingerprints(document, task, result, rules)
    if document.dates:
        result.lastmods = _lastmods(task.url, document.dates.items())
    if rules.sketches:
        _read_sketch(document, result)
    if document.content_type in _JUDGED_TYPES:
        _read_for_people(document, exchange, result, rules)
    if rules.previews:
        result.preview = first_words(document.visible)


def _is_wanted(content_type: str, rules: WorkerRules) -> bool:
    """Return whether a type is stored by a crawl of HTML only."""
    return content_type in _JUDGED_TYPES or content_type.startswith(rules.accepts)


def _read_fingerprints(document: Document, task: FetchTask, result: Result, rules: WorkerRules) -> None:
    """Record what a page's text is compared by."""
    result.text_hash = text_fingerprint(document.visible, task.url)
    if not result.text_hash:
        result.short_text = short_fingerprint(document.visible, task.url)
    result.numbers = number_fingerprint(document.visible, task.url)
    result.signature = signature_of(document.visible, rules.near_dup)
    if rules.near_dup is not _MINHASH and document.visible:
        result.exact_text = xxh3_64_digest(document.visible)
    result.words = document.words


def first_words(visible: bytes) -> str:
    """Return the first words of a page's text, without a menu before the first paragraph."""
    lines = visible[:_PREVIEW_BYTES].decode("utf-8", "ignore").split("\n")
    paragraph = next((at for at, line in enumerate(lines) if len(line) >= _PARAGRAPH_CHARS), 0)
    return " ".join(" ".join(lines[paragraph:]).split(None, _PREVIEW_WORDS)[:_PREVIEW_WORDS])


def _read_for_people(document: Document, exchange: Exchange, result: Result, rules: WorkerRules) -> None:
    """Record what only pages that browsers show have."""
    if rules.judges_spam and document.visible:
        _read_spam(document, exchange.url, result)
    if rules.max_requisites and result.outcome is Outcome.OK:
        _read_requisites(document, exchange, result, rules)


def _document_of(exchange: Exchange, rules: WorkerRules) -> Document:
    document = parse_exchange(
        exchange,
        want_text=True,
        want_pdf_links=rules.parses_pdf,
        want_deep_pdf=rules.parses_pdf_deep,
        token=rules.robots_token,
    )
    if rules.parsers:
        _read_by_plugin(document, exchange, rules.parsers)
    return document


def _read_anchors(document: Document, exchange: Exchange, result: Result) -> None:
    from gossamer.parse.html.anchors import anchors_of  # 50 ms, which crawls without hooks do without

    if result.links and document.content_type in _JUDGED_TYPES:
        content = _for_tree(exchange, result, "texts of links")
        result.anchors = anchors_of(result.links, content, declared_type(exchange).charset, exchange.url)


def _for_tree(exchange: Exchange, result: Result, what: str) -> bytes:
    """Return as much of a page as is read into a tree; the result says if that is not all."""
    if len(exchange.content) > MAX_TREE_BYTES:
        result.error = result.error or f"{what}: the first {MAX_TREE_BYTES} of {len(exchange.content)} bytes were read"
    return exchange.content[:MAX_TREE_BYTES]


def _read_by_plugin(document: Document, exchange: Exchange, parsers: tuple[str, ...]) -> None:
    from gossamer.parse.by_plugin import add_to_document, parsed_by_plugin

    if not exchange.is_decoded:
        return
    parsed = parsed_by_plugin(parsers, exchange.content, exchange.url, document.content_type)
    if parsed is not None:
        add_to_document(document, parsed)


def _read_sketch(document: Document, result: Result) -> None:
    from gossamer.core.revisit.text_change import sketch_of, sketch_of_entries

    if document.content_type in FEED_TYPES:
        result.sketch = sketch_of_entries(f"{url} {document.dates.get(url, '')}" for url in document.hrefs)
        result.fresh_s = document.interval_s or result.fresh_s
    else:
        result.sketch = sketch_of(document.visible, document.title)


def _read_spam(document: Document, url: str, result: Result) -> None:
    is_minhash = len(result.signature) == SIGNATURE_BYTES
    found = judge_page(document, url, result.signature if is_minhash else b"")
    result.template = found.template
    result.is_prose = found.is_prose
    if found.signals:
        result.spam = verdict_of(found.signals)
        result.spam_reason = "; ".join(signal.reason for signal in found.signals)


def _read_links(task: FetchTask, document: Document, result: Result, memo: HrefMemo | None) -> None:
    base = _base_of(document, task.url)
    hrefs = document.hrefs
    if len(hrefs) > ALWAYS_EXAMINED:
        hrefs = hrefs[: max_examined(base)]
        if len(hrefs) < result.links_found:
            result.error = result.error or _only(len(hrefs), result.links_found, "links")
    result.links = links_from(base, hrefs if memo is None else memo.fresh(task.id, base, hrefs, task.seed))


def _only(examined: int, found: int, what: str) -> str:
    return f"{what}: the first {examined} of {found} were examined"


def _read_directives(document: Document, exchange: Exchange, result: Result) -> None:
    """Record the page's directives for its users, whether they apply to a crawler or not."""
    if document.is_noindex or document.is_nofollow or document.is_noarchive:
        marks = (
            "noindex" * document.is_noindex,
            "nofollow" * document.is_nofollow,
            "noarchive" * document.is_noarchive,
        )
        result.directives = ", ".join(filter(None, marks))
    if not USAGE_HEADERS.isdisjoint(exchange.named):
        stated = [f"{name}: {value}" for name, value in exchange.headers if name in USAGE_HEADERS]
        result.usage = "; ".join(stated)[:MAX_USAGE_CHARS]


def read_validators(named: Mapping[str, str], result: Result) -> None:
    """Record what makes the next request for the same URL conditional."""
    result.etag = _valid_etag(named["etag"]) if "etag" in named else ""
    date = named.get("last-modified", "")
    result.last_modified = date if len(date) <= 64 and date.isascii() and date.isprintable() else ""


def _base_of(document: Document, url: str) -> str:
    return (canonical(document.base, url) if document.base else None) or url


def _valid_etag(etag: str) -> str:
    """Return an entity tag that may be sent back: short, quoted, without control characters."""
    return etag if len(etag) <= MAX_ETAG_CHARS and _ETAG.fullmatch(etag) else ""
