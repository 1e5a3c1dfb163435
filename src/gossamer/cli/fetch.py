"""`gossamer fetch URL`: fetch one page and show everything: request, answer, and what was found in it."""

from __future__ import annotations

import argparse
import asyncio
import sys

from gossamer.cli.contact import with_contact
from gossamer.cli.credentials import report_credentials
from gossamer.cli.one import OneFetch, one_settings, settings_of
from gossamer.core.url import canonical, links_from
from gossamer.exchanges import Document, Exchange
from gossamer.parse.dispatch import parse_exchange
from gossamer.records import Outcome
from gossamer.settings.seeds import Seed, seed_from
from gossamer.telemetry.advice import advice_on
from gossamer.telemetry.text import plural, printable, size


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--body", action="store_true", help="write the decoded body to stdout, and nothing else")
    parser.add_argument("--links", action="store_true", help="list all links")
    one_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 0: an answer with 2xx or 3xx; 1: any other result."""
    seed = seed_from(arguments.url, "fetch")
    report_credentials([seed])
    exchange = asyncio.run(_fetch(seed, arguments))
    if arguments.body:
        sys.stdout.buffer.write(exchange.content)
    else:
        _show(exchange, all_links=arguments.links)
    return 0 if exchange.outcome in (Outcome.OK, Outcome.REDIRECT) else 1


async def _fetch(seed: Seed, arguments: argparse.Namespace) -> Exchange:
    one = OneFetch(with_contact(settings_of(arguments), [seed]), seed)
    exchange = await one.fetch(seed.link.url)
    if seed.is_guess and not exchange.status:
        print(f"{seed.link.url}: {exchange.outcome} {exchange.error}; trying http", file=sys.stderr)
        exchange = await one.fetch("http:" + seed.link.url.removeprefix("https:"))
    return exchange


def _show(exchange: Exchange, *, all_links: bool) -> None:
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
    if exchange.outcome is Outcome.OK:
        _show_document(exchange, parse_exchange(exchange, want_text=True, want_pdf_links=True), all_links)


def _show_document(exchange: Exchange, document: Document, all_links: bool) -> None:
    _row("type", f"{document.content_type} {document.charset}".strip())
    _row("title", document.title)
    _row("about", document.description)
    _row("language", document.language)
    _row("canonical", document.canonical)
    marks = (("noindex", document.is_noindex), ("nofollow", document.is_nofollow), ("noarchive", document.is_noarchive))
    _row("robots", ", ".join(name for name, is_set in marks if is_set))
    words = document.text.split()
    _row("text", f"{plural(len(words), 'word')}: {' '.join(words[:20])}" if words else "none")
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
