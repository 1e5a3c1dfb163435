"""`gossamer web`: serve the synthetic web on loopback, with its own name server and audit."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gossamer.model.errors import UsageError
from gossamer.sim.running import Listening, serve
from gossamer.sim.web.web import PRESETS, WebPlan, preset


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small", help="which web (small)")
    parser.add_argument("--port", type=int, default=8088, help="for HTTP (8088; 0: any free one)")
    parser.add_argument("--dns-port", type=int, default=8053, help="for DNS (8053; 0: any free one)")
    parser.add_argument("--domains", type=int, metavar="N", help="registrable domains")
    parser.add_argument("--hosts", type=int, metavar="N", help="hosts")
    parser.add_argument("--pages", type=int, metavar="N", help="total pages")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed for everything else")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="write what the servers saw, one JSON line per request"
    )


def plan_of(arguments: argparse.Namespace) -> WebPlan:
    """Return the web that the options describe."""
    names = ("domains", "hosts", "pages", "seed")
    changes = {name: value for name in names if (value := getattr(arguments, name, None)) is not None}
    try:
        return preset(arguments.preset, **changes)
    except ValueError as error:
        raise UsageError(str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    """Run the verb until it is stopped."""
    import uvloop

    plan = plan_of(arguments)
    for port in (arguments.port, arguments.dns_port):
        if not 0 <= port <= 65535:
            raise UsageError(f"{port} is not a port; expected 1 to 65535, or 0 for any free one")
    try:
        uvloop.run(
            serve(plan, arguments.port, arguments.dns_port, arguments.log, on_ready=lambda at: _announce(plan, at))
        )
    except OSError as error:
        raise UsageError(
            f"cannot listen: {error.strerror or error}; choose other ports with --port and --dns-port"
        ) from error
    return 0


def _announce(plan: WebPlan, at: Listening) -> None:
    print(f"{plan.host_count} hosts with {plan.pages} pages on 127.0.0.0/8 port {at.port}, names at {at.dns_address}")
    print("Crawl it from another terminal:")
    seeds = " ".join(plan.seeds(at.port, 2))
    print(
        f"  gossamer crawl {seeds} --dns {at.dns_address} --allow-network 127.0.0.0/8 --scope any --politeness-ms 100"
    )
    print(f"What the servers saw: http://127.0.0.1:{at.port}/_audit?politeness_s=0.1&scope=any   Stop with Ctrl-C.")
    sys.stdout.flush()
