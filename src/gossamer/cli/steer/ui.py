"""`gossamer ui DIR`: the dashboard of a crawl that runs or has ended, its API, and its metrics.

Figures, hosts, the history of every URL, archived pages, and buttons for all that can be changed while it runs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gossamer.cli.opening import add_crawl, check_crawl, open_view
from gossamer.settings.listening import address_of, public_url_of

DEFAULT_LISTEN = "127.0.0.1:0"


def configure(parser: argparse.ArgumentParser) -> None:
    add_crawl(parser)
    parser.add_argument(
        "--ui-listen",
        metavar="HOST:PORT",
        default=os.environ.get("GOSSAMER_UI_LISTEN") or DEFAULT_LISTEN,
        help=f"where the dashboard is served ({DEFAULT_LISTEN}, any free port)",
    )
    parser.add_argument(
        "--ui-url",
        metavar="URL",
        default=os.environ.get("GOSSAMER_UI_URL"),
        help="the URL at which a reverse proxy serves the dashboard, as https://ops.example.org/crawl/",
    )
    parser.add_argument(
        "--ui-token-file",
        metavar="FILE",
        type=Path,
        default=os.environ.get("GOSSAMER_UI_TOKEN_FILE"),
        help="the dashboard's token is the one in this file, which is made if there is none",
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        default=os.environ.get("GOSSAMER_METRICS_LISTEN"),
        help="serve /metrics, /healthz and /readyz there, without a token",
    )
    parser.add_argument("--read-only", action="store_true", help="no commands to the crawl from the dashboard")
    parser.add_argument("--metrics-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--follow-stdin", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb: until a signal comes."""
    from gossamer.foundation.collector import make_full_collections_rare
    from gossamer.web.server import ListenPlan, run
    from gossamer.web.source import CrawlSource

    dashboard = None if arguments.metrics_only else address_of(arguments.ui_listen, "--ui-listen")
    public = public_url_of(arguments.ui_url, "--ui-url") if arguments.ui_url else None
    metrics = address_of(arguments.metrics_listen, "--metrics-listen") if arguments.metrics_listen else None
    source = CrawlSource(lambda: open_view(arguments), check_crawl(arguments), is_read_only=arguments.read_only)
    make_full_collections_rare()
    run(
        source,
        ListenPlan(dashboard, metrics, public, arguments.ui_token_file),
        lambda line: print(line, flush=True),
        follows_stdin=arguments.follow_stdin,
    )
    return 0
