"""`gossamer missing DIR`: what is not in a crawl, and why?

In one table: what robots.txt forbids, what failed, what rules refused or hold back, and what was cut off, each with the
reason and the page that leads there.
"""

from __future__ import annotations

import argparse
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from gossamer.cli.listing import Listing, add_listing, listing_of, write_listing
from gossamer.cli.opening import add_crawl, open_view, warn_of_elsewhere
from gossamer.cli.pipes import quiet_pipe
from gossamer.handover.findings.link_findings import Wanted, collect
from gossamer.handover.findings.link_table import LinkTable, SeenIds
from gossamer.handover.findings.missing import OUTCOMES, Missing, MissingKind, MissingUrls
from gossamer.handover.listing import SortedSpool
from gossamer.handover.where import ascii_host
from gossamer.model.errors import UsageError
from gossamer.reading.view import CrawlView
from gossamer.reading.why.fates import NOT_FETCHED
from gossamer.report.terminal import table
from gossamer.telemetry.text import count, plural, printable

_URL_CHARS = 400
_NOTES = """The table begins with counts by outcome; rows are sorted by URL. Held and excluded ones name the rule.
Dead letters have that of their last attempt. Links that a rule refused come from the events, each URL once, without
referrers unless --referrers reads all pages for them. Links beyond --max-links-per-page are read in their stored
page, links too deep for --max-depth in the first 1,000 pages at that depth: --outcome too_deep reads all of these.
What is queued is counted; --outcome queued lists it. The crawl may be running.

examples:
  gossamer missing crawls/example
  gossamer missing crawls/example --outcome robots_denied --host example.org
  gossamer missing crawls/example -o missing.csv
  gossamer missing crawls/example --outcome queued --limit 0
"""


class MissingCount(Struct, frozen=True):
    """How many URLs are missing for one reason."""

    outcome: str
    status: int
    rule: str
    urls: int
    kind: str = ""


class MissingHead(Struct, frozen=True):
    """The first line of the output as JSON."""

    crawl: str
    urls: int
    counts: list[MissingCount]
    refused_links: int  # by rules, with repetitions and whatever became of their URLs
    queued: int


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        metavar="WORD",
        help="only this outcome (repeatable): robots_denied, …",
    )
    parser.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="only URLs of this host (repeatable)"
    )
    parser.add_argument(
        "--referrers", action="store_true", help="read all stored pages for who links to what a rule refused"
    )
    add_listing(parser)


def run(arguments: argparse.Namespace) -> int:
    listing = listing_of(arguments)
    for word in arguments.outcome:
        if word not in OUTCOMES:
            raise UsageError(f"--outcome {printable(word)}: no such outcome; expected one of {', '.join(OUTCOMES)}")
    hosts = [ascii_host(host.lower()) for host in arguments.host]
    with quiet_pipe(), open_view(arguments) as crawl, SortedSpool(Missing) as waiting:
        missing = MissingUrls(crawl, arguments.outcome, hosts)
        counts: Counter[MissingKind] = Counter()
        for found in missing.read():
            _add(waiting, found)
            counts[MissingKind(found.outcome, found.status, found.rule, found.kind)] += found.count
        head = MissingHead(
            crawl.name,
            counts.total(),
            [
                MissingCount(*kind[:3], urls, kind.kind)
                for kind, urls in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            ],
            missing.refused_links,
            crawl.figures().urls_queued,
        )
        with SortedSpool(Missing) as complete:
            rows = _with_referrers(crawl, waiting, complete) if arguments.referrers else waiting
            if listing.form == "table":
                _print_table(head, rows, listing)
            else:
                write_listing(listing, head, Missing, rows.rows())
        if missing.reads_events:
            warn_of_elsewhere(crawl, "refused links and those beyond the limit per page")
    return 0


def _add(rows: SortedSpool[Missing], found: Missing) -> None:
    """Add what is missing: sorted by URL, then what is known by its number only."""
    rows.add(found, found.url or found.host, place=not found.url)


def _with_referrers(
    crawl: CrawlView, waiting: SortedSpool[Missing], complete: SortedSpool[Missing]
) -> SortedSpool[Missing]:
    """Return what is missing, each URL with a page that links to it, if a stored page does."""
    with SeenIds() as wanted, LinkTable() as table:
        for found in waiting.rows():
            if found.url and not found.referrer:
                wanted.put(crawl.ledger.url_id(found.url))
        collect(crawl, lambda url, key: Wanted(url, NOT_FETCHED) if key in wanted else None, table)
        for found in waiting.rows():
            is_wanted = found.url and not found.referrer
            _add(
                complete,
                replace(found, referrer=table.first_page(crawl.ledger.url_id(found.url))) if is_wanted else found,
            )
    return complete


def _print_table(head: MissingHead, waiting: SortedSpool[Missing], listing: Listing) -> None:
    queued = f"; {count(head.queued)} more queued" if head.queued else ""
    print(f"{printable(head.crawl, _URL_CHARS)}: {plural(head.urls, 'URL')} missing{queued}")
    if not head.counts:
        return
    rows = [(_label(each.outcome, each.status, each.rule, each.kind), count(each.urls)) for each in head.counts]
    print("\n" + table(["outcome", "URLs"], rows) + "\n")
    known = 0
    for found in waiting.rows():
        known += 1
        if not listing.limit or known <= listing.limit:
            print(_line(found))
    if more := listing.rest(known, "--limit 0 shows all"):
        print(f"  {more}")


def _label(outcome: str, status: int, rule: str, kind: str) -> str:
    what = f"{kind} " if kind and not outcome.startswith(kind) else ""
    return f"{what}{outcome} {status or rule}".rstrip()


def _line(found: Missing) -> str:
    what = printable(found.url, _URL_CHARS) or plural(found.count, "URL")
    reason = f": {printable(found.reason)}" if found.reason else ""
    host = f" of {printable(found.host)}" if not found.url and not found.referrer else ""
    on = f"  (on {printable(found.referrer, _URL_CHARS)})" if found.referrer else ""
    return f"  {what}{host}  {_label(found.outcome, found.status, printable(found.rule), found.kind)}{reason}{on}"
