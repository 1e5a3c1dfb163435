"""`gossamer notices DIR --listen HOST:PORT`: accept notices of pages that have changed (IndexNow)."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.cluster.ledger import is_ledger_url, open_crawl
from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.options import describe
from gossamer.cli.steer.steer import operator, tell_folder
from gossamer.model.commands import OperatorCommand
from gossamer.settings.listening import address_of

DEFAULT_LISTEN = "127.0.0.1:8090"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
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
    from gossamer.web.source import Source

    address = address_of(arguments.listen, "--listen")
    folder = _checked(arguments.dir)
    source = Source(
        lambda: open_view(arguments),
        lambda command, how: _obey(arguments.dir, command, f"{operator()}, {how}"),
        folder,
    )
    run(source, address, lambda line: print(line, flush=True))
    return 0


def _checked(crawl: str) -> Path | None:
    """Return the folder of the crawl, None if a ledger has it; raise if there is no crawl."""
    if is_ledger_url(crawl):
        shared, _ = open_crawl(crawl)
        shared.close()
        return None
    CrawlFolder(Path(crawl)).require_crawl()
    return Path(crawl)


def _obey(crawl: str, command: OperatorCommand, by: str) -> str:
    if not is_ledger_url(crawl):
        return tell_folder(CrawlFolder(Path(crawl)), command, by)
    from gossamer.cli.steer.steer_nodes import tell_nodes

    return tell_nodes(crawl, command, by)
