"""Does a crawl stay below its ceiling of memory, and does it still find everything?

Three measurements, of private memory (anonymous and shared pages of all processes, looked at from outside every 10 ms):

    entries   what an entry of each table and cache takes: the constants of `settings/budget`
    ceiling   a web of many hosts on a ledger that knows 3,000,000 URLs, without and with a ceiling: the same pages
    bodies    hosts that answer with pages of 5 MB only, without and with a ceiling

    python -m benchmarks.memory [entries] [ceiling] [bodies] [--memory 150M] [--known 3000000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.growth import fill
from msgspec import Struct

from gossamer.assembly.engine import budget_of, frontier_limits
from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.dedup.index import MinHashIndex, SimHashIndex
from gossamer.core.dedup.minhash import SIGNATURE_BYTES
from gossamer.core.frontier.frontier import Frontier
from gossamer.core.frontier.priority import QueueOrder, ordering
from gossamer.core.frontier.workbench import OriginRules
from gossamer.core.robots.rules import parse_robots
from gossamer.core.traps.novelty import LANES, PageLinks, PageMark
from gossamer.core.traps.watch import TrapWatch
from gossamer.core.url.forms import link_to
from gossamer.core.url.href_memo import HrefMemo
from gossamer.fetch.names.dns import Resolution
from gossamer.model.records import ContentRecord, DomainRecord, HostRecord, QueuedUrl, UrlState
from gossamer.runtime.watch.vitals import private_bytes
from gossamer.settings.budget import size_from
from gossamer.settings.model import Settings
from gossamer.settings.rules import pace_of
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")
HOSTS, PAGES = 3000, 12_000
BODY_BYTES, BODY_HOSTS, BODIES_PER_HOST = 5_000_000, 64, 2
ROBOTS = (
    b"User-agent: *\nDisallow: /private/\nDisallow: /search\nAllow: /private/open/\nSitemap: https://x.test/map.xml\n"
)

# -- entries ---------------------------------------------------------------------------------------


def _host(number: int) -> str:
    return f"www.some-host-{number}.example-{number // 3}.test"


def _urls(host: str, first: int, count: int) -> list[QueuedUrl]:
    links = [link_to(f"https://{host}/articles/{number}/some-words-in-a-path") for number in range(count)]
    return [QueuedUrl(link.url, link.id, host, 1, first + n, 1, found_at=1e9 + n) for n, link in enumerate(links)]


def _frontier(hosts: int, urls_a_host: int) -> Frontier:
    how, settings = ordering(QueueOrder.BREADTH, 0), Settings()
    frontier = Frontier(frontier_limits(settings, budget_of(settings)), pace_of(settings), how, "gossamer")
    for number in range(hosts):
        name = _host(number)
        record = HostRecord(name, f"example-{number // 3}.test", addresses=(f"10.0.{number >> 8}.{number & 255}",))
        origins = {f"https://{name}": OriginRules(rules=parse_robots(ROBOTS, "gossamer"), expires_at=2e9)}
        frontier.load_host(record, DomainRecord(record.domain), origins, 1e9)
        frontier.add(_urls(name, number * urls_a_host, urls_a_host), 1e9)
    return frontier


def _links() -> tuple[int, object]:
    return 200_000, {os.urandom(16) for _ in range(200_000)}


def _names() -> tuple[int, object]:
    answers = {_host(n): Resolution((f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",), 1e9 + n) for n in range(50_000)}
    return 50_000, (answers, {os.urandom(8): _host(n) for n in range(50_000)})


def _near() -> tuple[int, object]:
    index = MinHashIndex()
    for number in range(300_000):
        index.add(number, os.urandom(SIGNATURE_BYTES))
    return 300_000, index


def _simhash() -> tuple[int, object]:
    index = SimHashIndex()
    for number in range(300_000):
        index.add(number, os.urandom(8))
    return 300_000, index


def _copies() -> tuple[int, object]:
    links = (f"https://{_host(n)}/articles/{n}/some-words-in-a-path" for n in range(100_000))
    return 100_000, {os.urandom(16): ContentRecord(b"", url, 1e9, os.urandom(20)) for url in links}


def _hrefs() -> tuple[int, object]:
    memo = HrefMemo()
    for page in range(500):
        memo.fresh(page, f"https://{_host(page)}/a/", [f"/articles/{page}/{n}/some-words" for n in range(100)])
        memo.mark_offered(page)
    return 50_000, memo


def _patterns() -> tuple[int, object]:
    watch = TrapWatch()
    for host in range(2000):
        for page in range(90):
            mark = PageMark(os.urandom(8), os.urandom(4 * LANES), 400)
            watch.record(f"https://h{host}.test/a/{page}", f"h{host}.test", mark, PageLinks(), 1e9)
    return 4000, watch


def _changes() -> tuple[int, object]:
    ledger = LocalLedger(Path(tempfile.mkdtemp()))
    ledger.open()
    for number in range(200):
        ledger.put_host(HostRecord(_host(number), _host(number)))
        ledger.admit(_urls(_host(number), 250 * number, 250))
    return 2 * 50_000, ledger


ENTRIES: dict[str, Callable[[], tuple[int, object]]] = {
    "a host in memory, with its robots.txt and a URL": lambda: (20_000, _frontier(20_000, 1)),
    "a host in memory that has nothing to do": lambda: (10_000, _frontier(10_000, 0)),
    "a URL at the head of its queue": lambda: (200_000, _frontier(1000, 200)),
    "a link in the memo of links decided": _links,
    "a DNS answer and a host's name": _names,
    "a page in the near-duplicate index (MinHash)": _near,
    "a page in the near-duplicate index (SimHash)": _simhash,
    "a content that a worker remembers": _copies,
    "a link in a worker's memo": _hrefs,
    "a URL pattern that is watched for traps": _patterns,
    "a change that is not committed": _changes,
}


def measure_entries() -> bool:
    """Make many of each in a process of its own, and print what one takes."""
    for name, make in ENTRIES.items():
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            gc.collect()
            before = private_bytes()
            count, kept = make()
            gc.collect()
            os.write(theirs, f"{(private_bytes() - before) / count:.0f}".encode())
            del kept
            os._exit(0)
        os.close(theirs)
        print(f"{name:50} {os.read(ours, 100).decode():>6} bytes", flush=True)
        os.waitpid(child, 0)
        os.close(ours)
    return True


# -- crawls ----------------------------------------------------------------------------------------


class Run(Struct, frozen=True):
    """A crawl, and what was seen of it from outside."""

    peak_bytes: int
    said_bytes: int
    pages: int
    seconds: float
    cpu_ms_per_page: float
    finished: str


def _tree(pid: int) -> list[int]:
    """Return a process and its children."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [pid, *(int(child) for task in tasks for child in (task / "children").read_text().split())]
    except OSError:
        return []


