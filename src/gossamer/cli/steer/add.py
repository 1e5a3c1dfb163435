"""`gossamer add DIR SEED…`: queue more seeds. `gossamer add DIR --changed FILE`: report pages that have changed.

Pages that are reported as changed are fetched again soon.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gossamer.cli.options import describe
from gossamer.cli.steer.steer import add_crawl, obey
from gossamer.core.url.forms import canonical
from gossamer.model.commands import AddSeeds, ReportChanges
from gossamer.model.errors import UsageError
from gossamer.settings.seeds import lines_of
from gossamer.telemetry.text import printable

URLS_AT_ONCE = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR (SEED… | --changed FILE)",
        [
            "gossamer add crawls/ex https://example.net/",
            "gossamer add crawls/ex more.txt",
            "gossamer add crawls/ex --changed changed.txt",
        ],
    )
    add_crawl(parser)
    parser.add_argument("seed", nargs="*", metavar="SEED", help="a URL, a bare domain, or a file with one per line")
    parser.add_argument(
        "--changed",
        metavar="FILE",
        help="URLs of pages that have changed, one per line (-: standard input): known ones are fetched again at their "
        "host's pace and not before their shortest interval, others are links",
    )


def run(arguments: argparse.Namespace) -> int:
    if bool(arguments.seed) is (arguments.changed is not None):
        raise UsageError("expected seeds, or --changed FILE, and not both")
    if arguments.changed is None:
        return obey(arguments.dir, AddSeeds(lines_of(arguments.seed)))
    urls = _urls_in(arguments.changed)
    for first in range(0, len(urls), URLS_AT_ONCE):
        obey(arguments.dir, ReportChanges(urls[first : first + URLS_AT_ONCE]))
    return 0


def _urls_in(name: str) -> list[str]:
    """Return the URLs in a file; raise if a line is none. Blank lines and those with # are left out."""
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        lines = text.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(
            f"--changed {name}: cannot be read: {reason}; expected a text file with a URL per line"
        ) from error
    urls = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        url = canonical(line)
        if url is None:
            raise UsageError(
                f"{name}, line {number}: {printable(line, 80)}: not a URL; expected https://example.org/page"
            )
        urls.append(url)
    if not urls:
        raise UsageError(f"--changed {name}: there is no URL in it; expected one per line")
    return urls
