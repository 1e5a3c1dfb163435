"""Can a single answer stop, bloat or fill a crawl? Each attack in a crawl beside ten healthy hosts, as a table.

    python -m benchmarks.attacks [--only NAMES] [--program PATH/TO/gossamer] [--save FILE] [--all-together]

Measured from outside, so that any version of the program can be: what the attacker sent, the CPU time, memory and
disk that it cost beyond the healthy hosts alone, and the longest time between two requests to a healthy host, by its
own log. Only the longest stall of the event loop is the program's own word. `--all-together` runs all
attacks in one crawl beside 50 healthy hosts, under a ceiling of memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from benchmarks.attack_sites import ATTACKS, Attack, Attacks
from msgspec import Struct
from msgspec.structs import replace
from tests.hostile.measuring import Usage, bytes_in, measure
from tests.hostile.serving import HostileServer

from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import WebPlan, preset

PACE_S = 0.25
HEALTHY, PAGES_PER_HOST = 10, 32
MANY_HEALTHY = 50
CEILING = 512 << 20
MAX_GAP_S = 1.5 * PACE_S + 0.1
LIMIT_S = 15.0  # of an attack
LIMIT_TOGETHER_S = 90.0
SPARE_S = 10.0  # to end after that, before it is killed
GOSSAMER = str(Path(sys.executable).parent / "gossamer")


class Measured(Struct, frozen=True):
    """One crawl: what it received, what it took, and how the healthy hosts fared."""

    what: str
    sent_bytes: int
    stall_ms: float | None  # None: the program did not live to say it
    cpu_s: float
    peak_bytes: int
    written_bytes: int
    max_gap_s: float
    healthy_share: float  # of their pages that were fetched
    end: str

    def beyond(self, bare: Measured) -> Measured:
        """Return what a crawl took more than the healthy hosts alone."""
        return replace(
            self,
            cpu_s=self.cpu_s - bare.cpu_s,
            peak_bytes=max(0, self.peak_bytes - bare.peak_bytes),
            written_bytes=max(0, self.written_bytes - bare.written_bytes),
        )

    def row(self) -> str:
        """Return the row of a Markdown table."""
        stall = "?" if self.stall_ms is None else f"{self.stall_ms:,.0f}"
        gap = f"{self.max_gap_s * 1000:,.0f}" + ("" if self.max_gap_s <= MAX_GAP_S else " **late**")
        cells = (
            self.what,
            _size(self.sent_bytes),
            stall,
            f"{self.cpu_s:.1f}",
            f"{self.peak_bytes / 1e6:,.0f} MB",
            _size(self.written_bytes),
            gap,
            f"{self.healthy_share:.0%}",
            self.end,
        )
        return "| " + " | ".join(cells) + " |"


HEAD = (
    "| attack | sent by it | loop held at most, ms | CPU, s | memory | written | longest gap at a healthy host, ms | "
    "healthy pages fetched | end |\n|---|---|---|---|---|---|---|---|---|"
)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.0f} kB"


class Crawler:
    """The program under attack."""

    def __init__(self, program: str, web: RunningWeb, server: HostileServer) -> None:
        self._program = program
        self._web = web
        self._server = server

    def crawl(self, what: str, attacks: Sequence[Attack], limit_s: float, *options: str) -> Measured:
        """Crawl the healthy hosts and some attackers; return what was measured."""
        self._web.forget()
        sent_before = self._server.sent_bytes.total()
        with tempfile.TemporaryDirectory() as folder:
            seeds = Path(folder) / "seeds.txt"
            hostile = [seed for attack in attacks for seed in attack.seeds(self._server.port)]
            seeds.write_text("\n".join([*self._web.seeds(), *hostile]) + "\n", "utf-8")
            out = Path(folder) / "crawl"
            usage = measure(self._command(seeds, out, limit_s, *options), limit_s + SPARE_S)
            ended_at, written = time.monotonic(), bytes_in(out)
        verdict = self._web.judge()
        return Measured(
            what=what,
            sent_bytes=self._server.sent_bytes.total() - sent_before,
            stall_ms=_stall_ms(usage),
            cpu_s=usage.cpu_s,
            peak_bytes=usage.peak_bytes,
            written_bytes=written,
            max_gap_s=self._max_gap_s(ended_at if verdict.coverage < 1 else None),
            healthy_share=verdict.coverage,
            end=_end_of(usage),
        )

    def _command(self, seeds: Path, out: Path, limit_s: float, *options: str) -> list[str]:
        return [
            *(self._program, "crawl", str(seeds), "--out", str(out), "--json", "--no-progress", "--scope", "domain"),
            *("--dns", self._server.dns_address, "--allow-network", "127.0.0.0/8", "--timeout", "5"),
            *("--politeness-ms", str(round(PACE_S * 1000)), "--max-time", str(limit_s), "--max-wait", "2"),
            *("--max-pages", "1000000", *options),
        ]

    def _max_gap_s(self, ended_at: float | None) -> float:
        """Return the longest time between two requests to a healthy host; also until the end, if pages were left."""
        arrivals: defaultdict[str, list[float]] = defaultdict(list)
        for request in self._web.log():
            arrivals[request.host].append(request.arrived_at)
        if ended_at is not None:
            for times in arrivals.values():
                times.append(ended_at)
        gaps = [later - earlier for times in arrivals.values() for earlier, later in pairwise(sorted(times))]
        return max(gaps, default=0.0)


def _stall_ms(usage: Usage) -> float | None:
    summary = _summary_of(usage)
    return None if summary is None else summary.get("loop_stall_max_ms", summary["loop_stall_p99_ms"])


def _summary_of(usage: Usage) -> dict[str, float] | None:
    last = usage.stdout.strip().rpartition("\n")[2]
    summary: dict[str, float] | None = json.loads(last) if last.startswith("{") else None
    return summary


def _end_of(usage: Usage) -> str:
    summary = _summary_of(usage)
    if usage.is_overdue:
        return f"**killed** after {usage.seconds:.0f} s"
    if usage.status not in (0, 1) or summary is None:
        return f"**status {usage.status}**"
    return f"{summary['finished']} after {usage.seconds:.0f} s"


@contextmanager
def attacked(plan: WebPlan, attacks: Sequence[Attack], program: str) -> Iterator[Crawler]:
    """Serve healthy hosts and attackers."""
    catalogue = Attacks()
    for attack in attacks:
        catalogue.serves(attack.name)(attack.script())
    with RunningWeb(plan) as web, HostileServer(catalogue, plan=plan) as server:
        yield Crawler(program, web, server)


def healthy(hosts: int, pages: int = PAGES_PER_HOST) -> WebPlan:
    """Return the plan of healthy hosts: equally many pages each, found early."""
    return preset("plain", domains=hosts, pages=hosts * pages, page_tail=1.0, links=20, fanout=8)


def one_by_one(attacks: Sequence[Attack], program: str) -> Iterator[str]:
    """Yield the table of attacks, line by line."""
    with attacked(healthy(HEALTHY), attacks, program) as crawler:
        bare = crawler.crawl("none", [], LIMIT_S)
        yield HEAD
        yield bare.row()
        for attack in attacks:
            yield crawler.crawl(attack.what, [attack], LIMIT_S, *attack.options).beyond(bare).row()


def all_together(attacks: Sequence[Attack], program: str) -> Iterator[str]:
    """Yield the row of all attacks in one crawl, and what is wrong with it."""
    options = ("--memory", f"{CEILING >> 20}M", "--scope", "any")  # so that the farm can spread
    with attacked(healthy(MANY_HEALTHY), attacks, program) as crawler:
        yield HEAD
        found = crawler.crawl("all of them, `--memory 512M`", attacks, LIMIT_TOGETHER_S, *options)
        yield found.row()
    checks = (
        (found.peak_bytes > CEILING, f"{found.peak_bytes / 1e6:,.0f} MB of memory, {CEILING / 1e6:,.0f} allowed"),
        (found.healthy_share < 1, f"{found.healthy_share:.1%} of the healthy pages were fetched"),
        (found.max_gap_s > MAX_GAP_S, f"a healthy host waited {found.max_gap_s:.2f} s, {MAX_GAP_S:.2f} allowed"),
    )
    wrong = [text for is_wrong, text in checks if is_wrong]
    yield "\n" + ("\n".join(wrong) if wrong else "the ceiling, the pages and the pace of healthy hosts were respected")


def main() -> None:
    parser = argparse.ArgumentParser(description="Attack a crawl with single answers, and measure it.")
    parser.add_argument("--only", default="", help=f"some of {', '.join(attack.name for attack in ATTACKS)}")
    parser.add_argument("--program", default=GOSSAMER, help="the program to attack")
    parser.add_argument("--save", type=Path, help="write the table to this file too")
    parser.add_argument("--all-together", action="store_true", help="all attacks in one crawl beside 50 healthy hosts")
    arguments = parser.parse_args()
    names = set(filter(None, arguments.only.split(",")))
    if unknown := names - {attack.name for attack in ATTACKS}:
        parser.error(f"no attack {', '.join(sorted(unknown))}; there are {', '.join(a.name for a in ATTACKS)}")
    chosen = [attack for attack in ATTACKS if not names or attack.name in names]
    lines = []
    for line in (all_together if arguments.all_together else one_by_one)(chosen, arguments.program):
        print(line, flush=True)
        lines.append(line)
    if arguments.save is not None:
        arguments.save.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
