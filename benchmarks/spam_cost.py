"""What do the signals of spam cost per page?

    python -m benchmarks.spam_cost [--rounds N] [--pages N] [--cpu-per-page MS]

Reads real documentation pages as a worker does, with and without the signals, in turns; prints the CPU time of both and
the difference, as a share of what a whole crawl takes per page (`gossamer bench --stages` measures that).
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from gossamer.model.exchanges import Exchange
from gossamer.model.records import FetchKind, FetchTask, Outcome
from gossamer.runtime.workers.answers import WorkerRules, read_answer

HEADERS = [("content-type", "text/html; charset=utf-8")]
CPU_MS_PER_PAGE = 0.6


def read_all(exchanges: list[tuple[FetchTask, Exchange]], rules: WorkerRules) -> float:
    """Return the CPU time per page in µs."""
    start = time.process_time()
    for task, exchange in exchanges:
        read_answer(task, exchange, rules)
    return (time.process_time() - start) / len(exchanges) * 1e6


def exchanges_of(folder: Path, pages: int) -> list[tuple[FetchTask, Exchange]]:
    """Return requests for real pages, with their answers."""
    paths = sorted(path for path in folder.rglob("*.html") if path.is_file())
    found = []
    for number, path in enumerate(paths[:: max(1, len(paths) // pages)][:pages]):
        url, body = f"https://docs.example.org{path}", path.read_bytes()
        task = FetchTask(number, FetchKind.PAGE, url, bytes(16), "docs.example.org", (), 0, 0, 0, 0.0)
        found.append((task, Exchange(url, Outcome.OK, status=200, headers=HEADERS, body=body, content=body)))
    return found


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--cpu-per-page", type=float, default=CPU_MS_PER_PAGE, metavar="MS")
    parser.add_argument("--folder", type=Path, default=Path("/usr/share/doc"))
    arguments = parser.parse_args()
    exchanges = exchanges_of(arguments.folder, arguments.pages)
    off, on = WorkerRules(judges_spam=False), WorkerRules(judges_spam=True)
    read_all(exchanges, on)
    pairs = [(read_all(exchanges, off), read_all(exchanges, on)) for _ in range(arguments.rounds)]
    cost = statistics.median(with_ - without for without, with_ in pairs)
    without = statistics.median(pair[0] for pair in pairs)
    print(f"{len(exchanges)} pages, {arguments.rounds} rounds in turns")
    print(f"reading a page: {without:.1f} µs without, {cost:+.1f} µs with the signals")
    print(f"that is {cost / (10 * arguments.cpu_per_page):.1f} % of {arguments.cpu_per_page:g} ms per page")


if __name__ == "__main__":
    main()
