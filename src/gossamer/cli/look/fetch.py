"""`gossamer fetch URL`: fetch one page and show everything: title and text, request and answer, what was found in it.

It does not ask robots.txt: `gossamer robots URL` does.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys

from gossamer.cli.contact import with_contact
from gossamer.cli.credentials import report_credentials
from gossamer.cli.one import OneFetch, one_settings, settings_of
from gossamer.core.url.forms import canonical, links_from
from gossamer.model.exchanges import Document, Exchange
from gossamer.model.records import Outcome
from gossamer.parse.dispatch import declared_type, parse_exchange
from gossamer.parse.text.article import PageSource, read_article
from gossamer.settings.seeds import Seed, seed_from
from gossamer.telemetry.advice import advice_on
from gossamer.telemetry.text import plural, printable, size, wrapped

_TEXT_LINES = 8  # of the main text
_MAX_COLUMNS = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--body", action="store_true", help="write the decoded body to stdout, and nothing else")
    parser.add_argument("--text", action="store_true", help="show the whole main text")
    parser.add_argument("--links", action="store_true", help="list all links")
    one_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 0: an answer with 2xx or 3xx; 1: any other result."""
    seed = seed_from(arguments.url, "fetch")
    report_credentials([seed])
    exchange = asyncio.run(_fetch(seed, arguments))
    if arguments.body:
        sys.stdout.buffer.write(exchange.content)
    elif exchange.outcome is Outcome.OK:
        document = parse_exchange(exchange, want_text=True, want_pdf_links=True)
        _show_text(exchange, document, is_whole=arguments.text)
        _show_exchange(exchange)
        _show_document(exchange, document, all_links=arguments.links)
    else:
        _show_exchange(exchange)
    return 0 if exchange.outcome in (Outcome.OK, Outcome.REDIRECT) else 1


async def _fetch(seed: Seed, arguments: argparse.Namespace) -> Exchange:
    one = OneFetch(with_contact(settings_of(arguments), [seed]), seed)
    exchange = await one.fetch(seed.link.url)
    if seed.is_guess and not exchange.status:
        print(f"{seed.link.url}: {exchange.outcome} {exchange.error}; trying http", file=sys.stderr)
        exchange = await one.fetch("http:" + seed.link.url.removeprefix("https:"))
    return exchange


def _show_text(exchange: Exchange, document: Document, *, is_whole: bool) -> None:
    """Print what a reader of the page sees: its title and main text, or the beginning of that."""
    columns = min(shutil.get_terminal_size().columns, _MAX_COLUMNS)
    print(printable(document.title or "without a title", 400))
    print(printable(exchange.url, 400))
    text = _main_text(exchange, document)
    lines = [line for line in wrapped(text, columns, 0).split("\n") if line]
    shown = lines if is_whole else lines[:_TEXT_LINES]
    print("", *(printable(line, 4 * columns) for line in shown or ["(no text)"]), sep="\n")
    if len(shown) < len(lines):
        print(f"… {plural(len(' '.join(lines[_TEXT_LINES:]).split()), 'more word')}: --text")
    print()


def _main_text(exchange: Exchange, document: Document) -> str:
    source = PageSource(
        url=exchange.url,
        content_type=document.content_type,
        content=exchange.content,
        header_charset=declared_type(exchange).charset,
        for_search=True,
    )
    return read_article(source).text or document.text


def _show_exchange(exchange: Exchange) -> None:
    for line in exchange.request_head.decode("latin-1").splitlines():
        print(f"> {printable(line)}".rstrip())
    for line in exchange.response_head.decode("latin-1").splitlines():
        print(f"< {printable(line)}".rstrip())
    _row("outcome", f"{exchange.outcome} {exchange.error}".strip())
    _row("what helps", advice_on(exchange.outcome, exchange.status))
    _row("address", exchange.address)
    if exchange.sent_at:
        _row("time", f"{1000 * (exchange.finished_at - exchange.sent_at):.0f} ms from request to end")
    _row("body", f"{size(len(exchange.body))} on the wire, {size(len(exchange.content))} decoded")
    _row("truncated", exchange.truncated.value)


def _show_document(exchange: Exchange, document: Document, *, all_links: bool) -> None:
    _row("type", f"{document.content_type} {document.charset}".strip())
    _row("about", document.description)
    _row("language", document.language)
    _row("canonical", document.canonical)
    marks = (("noindex", document.is_noindex), ("nofollow", document.is_nofollow), ("noarchive", document.is_noarchive))
    _row("robots", ", ".join(name for name, is_set in marks if is_set))
    _row("text", plural(len(document.text.split()), "word"))
    base = (canonical(document.base, exchange.url) if document.base else None) or exchange.url
    links = links_from(base, document.hrefs)
    _row("links", str(len(links)))
    for link in links if all_links else links[:10]:
        print(f"            {printable(link.url)}")
    if len(links) > 10 and not all_links:
        print(f"            … and {len(links) - 10} more: --links")


def _row(name: str, value: str) -> None:
    if value:
        print(f"{name:<11} {printable(value, 400)}")
