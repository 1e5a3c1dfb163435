"""Rivals by turns over the same documentation, several rounds, then the floor and the broad web.

    python -m benchmarks.peers [--rounds 3] [--only gossamer,scrapy] [--no-broad]

CPU per page = user and system time of the rival and its children, by the kernel, over the HTML pages
that nginx served it with 200, each page once. The start (interpreter, imports, an empty crawl) is
measured apart, on a page without links, and given both ways. Of several rounds the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from pathlib import Path
from statistics import median

import msgspec
from benchmarks.peers.broad import Broad, measure_broad
from benchmarks.peers.figures import bar_plot, markdown_table, text_table
from benchmarks.peers.floor import floors
from benchmarks.peers.measure import Taken, run_pinned
from benchmarks.peers.pages import LONELY, PACKAGES, START, build_root, reachable_pages
from benchmarks.peers.rivals import Absent, Rival, all_rivals
from benchmarks.peers.server import Nginx
from msgspec import Struct

RESULTS = Path(__file__).parent.parent / "results"
MAX_S = 300.0
HEAD = (
    ["rival", "CPU ms per page", "start taken off", "times", "pages/s", "pages", "coverage", "requests", "peak MB"],
    "what it keeps",
)


class Round(Struct, frozen=True):
    """One run of a rival."""

    cpu_s: float
    seconds: float
    pages: int
    requests: int
    peak_bytes: int


class Standing(Struct):
    """A rival's runs."""

    name: str
    keeps: str
    start_cpu_s: float = 0.0
    rounds: list[Round] = []
    failure: str = ""

    def cpu_ms(self, *, without_start: bool = False) -> float:
        """Return CPU milliseconds per page, the median of all rounds."""
        start_s = self.start_cpu_s if without_start else 0.0
        return 1000 * median((one.cpu_s - start_s) / max(1, one.pages) for one in self.rounds)


class Outcome(Struct):
    """All that was measured."""

    machine: str
    packages: list[str]
    reachable: int
    mean_bytes: float
    standings: list[Standing]
    absent: list[Absent]
    floors_us: dict[str, float]
    broad: list[Broad]


def main() -> int:
    """Measure, print, write results."""
    arguments = _parse()
    if (os.cpu_count() or 1) < 2:
        raise SystemExit("peers: two cores are needed, one for the server and one for the rivals")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server and the rival under way end with us
    with tempfile.TemporaryDirectory(prefix="gossamer-peers-") as name:
        outcome = _measure(Path(name), arguments)
    _write(outcome)
    return 1 if any(standing.failure for standing in outcome.standings) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Gossamer beside other crawlers.")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", "3")), help="runs of each (3)")
    parser.add_argument("--only", default="", metavar="NAMES", help="rivals whose name begins with one of these")
    parser.add_argument("--broad", action=argparse.BooleanOptionalAction, default=True, help="the broad web as well")
    return parser.parse_args()


def _measure(work: Path, arguments: argparse.Namespace) -> Outcome:
    root = build_root(work)
    pages = reachable_pages(root)
    rivals, absent = all_rivals(work)
    wanted = tuple(filter(None, arguments.only.split(",")))
    rivals = [rival for rival in rivals if not wanted or rival.name.startswith(wanted)]
    (work / "nginx").mkdir()
    _say(f"{len(pages):,} pages of {sum(pages.values()) / len(pages) / 1000:.0f} kB; {len(rivals)} rivals")
    for one in absent:
        _say(f"left out: {one.name}: {one.why}")
    with Nginx(work / "nginx", root) as server:
        standings = _race(rivals, server, work, arguments.rounds, frozenset(pages))
        floor = floors(server.url(""), server.url("", tls=True), sorted(pages))
    broad = measure_broad(work, arguments.rounds) if arguments.broad else []
    return Outcome(
        machine=f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}",
        packages=[package for package, _ in PACKAGES.values()],
        reachable=len(pages),
        mean_bytes=sum(pages.values()) / len(pages),
        standings=standings,
        absent=absent,
        floors_us=floor,
        broad=broad,
    )


