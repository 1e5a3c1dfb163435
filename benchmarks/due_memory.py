"""How much memory do URLs take that are due in the future? A crawl goes on beside few of them, and beside millions.

The ledger is filled up with fetched URLs (500 per host) whose next visit is weeks ahead; then the crawl goes on with
`--revisit` for some seconds, fetches what is new and what is due, and waits. Private memory at its peak is compared.

    python benchmarks/due_memory.py [--known 10000,3000000] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from gossamer.backends.local.ledger import LocalLedger
from gossamer.core.ledger.catalog import record_of
from gossamer.core.ledger.tables import DUE, DUE_HOSTS, HOST_VISITS, SHARD_VISITS
from gossamer.core.revisit.page import Visit, VisitFound, first_state
from gossamer.core.revisit.price import cell_of
from gossamer.core.revisit.priors import DEFAULT
from gossamer.core.revisit.stored import DueHost, DueUrl, HostVisits, ShardVisits
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of
from gossamer.model.records import HostRecord, QueuedUrl, Revisit, UrlState
from gossamer.sim.running import RunningWeb
from gossamer.sim.web.web import preset

URLS_PER_HOST = 500
HOSTS_PER_COMMIT = 100
MAX_BYTES_PER_URL = 20
DAY_S = 86_400
GOSSAMER = (sys.executable, "-m", "gossamer.cli.main")


class Stage(Struct, frozen=True):
    """A crawl that went on with this many URLs due in the future."""

    known: int
    private_bytes: int
    visits: int
    cpu_s: float


def fill(state: Path, known: int) -> None:
    """Add URLs to a ledger that are due in two to four weeks."""
    ledger = LocalLedger(state)
    ledger.open()
    now = int(time.time())
    packed = first_state(Visit(float(now), VisitFound.CHANGED), DEFAULT)
    shards = dict.fromkeys(range(SHARD_COUNT), 0)
    for number in range(known // URLS_PER_HOST):
        host = f"h{number}.test"
        links = [link_to(f"http://{host}/articles/{page}/some-words-in-a-path") for page in range(URLS_PER_HOST)]
        batch = [QueuedUrl(link.url, link.id, host, priority=1, seq=page, depth=1) for page, link in enumerate(links)]
        for page, url in enumerate(ledger.admit(batch)):
            row = record_of(url)
            row.state, row.status, row.outcome, row.content_type = UrlState.DONE, 200, "ok", "text/html"
            at = now + 14 * DAY_S + (page * 7919 + number) % (14 * DAY_S)
            row.revisit = Revisit(packed.packed(), at, bytes(70), bytes(7))
            ledger.finish(url, row)
            ledger.put_record(DUE, DueUrl(url.id, at))
        first_at = now + 14 * DAY_S
        ledger.put_record(DUE_HOSTS, DueHost(host, first_at))
        ledger.put_record(HOST_VISITS, HostVisits(host, first_at))
        ledger.put_host(HostRecord(host, host, queued=0, pages=URLS_PER_HOST, delay_s=1.0))
        shards[shard_of(host_id(host))] += URLS_PER_HOST
        if number % HOSTS_PER_COMMIT == HOSTS_PER_COMMIT - 1:
            ledger.commit()
    page_class, shape, days = cell_of(packed.page_class, packed.rate)
    for shard, count in shards.items():
        ledger.put_record(SHARD_VISITS, ShardVisits(shard, [(int(page_class), shape, days, count)], is_enrolled=True))
    ledger.commit()
    ledger.close()


def crawl(web: RunningWeb, out: Path, *more: str) -> dict[str, float]:
    """Crawl, or go on; return the summary."""
    done = subprocess.run(
        [
            *(*GOSSAMER, "crawl", *web.seeds(10), "--out", str(out), "--json", "--no-progress", "--scope", "any"),
            *("--dns", web.dns_address, "--allow-network", "127.0.0.0/8", "--politeness-ms", "10", *more),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    summary: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return summary


def measure(known: int, seconds: float) -> Stage:
    """Begin a crawl, fill its ledger, and let it go on."""
    with tempfile.TemporaryDirectory() as folder, RunningWeb(preset("plain", domains=50, pages=2000)) as web:
        out = Path(folder) / "out"
        begun = crawl(web, out, "--max-pages", "10")
        fill(out / "state", known)
        again = ("--revisit", "--revisit-min", "3", "--revisit-max", "2592000", "--max-time", str(seconds))
        summary = crawl(web, out, "--max-pages", "2000", *again)
    visits = json.loads(json.dumps(summary["visits"]))
    cpu_s = summary["cpu_seconds"] - begun["cpu_seconds"]
    return Stage(known, int(summary["peak_private_bytes"]), int(visits["all"]), cpu_s)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="The memory of URLs that are due in the future.")
    parser.add_argument("--known", default="10000,3000000", help="URLs that are due in the future, from few to many")
    parser.add_argument("--seconds", type=float, default=20.0, help="for which the crawl goes on (20)")
    arguments = parser.parse_args()
    stages = []
    for known in map(int, arguments.known.split(",")):
        stages.append(measure(known, arguments.seconds))
        stage = stages[-1]
        print(
            f"{known:>10,} URLs due in the future: {stage.private_bytes / 1e6:.1f} MB private at most, "
            f"{stage.visits:,} other visits, {stage.cpu_s:.1f} s of CPU",
            flush=True,
        )
    few, many = stages[0], stages[-1]
    per_url = (many.private_bytes - few.private_bytes) / max(many.known - few.known, 1)
    is_met = per_url <= MAX_BYTES_PER_URL
    print(f"{per_url:.1f} bytes per URL (at most {MAX_BYTES_PER_URL}): {'met' if is_met else 'NOT MET'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
