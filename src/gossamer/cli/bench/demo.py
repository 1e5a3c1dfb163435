"""`gossamer demo`: crawl the synthetic web, whose servers then check the crawl."""

from __future__ import annotations

import argparse
from pathlib import Path

from gossamer.backends.local.folder import CrawlFolder
from gossamer.cli.bench.web import plan_of
from gossamer.cli.start.crawl import add_output_options, start
from gossamer.settings.load import completed, merged
from gossamer.settings.seeds import default_folder, seeds_from
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.server_judge import JudgeRules
from gossamer.sim.web.web import PRESETS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small", help="which web (small)")
    parser.add_argument("--pages", type=int, metavar="N", help="total pages")
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="the crawl folder (./crawls/demo-<time>)")
    parser.add_argument("--politeness-ms", type=int, default=100, metavar="MS", help="pace (100: these hosts are ours)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1 if the servers saw something impolite."""
    folder = CrawlFolder(arguments.out or default_folder("demo"))
    folder.check_usable()
    plan = plan_of(arguments)
    with RunningWeb(plan) as web:
        print(f"A synthetic web of {plan.host_count} hosts and {plan.pages} pages listens on loopback; crawling it.")
        values = {
            "dns": web.dns_address,
            "allow_network": ("127.0.0.0/8",),
            "proxy": "none",
            "politeness_ms": arguments.politeness_ms,
            "workers": arguments.workers,
            "max_wait": 5.0,
            "max_pages": 10 * plan.pages,
        }
        settings = completed(merged(("demo", values)), has_domain_list=False)
        status = start(settings, folder, seeds_from(web.seeds()), arguments)
        report = web.judge(JudgeRules(politeness_s=arguments.politeness_ms / 1000, slack_s=0.002))
    if not arguments.json:
        print(f"What the servers saw: {report.render()}")
    return status or (0 if report.is_polite else 1)