def _race(rivals: list[Rival], server: Nginx, work: Path, rounds: int, pages: frozenset[str]) -> list[Standing]:
    standings = [Standing(rival.name, rival.keeps, rounds=[]) for rival in rivals]
    for number in range(rounds + 1):
        for rival, standing in zip(rivals, standings, strict=True):
            if standing.failure:
                continue
            start, wanted = (START, pages) if number else (LONELY, frozenset({LONELY}))
            taken, one = _run(rival, server, start, work, wanted)
            if taken.status not in rival.good_statuses or not one.pages:
                standing.failure = f"{one.pages} pages, exit status {taken.status}: {taken.output.strip()[-300:]}"
                _say(f"{rival.name}: {standing.failure}")
            elif number == 0:
                standing.start_cpu_s = taken.cpu_s
            else:
                standing.rounds.append(one)
                _say(f"round {number}: {rival.name}: {_told(rival, taken, one)}")
    return standings


def _run(rival: Rival, server: Nginx, path: str, work: Path, wanted: frozenset[str]) -> tuple[Taken, Round]:
    with tempfile.TemporaryDirectory(dir=work) as name:
        server.count_from_here()
        taken = run_pinned(rival.command(server.url(path), Path(name)), Path(name), max_s=MAX_S)
        served = server.served()
    return taken, Round(taken.cpu_s, taken.seconds, len(served.keys() & wanted), served.requests, taken.peak_bytes)


def _told(rival: Rival, taken: Taken, one: Round) -> str:
    text = f"{1000 * one.cpu_s / max(1, one.pages):.3f} ms of CPU per page, {one.pages:,} pages in {one.seconds:.1f} s"
    if rival.name.startswith("gossamer"):
        # Its own account must agree: it leaves out only the report at the end.
        own = json.loads(taken.output.splitlines()[-1])
        text += f"; by its own account {own['cpu_seconds']:.2f} of {one.cpu_s:.2f} s of CPU, {own['pages']:,} pages"
    return text


def _rows(outcome: Outcome) -> list[list[str]]:
    ran = sorted((one for one in outcome.standings if one.rounds), key=Standing.cpu_ms)
    ours = next((one for one in ran if one.name == "gossamer"), None)
    rows = []
    for one in ran:
        pages = round(median(run.pages for run in one.rounds))
        cpu_ms = one.cpu_ms()
        rows.append(
            [
                one.name,
                f"{cpu_ms:.2f}",
                f"{one.cpu_ms(without_start=True):.2f}",
                f"{cpu_ms / ours.cpu_ms():.2f}" if ours else "",
                f"{median(run.pages / run.seconds for run in one.rounds):,.0f}",
                f"{pages:,}",
                f"{pages / outcome.reachable:.1%}",
                f"{median(run.requests for run in one.rounds):,.0f}",
                f"{max(run.peak_bytes for run in one.rounds) / 1e6:.0f}",
            ]
        )
    return rows


def _write(outcome: Outcome) -> None:
    head, rows = HEAD[0], _rows(outcome)
    floor_head = ["wrk, the same pages", "CPU µs per request"]
    floor_rows = [[name, f"{us:.0f}"] for name, us in outcome.floors_us.items()]
    broad_head, broad_rows = Broad.table(outcome.broad)
    print(f"\n{text_table(head, rows)}\n\n{text_table(floor_head, floor_rows)}")
    if broad_rows:
        print(f"\n{text_table(broad_head, broad_rows)}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "peers.json").write_bytes(msgspec.json.format(msgspec.json.encode(outcome)))
    keeps = {one.name: one.keeps for one in outcome.standings}
    tables = [
        markdown_table([*head, HEAD[1]], [[*row, keeps[row[0]]] for row in rows]),
        markdown_table(floor_head, floor_rows),
        *([markdown_table(broad_head, broad_rows)] if broad_rows else []),
    ]
    (RESULTS / "peers.md").write_text("\n\n".join(tables) + "\n", "utf-8")
    bars = [(row[0], float(row[1]), f"{row[1]} ms") for row in rows]
    title = f"CPU milliseconds per page, {outcome.reachable:,} documentation pages, one core"
    (RESULTS / "peers.svg").write_text(bar_plot(title, bars, ours="gossamer"), "utf-8")
    print(f"\nwritten: {RESULTS}/peers.json, peers.md, peers.svg")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
