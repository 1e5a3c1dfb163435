"""`gossamer ui DIR`: the page of a crawl that runs or has ended, its API, and its metrics.

Figures, hosts, the history of every URL, archived pages, and buttons for all that can be changed while it runs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.cluster.ledger import is_ledger_url, open_crawl
from gossamer.cli.opening import add_crawl, open_view
from gossamer.cli.steer.steer import operator, tell_folder
from gossamer.engine.admission.revival import dead_letters
from gossamer.model.commands import OperatorCommand, ReleasePattern, RetryLetters
from gossamer.model.errors import UsageError
from gossamer.reading.cluster import SharedReader
from gossamer.settings.listening import address_of

DEFAULT_LISTEN = "127.0.0.1:0"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    add_crawl(parser)
    parser.add_argument(
        "--ui-listen",
        metavar="HOST:PORT",
        default=os.environ.get("GOSSAMER_UI_LISTEN") or DEFAULT_LISTEN,
        help=f"where the page is served ({DEFAULT_LISTEN}, any free port)",
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        default=os.environ.get("GOSSAMER_METRICS_LISTEN"),
        help="serve /metrics, /healthz and /readyz there, without a token",
    )
    parser.add_argument("--read-only", action="store_true", help="no commands to the crawl from the page")
    parser.add_argument("--metrics-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--follow-stdin", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb: until a signal comes."""
    from gossamer.foundation.collector import make_full_collections_rare
    from gossamer.web.server import Plan, run
    from gossamer.web.source import Source

    page = None if arguments.metrics_only else address_of(arguments.ui_listen, "--ui-listen")
    metrics = address_of(arguments.metrics_listen, "--metrics-listen") if arguments.metrics_listen else None
    folder = _checked(arguments)
    source = Source(
        lambda: open_view(arguments),
        lambda command, how: _obey(arguments, command, f"{operator()}, {how}"),
        folder,
        is_read_only=arguments.read_only,
    )
    make_full_collections_rare()
    run(source, Plan(page, metrics), lambda line: print(line, flush=True), follows_stdin=arguments.follow_stdin)
    return 0


def _checked(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of the crawl, None if a ledger has it; raise if there is no crawl."""
    if is_ledger_url(arguments.dir):
        shared, _ = open_crawl(arguments.dir)
        shared.close()
        return None
    if arguments.node_folder:
        raise UsageError("--node-folder is for a ledger URL; a crawl in a folder has one folder")
    CrawlFolder(Path(arguments.dir)).require_crawl()
    return Path(arguments.dir)


def _obey(arguments: argparse.Namespace, command: OperatorCommand, by: str) -> str:
    """Give a command to the crawl, as the verbs do; return what was done."""
    if not is_ledger_url(arguments.dir):
        return tell_folder(CrawlFolder(Path(arguments.dir)), command, by)
    from gossamer.cli.look.requests import queue_again, release_pattern
    from gossamer.cli.steer.steer_nodes import tell_nodes

    if not isinstance(command, RetryLetters | ReleasePattern):
        return tell_nodes(arguments.dir, command, by)
    with open_view(arguments) as crawl:
        assert isinstance(crawl, SharedReader)
        if isinstance(command, ReleasePattern):
            return release_pattern(crawl, arguments.dir, command.pattern)
        return queue_again(crawl, arguments.dir, dead_letters(command.outcomes, command.hosts))
