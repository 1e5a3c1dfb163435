"""`gossamer rank DIR`: which domains are important, by the links of the crawl's own pages?

It also stores the ranks of all hosts, and gives them to the crawl.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from threading import Thread

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.cli.opening import add_crawl, open_view, report_elsewhere
from gossamer.cli.pipes import STDOUT, quiet_pipe
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of
from gossamer.handover.export.documents import iso_time, wanted_pages
from gossamer.handover.export.stored import ExportedPages
from gossamer.handover.rank.ranking import (
    RANKS_NAME,
    CrawlLinks,
    CrawlRanks,
    RankedDomain,
    RankFigures,
    read_links,
    send_ranks,
)
from gossamer.handover.where import ANYTHING
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.state import DomainRank
from gossamer.reading.cluster import SharedReader
from gossamer.reading.folder import CrawlReader
from gossamer.reading.rank_file import RANK_FILE_NAME
from gossamer.reading.view import CrawlView
from gossamer.report.terminal import table
from gossamer.settings.seeds import seeds_from
from gossamer.telemetry.text import count, plural, printable

SHOWN = 20
LOWEST_PRIORITY = 19  # see nice(2)
ALL = "all"
FILE = "file"
SEEDS = "seeds"
_NOTES = f"""PageRank of registrable domains, from the links of stored pages (without nofollow) and from redirects. A
domain has one vote, however many pages and hosts it has. Rank starts at the trusted domains and is passed on by links:
a farm of links has only what honest sites pass on to it. If all domains are trusted, it can lift one target.

The ranks of all hosts are stored in DIR/{RANKS_NAME}: JSON lines, the first one says what they were computed from,
the others are hosts, the highest rank first. The file is replaced by the next 'gossamer rank' and may be deleted. The
crawl may be running: what is committed is read, about a millisecond per page.

The crawl uses the ranks of the domains, from 0 (lowest) to 1: the next run of DIR reads them from {RANK_FILE_NAME},
the nodes of a ledger get them within seconds, if all pages could be read. A rank that a list of seeds gave counts
instead. With -o, nothing of the crawl changes.

examples:
  gossamer rank crawls/example
  gossamer rank crawls/example --top 0 --json --trusted universities.txt
"""


class RankPage(Struct, frozen=True):
    """The output as JSON."""

    computed_from: RankFigures
    domains: list[RankedDomain]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NOTES
    add_crawl(parser)
    parser.add_argument(
        "--top", type=int, default=SHOWN, metavar="N", help=f"how many domains to show ({SHOWN}; 0: all)"
    )
    parser.add_argument(
        "--trusted",
        metavar="FILE",
        help="where rank starts: domains or URLs, one per line, or 'all'; default: the seeds of the crawl",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help=f"store the ranks there, and leave the crawl as it is; default: DIR/{RANKS_NAME}, and into the crawl",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--follow-stdin", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1: there are no pages, or some cannot be read, since their bytes lie elsewhere."""
    if arguments.top < 0:
        raise UsageError(f"--top {arguments.top}: expected 0 (all) or more")
    if str(arguments.out) == STDOUT:
        raise UsageError("-o -: expected a file; --json prints the ranks")
    if arguments.follow_stdin:
        _follow_stdin()
    given = _given_domains(arguments.trusted)
    with quiet_pipe(), open_view(arguments) as crawl:
        links = read_links(crawl)
        missing = ExportedPages(crawl).elsewhere(wanted_pages(ANYTHING)) if crawl.folders.elsewhere else 0
        report_elsewhere(crawl, missing)
        if not links.graph.hosts:
            raise GossamerError(f"{crawl.name}: no pages that can be read, so there is nothing to rank")
        trusted = _trusted(links, arguments.trusted, given)
        ranks = CrawlRanks(links.graph, trusted)
        figures = replace(
            _figures(crawl, links, ranks),
            trusted=_kind(arguments.trusted, trusted),
            trusted_domains=len(trusted) or links.graph.domain_count,
            pages_missing=missing,
        )
        _store(crawl, figures, ranks, arguments.out)
        _print(figures, ranks.best(arguments.top), is_json=arguments.json)
    return 1 if missing else 0


