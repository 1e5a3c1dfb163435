"""Does a page cost more than in another version? Both crawl the same documentation at the same time, a core each.

    python -m benchmarks.versions OTHER THIS [--rounds 9] [-- OPTIONS OF CRAWL]

Both are checkouts with their own `.venv`, made in the same way (`make .venv/runtime` there). On a shared machine two
crawls one after the other differ by up to 40 %; two at the same time meet the same neighbours. A round is such a pair
twice, with cores and order exchanged, over all pages and over a single one, whose cost (the start, the end, an empty
report) is subtracted. What counts is the median of the ratios of the rounds; a version beside itself gave 1.015 after
16, single rounds 0.92 to 1.16.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.peers.measure import Taken, run_pinned
from benchmarks.peers.pages import LONELY, START, build_root
from benchmarks.peers.rivals import gossamer_command
from benchmarks.peers.server import Nginx
from msgspec import Struct

MAX_S = 300.0


class Cost(Struct, frozen=True):
    """What a page took, in CPU microseconds; `start_ms` is the crawl of one page."""

    user_us: float
    system_us: float
    start_ms: float
    faults: float
    switches: float

    @property
    def page_us(self) -> float:
        """User and system time."""
        return self.user_us + self.system_us

    def __add__(self, other: Cost) -> Cost:
        """Return the mean of two."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return Cost(*((one + two) / 2 for one, two in pairs))


class Pair:
    """Runs both versions at the same time."""

    def __init__(self, checkouts: list[Path], server: Nginx, work: Path, more: list[str]) -> None:
        self._pythons = [str(path.resolve() / ".venv" / "bin" / "python") for path in checkouts]
        self._server = server
        self._work = work
        self._more = more

    def round(self) -> tuple[Cost, Cost]:
        """Return what a page takes in the other version and in this one."""
        other, this = self._costs((0, 1))
        this_again, other_again = self._costs((1, 0))
        return other + other_again, this + this_again

    def _costs(self, order: tuple[int, int]) -> tuple[Cost, Cost]:
        """Return what a page takes in two versions: the first of them on core 0, and started a moment earlier."""
        starts, crawls = self._crawl(LONELY, order), self._crawl(START, order)
        first, second = (_cost(start, crawl) for start, crawl in zip(starts, crawls, strict=True))
        return first, second

    def _crawl(self, path: str, order: tuple[int, int]) -> list[Taken]:
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(self._run, [self._pythons[one] for one in order], (0, 1), (path, path)))

    def _run(self, python: str, core: int, path: str) -> Taken:
        with tempfile.TemporaryDirectory(dir=self._work) as name:
            command = [python, *gossamer_command(self._server.url(path), Path(name), *self._more)[1:]]
            taken = run_pinned(command, Path(name), max_s=MAX_S, core=core)
        if not taken.is_good:
            raise SystemExit(f"versions: a crawl failed: {taken.output[-500:]}")
        return taken


def _cost(start: Taken, crawl: Taken) -> Cost:
    pages = json.loads(crawl.output.splitlines()[-1])["pages"]
    return Cost(
        user_us=1e6 * (crawl.user_s - start.user_s) / pages,
        system_us=1e6 * (crawl.system_s - start.system_s) / pages,
        start_ms=1e3 * start.cpu_s,
        faults=(crawl.page_faults - start.page_faults) / pages,
        switches=(crawl.context_switches - start.context_switches) / pages,
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description="CPU per page of two versions.")
    parser.add_argument("other", type=Path, help="a checkout with its own .venv")
    parser.add_argument("this", type=Path, help="the one that is compared with it")
    parser.add_argument("--rounds", type=int, default=9, help="pairs of crawls, each twice (9)")
    parser.add_argument("more", nargs="*", help="further options of crawl, behind --")
    arguments = parser.parse_args()
    costs = []
    with tempfile.TemporaryDirectory(prefix="gossamer-versions-") as name:
        work = Path(name)
        root = build_root(work)
        (work / "nginx").mkdir()
        with Nginx(work / "nginx", root, core=None) as server:
            pair = Pair([arguments.other, arguments.this], server, work, arguments.more)
            for number in range(1, arguments.rounds + 1):
                other, this = pair.round()
                costs.append((other, this))
                ratio = this.page_us / other.page_us
                print(f"{number}: {other.page_us:.0f} and {this.page_us:.0f} µs, {ratio:.3f}", flush=True)
    _print_medians(costs)
    return 0


def _print_medians(costs: list[tuple[Cost, Cost]]) -> None:
    print(f"{'median':14} {'other':>9} {'this':>9} {'ratio':>9}")
    for field in ("page_us", *Cost.__struct_fields__):
        pairs = [(float(getattr(other, field)), float(getattr(this, field))) for other, this in costs]
        ratio = median(this / other if other else 0.0 for other, this in pairs)
        print(f"{field:14} {median(one for one, _ in pairs):9.2f} {median(two for _, two in pairs):9.2f} {ratio:9.3f}")


if __name__ == "__main__":
    sys.exit(main())
