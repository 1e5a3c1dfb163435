"""`gossamer links DIR`: which links are broken or lead elsewhere, who links to a URL, and what has no link?

Broken ones come with the pages that have them, anchor text, status and redirects. `--check-external` and
`--check-assets` also ask what the crawl has not fetched.
"""

from __future__ import annotations

import argparse
import sys

from msgspec import Struct

from gossamer.cli.listing import Listing, add_listing, listing_of, write_listing
from gossamer.cli.look.checking import Checks, add_checks, checked, wants_checks
from gossamer.cli.opening import add_crawl, open_view, report_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.core.links.scope import Reach
from gossamer.handover.export.stored import ExportedPages, is_page
from gossamer.handover.findings.link_findings import (
    LinkPass,
    Orphan,
    Question,
    broken,
    collect,
    external,
    leading_to,
    orphans,
    redirected,
)
from gossamer.handover.findings.link_table import LinkCounts, LinkGroup, LinkRow, LinkTable, OutcomeCount
from gossamer.handover.listing import SortedSpool
from gossamer.model.records import Outcome
from gossamer.parse.text.article import MAX_LINKS
from gossamer.reading.view import CrawlView
from gossamer.reading.why.fates import LONG_CHAIN
from gossamer.report.terminal import table
from gossamer.settings.seeds import seed_from
from gossamer.telemetry.text import agreeing, count, plural, printable

_URL_CHARS = 400
_LABELS = {
    "broken": "broken links",
    "redirects": "links to redirects",
    "external": "links out of the scope",
    "to": "links to it",
}
_NOTES = """Links are those of stored pages, as 'export --format links' writes them. A link is broken if its target, or
the end of its redirects, has no answer or one that is an error; what robots.txt forbids, what is queued and what was
never queued is not. --check-external and --check-assets ask what the crawl has not fetched: HEAD, then GET before it is
called broken, under robots.txt and at the pace of the crawl. A table has the targets with the most links, and some
pages of each; --json and --csv have a line per link, with the chain of redirects. The crawl may be running, except for
checks: what is committed is read. Exit status 1: links are broken.

examples:
  gossamer links crawls/example --broken
  gossamer links crawls/example --broken --check-external --check-assets
  gossamer links crawls/example --redirects -o redirects.csv
  gossamer links crawls/example --to https://example.org/old --json
"""


class CheckCounts(Struct, frozen=True):
    """How many URLs were checked."""

    asked: int  # by this command
    known: int  # from an earlier one
    promised: dict[str, str]  # hosts that were not asked, and until when the crawl has promised to wait


class LinksHead(Struct, frozen=True):
    """The first line of the output as JSON."""

    crawl: str
    question: str
    pages_read: int
    links_read: int
    counts: LinkCounts
    outcomes: list[OutcomeCount]
    checks: CheckCounts | None = None


