"""`gossamer chaos`: kill crawls of the synthetic web repeatedly, and check that nothing is lost."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from gossamer.sim.chaos import run_chaos


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="number of kills (100)")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the random choice of when and how (1)"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="store the crawl folders here")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb. Exit status 1 if anything was lost, duplicated or impolite."""
    with tempfile.TemporaryDirectory(prefix="gossamer-chaos-") as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        report = run_chaos(arguments.rounds, folder, arguments.seed, lambda line: print(line, flush=True))
    print(report.render())
    return 1 if report.problems else 0
