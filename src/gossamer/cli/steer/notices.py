"""`gossamer notices DIR --listen HOST:PORT`: accept notices of pages that have changed (IndexNow)."""

from __future__ import annotations

import argparse
import os

from gossamer.cli.opening import add_crawl, check_crawl, open_view
from gossamer.cli.options import describe
from gossamer.settings.listening import address_of

DEFAULT_LISTEN = "127.0.0.1:8090"


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "DIR [--listen HOST:PORT]",
        [
            "gossamer notices crawls/ex --listen 0.0.0.0:8090",
            "curl 'http://localhost:8090/indexnow?url=https://example.org/news&key=0123456789abcdef'",
        ],
    )
    add_crawl(parser, reads_folders=False)
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=os.environ.get("GOSSAMER_NOTICES_LISTEN") or DEFAULT_LISTEN,
        help=f"where notices are accepted ({DEFAULT_LISTEN}; port 0: any free one)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the verb: until a signal comes."""
    from gossamer.web.notices import run
    from gossamer.web.source import CrawlSource

    address = address_of(arguments.listen, "--listen")
    source = CrawlSource(lambda: open_view(arguments), check_crawl(arguments))
    run(source, address, lambda line: print(line, flush=True))
    return 0