def watched(command: Sequence[str]) -> Run:
    """Run a crawl to its end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(private_bytes(pid) for pid in _tree(process.pid)))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"the crawl ended with status {process.returncode}")
    summary = json.loads(out.splitlines()[-1])
    return Run(
        peak,
        summary["peak_private_bytes"],
        summary["pages"],
        summary["seconds"],
        summary["cpu_ms_per_page"],
        summary["finished"],
    )


def _show(name: str, run: Run) -> None:
    print(
        f"{name}: {run.pages:,} pages, {run.peak_bytes / 1e6:.1f} MB private at most ({run.said_bytes / 1e6:.1f} "
        f"by the crawl's own account), {run.seconds:.1f} s, {run.cpu_ms_per_page:.3f} ms of CPU per page, "
        f"{run.finished}",
        flush=True,
    )


def _judged(free: Run, held: Run, ceiling: int, *, is_same: bool) -> bool:
    is_kept = held.peak_bytes <= ceiling and is_same
    print(
        f"ceiling {ceiling / 1e6:.1f} MB: {'met' if held.peak_bytes <= ceiling else 'NOT MET'}; "
        f"{'the same pages' if is_same else 'NOT THE SAME PAGES'}; "
        f"{held.cpu_ms_per_page / free.cpu_ms_per_page:.2f} times the CPU per page"
    )
    return is_kept


def _fetched(out: Path, suffix: str) -> set[str]:
    """Return what a crawl fetched of the synthetic web."""
    ledger = LocalLedger(out / "state", is_readonly=True)
    ledger.open()
    try:
        rows = (row for _, row in ledger.urls() if row.state is UrlState.DONE and row.archived is not None)
        return {row.url for row in rows if suffix in row.url}
    finally:
        ledger.close()


def measure_ceiling(memory: str, known: int, more: Sequence[str]) -> bool:
    """Crawl a web of many hosts on a filled ledger, without and with a ceiling."""
    runs: list[Run] = []
    sets: list[set[str]] = []
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=HOSTS, pages=PAGES)) as web:
        command = [*GOSSAMER, "crawl", *web.seeds(10), "--json", "--no-progress", "--dns", web.dns_address]
        command += [
            "--allow-network",
            "127.0.0.0/8",
            "--politeness-ms",
            "0",
            "--scope",
            "any",
            "--max-depth",
            "1000",
            *more,
        ]
        begun = Path(folder) / "begun"
        watched([*command, "--out", str(begun), "--max-pages", "10"])
        fill(begun / "state", known)
        for name, options in (("no ceiling", []), (f"--memory {memory}", ["--memory", memory])):
            out = Path(folder) / "out"
            shutil.copytree(begun, out)
            runs.append(watched([*command, "--out", str(out), "--max-pages", "1000000", *options]))
            _show(f"{name}, {known:,} known URLs", runs[-1])
            sets.append(_fetched(out, f":{web.port}/"))
            shutil.rmtree(out)
    is_same = sets[0] == sets[1] and runs[0].pages == runs[1].pages == PAGES
    return _judged(runs[0], runs[1], size_from(memory) or 0, is_same=is_same)


async def _serve_bodies(port_out: int) -> None:
    """Answer every page with one of `BODY_BYTES`."""
    filler = b"<p>Some words of a paragraph that is repeated with <b>a tag</b> and more words, so it is text.</p>\n"
    links = b"".join(b"<a href='/%d'>x</a>" % n for n in range(BODIES_PER_HOST))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"/robots.txt" in head:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                body = (links + head + filler * (BODY_BYTES // len(filler) + 1))[:BODY_BYTES]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES)
                for at in range(0, BODY_BYTES, 65_536):
                    writer.write(body[at : at + 65_536])
                    await writer.drain()
                    await asyncio.sleep(0.001)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0)
    os.write(port_out, str(server.sockets[0].getsockname()[1]).encode())
    await server.serve_forever()


def measure_bodies(memory: str, more: Sequence[str]) -> bool:
    """Crawl hosts whose every page has the largest size, without and with a ceiling."""
    ours, theirs = os.pipe()
    server = os.fork()
    if not server:
        asyncio.run(_serve_bodies(theirs))
    port = os.read(ours, 10).decode()
    runs: list[Run] = []
    try:
        for name, options in (("no ceiling", []), (f"--memory {memory}", ["--memory", memory])):
            with tempfile.TemporaryDirectory() as folder:
                seeds = [f"http://127.0.1.{number + 1}:{port}/0" for number in range(BODY_HOSTS)]
                command = [*GOSSAMER, "crawl", *seeds, "--json", "--no-progress", "--politeness-ms", "0"]
                command += ["--scope", "host", "--out", f"{folder}/out", *more, *options]
                runs.append(watched(command))
            _show(f"{name}, pages of {BODY_BYTES:,} bytes", runs[-1])
    finally:
        os.kill(server, 9)
        os.waitpid(server, 0)
    is_same = runs[0].pages == runs[1].pages == BODY_HOSTS * BODIES_PER_HOST
    return _judged(runs[0], runs[1], size_from(memory) or 0, is_same=is_same)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="What memory a crawl takes, and whether a ceiling holds.")
    parser.add_argument("what", nargs="*", help="entries, ceiling, bodies (all)")
    parser.add_argument("--memory", default="150M", help="the ceiling (150M)")
    parser.add_argument("--known", type=int, default=3_000_000, help="known URLs (3000000)")
    parser.add_argument("--workers", default="1", help="processes (1)")
    arguments = parser.parse_args()
    what = arguments.what or ["entries", "ceiling", "bodies"]
    more = ["--workers", arguments.workers]
    verdicts = []
    if "entries" in what:
        verdicts.append(measure_entries())
    if "ceiling" in what:
        verdicts.append(measure_ceiling(arguments.memory, arguments.known, more))
    if "bodies" in what:
        verdicts.append(measure_bodies(arguments.memory, more))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