class OrphansHead(Struct, frozen=True):
    """The first line of the output as JSON, for pages without links."""

    crawl: str
    question: str
    pages_read: int
    links_read: int
    orphans: int


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--broken", action="store_true", help="links to what is not there")
    what.add_argument("--redirects", action="store_true", help="links to redirects, with where they end")
    what.add_argument("--external", action="store_true", help="links out of the scope of the crawl, by domain")
    what.add_argument("--to", metavar="URL", help="links to this URL")
    what.add_argument(
        "--orphans", action="store_true", help="pages that no page links to, found by seed or sitemap only"
    )
    add_listing(parser)
    add_checks(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: links are broken, or the bytes of pages lie on nodes elsewhere."""
    listing = listing_of(arguments)
    has_checks = wants_checks(arguments)
    asked = seed_from(arguments.to, "--to").link if arguments.to is not None else None
    found = missing = 0
    with quiet_pipe(), open_view(arguments) as crawl:
        if arguments.orphans:
            done = _answer_orphans(crawl, listing)
        elif asked is not None:
            asked_id = crawl.ledger.url_id(asked.url)
            done, _ = _answer(crawl, listing, "to", leading_to(crawl, asked_id))
            if crawl.ledger.look_up(asked_id) is None:
                print(f"note: {printable(asked.url, _URL_CHARS)} was never queued in this crawl", file=sys.stderr)
        elif has_checks:
            with checked(arguments, crawl) as checks:
                done, found = _answer_checked(crawl, listing, checks)
        else:
            done, found = _answer(crawl, listing, *_question(arguments, crawl))
        if done.cut_pages:
            has = agreeing(done.cut_pages, "page", "has", "have")
            print(
                f"INCOMPLETE: {has} {count(MAX_LINKS)} links or more: those behind them were not read", file=sys.stderr
            )
        missing = ExportedPages(crawl).elsewhere(is_page) if crawl.folders.elsewhere else 0
        report_elsewhere(crawl, missing)
    return 1 if missing or (arguments.broken and found) else 0


def _question(arguments: argparse.Namespace, crawl: CrawlView) -> tuple[str, Question]:
    if arguments.broken:
        return "broken", broken(crawl).link
    if arguments.redirects:
        return "redirects", redirected(crawl)
    if crawl.settings.scope is Reach.ANY:
        print("note: the scope of this crawl is everything (--scope any): no link leads out of it", file=sys.stderr)
    return "external", external(crawl)


def _answer(crawl: CrawlView, listing: Listing, question: str, wanted: Question) -> tuple[LinkPass, int]:
    """Write the links that are asked for; return what was read, and how many were found."""
    with LinkTable() as found:
        done = collect(crawl, wanted, found, with_malformed=question == "broken")
        return done, _write(LinksHead(crawl.name, question, *_counted(done, found)), found, listing)


def _answer_checked(crawl: CrawlView, listing: Listing, checks: Checks) -> tuple[LinkPass, int]:
    wanted = broken(crawl, checks.targets, checks.results)
    counts = CheckCounts(checks.asked, checks.known, checks.promised)
    with LinkTable() as found:
        assets = wanted.asset if checks.targets.assets else None
        done = collect(crawl, wanted.link, found, assets, with_malformed=True)
        return done, _write(LinksHead(crawl.name, "broken", *_counted(done, found), counts), found, listing)


def _counted(done: LinkPass, found: LinkTable) -> tuple[int, int, LinkCounts, list[OutcomeCount]]:
    return done.pages, done.links, found.counts(), found.outcomes()


def _write(head: LinksHead, found: LinkTable, listing: Listing) -> int:
    with quiet_pipe():  # here, too: what is broken is, however much of it is read
        if listing.form == "table":
            _print_table(head, found, listing)
        else:
            write_listing(listing, head, LinkRow, found.links())
    return head.counts.links


def _print_table(head: LinksHead, found: LinkTable, listing: Listing) -> None:
    counts = head.counts
    is_external = head.question == "external"
    _print_read(head.crawl, head.pages_read, head.links_read)
    targets = f"{plural(counts.targets, 'URL')}, " if head.question != "to" else ""
    print(f"{_LABELS[head.question]}: {count(counts.links)} ({targets}on {plural(counts.pages, 'page')})")
    if head.checks is not None:
        _print_checks(head.checks, counts.not_checked)
    if not counts.links and not counts.not_checked:
        return
    if not is_external:
        rows = [(_ending_of(each), count(each.targets), count(each.links)) for each in head.outcomes]
        print("\n" + table(["the target is", "URLs", "links"], rows))
    names = 0
    for group in found.groups():
        names += 1
        if not listing.limit or names <= listing.limit:
            _print_group(group, found, listing, is_external=is_external)
    if more := listing.rest(names, "--limit 0 shows all"):
        print(f"\n{more}")


def _print_read(crawl: str, pages: int, links: int) -> None:
    print(f"{printable(crawl, _URL_CHARS)}: {plural(pages, 'page')} with {plural(links, 'link')} read")


def _print_checks(checks: CheckCounts, not_checked: int) -> None:
    left = f"; {count(not_checked)} could not be checked, and are listed last" if not_checked else ""
    print(f"checked: {plural(checks.asked, 'URL')} now, {count(checks.known)} before{left}")
    for host, until in checks.promised.items():
        print(f"  {printable(host)}: not asked, since the crawl has promised it to wait until {until}")


def _ending_of(each: OutcomeCount) -> str:
    ending = _ending(each.outcome, each.status)
    return ending if each.is_checked else f"not checked: {ending}"


def _print_group(group: LinkGroup, found: LinkTable, listing: Listing, *, is_external: bool) -> None:
    on = f"{plural(group.links, 'link')} on {plural(group.pages, 'page')}"
    if is_external:
        on = f"{plural(group.targets, 'URL')}, {on}"
    for number, link in enumerate(listing.some(found.links(group.name))):
        if number == 0:
            ending = "" if is_external else f"{_ending(link.outcome, link.status, len(link.chain))}; "
            if not link.is_checked:
                ending = f"not checked, {ending}"
            print(f"\n{printable(group.name, _URL_CHARS)}\n  {ending}{on}")
            for hop in link.chain:
                print(f"  -> {printable(hop, _URL_CHARS)}")
            if link.is_loop:
                print("  a loop: the redirects never end")
            elif link.error:
                print(f"  {printable(link.error)}")
        to = f"{printable(link.to, _URL_CHARS)} " if is_external else ""
        text = f'"{printable(link.text)}"' if link.element == "a" else f"<{link.element}>"
        print(f"    {to}on {printable(link.from_url, _URL_CHARS)}  {text}")
    if more := listing.rest(group.links, "--limit 0 shows all"):
        print(f"    {more}")


def _ending(outcome: str, status: int, hops: int = 0) -> str:
    """Return what became of a target in words."""
    if outcome == Outcome.REDIRECT_LOOP:
        return "a redirect loop"
    if outcome == LONG_CHAIN:
        return f"a long chain of {plural(hops, 'redirect')}" if hops else "a long chain of redirects"
    return f"{outcome or 'not fetched'} {status or ''}".rstrip()


def _answer_orphans(crawl: CrawlView, listing: Listing) -> LinkPass:
    done = LinkPass()
    with SortedSpool(Orphan) as waiting:
        for orphan in orphans(crawl, done):
            waiting.add(orphan, orphan.url)
        if listing.form != "table":
            head = OrphansHead(crawl.name, "orphans", done.pages, done.links, waiting.count)
            write_listing(listing, head, Orphan, waiting.rows())
            return done
        _print_read(crawl.name, done.pages, done.links)
        print(f"pages that no other page links to: {count(waiting.count)}")
        for orphan in listing.some(waiting.rows()):
            by = f" {printable(orphan.parent, _URL_CHARS)}" if orphan.parent else ""
            print(f"  {printable(orphan.url, _URL_CHARS)}  (found by {orphan.found_via}{by})")
        if more := listing.rest(waiting.count):
            print(f"  {more}")
    return done