def _follow_stdin() -> None:
    """Work beside a crawl: with the lowest priority, and no longer than the crawl that has the other end of stdin."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(1)  # what is not complete has no name

    os.nice(LOWEST_PRIORITY)
    Thread(target=wait, name="stdin", daemon=True).start()


def _store(crawl: CrawlReader | SharedReader, figures: RankFigures, ranks: CrawlRanks, out: Path | None) -> None:
    """Write the ranks to a file, or into the crawl."""
    if out is not None:
        ranks.store(figures, out)
    elif isinstance(crawl, CrawlReader):
        ranks.store(figures, crawl.folder.path / RANKS_NAME)
        ranks.store_domains(figures, crawl.folder.path / RANK_FILE_NAME)
    elif figures.pages_missing:
        print("note: the nodes do not get these ranks, since pages are missing", file=sys.stderr)
    elif crawl.record.ended:
        print("note: the crawl is over, so its nodes do not get these ranks", file=sys.stderr)
    else:
        send_ranks(crawl.shared, (DomainRank(line.domain, round(line.standing, 2)) for line in ranks.by_id()))


def _given_domains(trusted: str | None) -> set[str]:
    """Return the domains in the file that the operator named."""
    if trusted is None or trusted == ALL:
        return set()
    if not Path(trusted).is_file():
        expected = "a file with one domain or URL per line, or 'all'"
        raise UsageError(f"--trusted {printable(trusted)}: no such file; expected {expected}")
    return {registrable_domain(host_of(seed.link.url)) for seed in seeds_from([trusted])}


def _trusted(links: CrawlLinks, option: str | None, given: set[str]) -> set[str]:
    """Return the domains that rank starts at; empty: all of them."""
    if option == ALL:
        return set()
    wanted = links.seeds if option is None else given
    known = links.known(wanted)
    if option is not None and not known:
        what = plural(len(wanted), "domain")
        raise UsageError(f"--trusted {printable(option)}: none of its {what} occurs in the crawl or its links")
    if option is not None and len(known) < len(wanted):
        unknown = min(wanted - known)
        what = f"{count(len(wanted) - len(known))} of {plural(len(wanted), 'trusted domain')}"
        print(f"note: not in the crawl or its links: {what}, such as {printable(unknown)}", file=sys.stderr)
    return known


def _kind(option: str | None, trusted: set[str]) -> str:
    if not trusted:
        return ALL
    return SEEDS if option is None else FILE


def _figures(crawl: CrawlView, links: CrawlLinks, ranks: CrawlRanks) -> RankFigures:
    return RankFigures(
        computed_at=iso_time(crawl.now),
        pages=links.pages,
        links=links.links,
        domain_links=ranks.domain_links,
        hosts=len(links.graph.hosts),
        domains=links.graph.domain_count,
    )


def _print(figures: RankFigures, best: list[RankedDomain], *, is_json: bool) -> None:
    if is_json:
        print(msgspec.json.encode(RankPage(figures, best)).decode())
        return
    origin = {ALL: "all domains", FILE: "the given domains", SEEDS: "the seeds"}[figures.trusted]
    print(
        f"{plural(figures.domains, 'domain')}, {plural(figures.hosts, 'host')}; {plural(figures.links, 'link')} on "
        f"{plural(figures.pages, 'page')}; trusted: {origin} ({count(figures.trusted_domains)})"
    )
    rows = [
        (printable(one.domain, 60), f"{one.rank:.6f}", f"{one.rank * figures.domains:.2f}", count(one.domains_in))
        for one in best
    ]
    print(table(["domain", "rank", "times the mean", "linked from domains"], rows))
    if figures.domains > len(best):
        print(f"  and {count(figures.domains - len(best))} more; --top 0 shows all")
    if not figures.domain_links:
        print("  no domain links to another one: rank is only what trusted domains are given")
