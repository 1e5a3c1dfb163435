"""Answers that a plugin reads, by their type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gossamer.core.url.forms import canonical
from gossamer.model.errors import PluginError
from gossamer.model.exchanges import Document
from gossamer.parse.html.hrefs import clean_hrefs
from gossamer.parse.html.markup import TITLE_CHARS, one_line
from gossamer.parse.text.article import MAX_TEXT_CHARS, Article, Outlink
from gossamer.parse.text.language import detect_language
from gossamer.plugins import ContentParser, ParsedContent
from gossamer.settings.plugins import load_plugin


@cache
def _parsers(names: tuple[str, ...]) -> Mapping[str, tuple[str, ContentParser]]:
    """Return parsers by the types that they read; of two for one type the first counts."""
    found: dict[str, tuple[str, ContentParser]] = {}
    for name in names:
        parser: ContentParser = load_plugin(name)
        for content_type in parser.content_types:
            found.setdefault(content_type, (name, parser))
    return found


def parsed_by_plugin(names: tuple[str, ...], content: bytes, url: str, content_type: str) -> ParsedContent | None:
    """Return what a plugin reads in an answer; None if there is none for its type."""
    found = _parsers(names).get(content_type)
    if found is None:
        return None
    name, parser = found
    try:
        parsed = parser.parse(content, url, content_type)
    except Exception as error:  # the code of others may raise anything
        raise PluginError.of(name, "parse", error) from error
    if not isinstance(parsed, ParsedContent):
        raise PluginError(name, f"parse returned a {type(parsed).__name__}; expected a ParsedContent")
    return parsed


def add_to_document(document: Document, parsed: ParsedContent) -> None:
    """Replace what was read in an answer by what a plugin has read."""
    document.title = one_line(parsed.title, TITLE_CHARS)
    document.language = parsed.language
    document.visible = parsed.text.encode()
    document.words = len(parsed.text.split())
    document.hrefs = [] if document.is_nofollow else clean_hrefs(parsed.links)


def article_of(parsed: ParsedContent, url: str) -> Article:
    text = parsed.text[:MAX_TEXT_CHARS]
    guess = detect_language(text)
    links = [canonical(link, url) for link in parsed.links]
    return Article(
        title=parsed.title,
        text=text,
        text_words=len(text.split()),
        language=guess.code,
        language_confidence=guess.confidence,
        language_declared=parsed.language,
        links=[Outlink(link, "") for link in links if link],
    )
