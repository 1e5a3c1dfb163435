"""A node of a large crawl is killed: when are its hosts fetched by others, and when is all of it restored?

    python -m benchmarks.takeover [--ledger redis|postgresql|kafka] [--urls-per-node N] [--nodes N]

Fills a ledger with the rows of a crawl (known URLs, of which every fifth is queued), starts nodes, and kills one. All
of them run on this machine, so on few cores they and the server compete for CPU time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from tests.servers import engines
from tests.servers.kafka_cassandra import running_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import free_port, running

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.owners import Owners
from gossamer.backends.registry import open_shared
from gossamer.core.ledger import rows
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import SHARD_COUNT, domain_id, host_id, shard_of
from gossamer.model.figures import Totals
from gossamer.model.records import DomainRecord, HostRecord, QueuedUrl, UrlState
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, NodeId, NodeView, SharedLedger
from gossamer.runtime.cluster.node_agent import RENEWALS_PER_LEASE

HOSTS_PER_NODE = 100
QUEUED_SHARE = 5  # every fifth
ROWS_PER_COMMIT = 60_000
LEASE_S = 10.0
NAME = "large"
MANY = ("--max-hosts-per-address", "0", "--max-pages", "100000000")  # all hosts are at one address


class Server(Struct, frozen=True):
    """A ledger, and who owns its shards."""

    url: str
    owners: Callable[[], dict[int, tuple[str, str]]]  # shard -> name and incarnation


@contextmanager
def _redis(folder: Path) -> Iterator[Server]:
    program = engines.redis_or_valkey()
    with running(program, folder / "redis") as server:
        client = server.client()

        def owners() -> dict[int, tuple[str, str]]:
            found: dict[bytes, bytes] = client.hgetall(f"gossamer:{NAME}:owners")  # type: ignore[assignment]
            named = {int(shard): owner.decode().rpartition("/") for shard, owner in found.items()}
            return {shard: (name, incarnation) for shard, (name, _, incarnation) in named.items()}

        yield Server(f"{server.url}/{NAME}", owners)


@contextmanager
def _postgresql(_: Path) -> Iterator[Server]:
    with running_postgres() as server:

        def owners() -> dict[int, tuple[str, str]]:
            with server.connection() as connection:
                found = connection.execute(f"SELECT shard, name, incarnation FROM gossamer_{NAME}.owners")
                return {shard: (name, incarnation) for shard, name, incarnation in found}

        yield Server(f"{server.url}/{NAME}", owners)


@contextmanager
def _kafka(folder: Path) -> Iterator[Server]:
    with running_both(folder) as both:
        url = both.prepared(NAME)
        database = Keyspace(place_of(url, {}))

        def owners() -> dict[int, tuple[str, str]]:
            return {shard: (each.name, each.incarnation) for shard, each in Owners(database).read().items()}

        yield Server(url, owners)
        database.close()


LEDGERS = {"redis": _redis, "postgresql": _postgresql, "kafka": _kafka}


def main() -> int:
    """Measure one take-over."""
    engines.allow(*engines.ENGINES)
    parser = argparse.ArgumentParser(prog="takeover", description=__doc__)
    parser.add_argument("--ledger", choices=LEDGERS, default="redis")
    parser.add_argument("--urls-per-node", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gossamer-takeover-") as scratch:
        folder = Path(scratch)
        with LEDGERS[arguments.ledger](folder) as server, _web(folder / "requests.log") as (http, dns):
            _measure(server, folder, http, dns, arguments)
    return 0


@contextmanager
def _web(log: Path) -> Iterator[tuple[int, int]]:
    http, dns = free_port(), free_port()
    with log.open("wb") as out:
        web = subprocess.Popen([sys.executable, "-m", "benchmarks.any_web", str(http), str(dns)], stdout=out)
        try:
            yield http, dns
        finally:
            web.kill()


def _measure(server: Server, folder: Path, http: int, dns: int, arguments: argparse.Namespace) -> None:
    names = [f"n{number}" for number in range(arguments.nodes)]
    nodes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        # The first node starts the crawl, so that its settings are in the ledger; then it makes room for the rows.
        nodes["n0"] = _node(server, folder, "n0", http, dns, seed=True)
        ledger = open_shared(server.url)
        _wait(lambda: (record := ledger.record()) is not None and len(ledger.nodes()) > 0 and record)
        nodes["n0"].terminate()
        nodes["n0"].wait()
        took_s, count = _fill(ledger, http, arguments.nodes * HOSTS_PER_NODE, arguments.urls_per_node * arguments.nodes)
        print(f"filled with {count:,} rows in {took_s:.0f} s", flush=True)
        began = time.monotonic()
        for name in names:
            nodes[name] = _node(server, folder, name, http, dns)
        _wait(lambda: _is_whole(ledger, server, len(names)))
        whole_s = time.monotonic() - began
        print(f"{len(names)} nodes had restored everything {whole_s:.1f} s after they were started", flush=True)
        log = folder / "requests.log"
        _wait(lambda: len(_requests(log)) > 2 * HOSTS_PER_NODE)
        victim = names[-1]
        hosts = _hosts_of(ledger, server, victim)
        nodes[victim].kill()
        killed = time.monotonic()
        _wait(lambda: _owned(server, _live(ledger)) == SHARD_COUNT and len(_live(ledger)) == len(names) - 1)
        # What nodes report is up to a renewal old: wait for reports from after the take.
        reported = time.monotonic() + LEASE_S / RENEWALS_PER_LEASE
        _wait(lambda: time.monotonic() > reported and _is_whole(ledger, server, len(names) - 1))
        restored_s = time.monotonic() - killed
        _wait(lambda: {host for at, host in _requests(log) if at > killed + 1} >= hosts, 120.0)
        first: dict[str, float] = {}
        for at, host in _requests(log):
            if at > killed + 1 and host in hosts:
                first.setdefault(host, at - killed)
        times = sorted(first.values())
        print(f"a node was killed; lease {LEASE_S:g} s; it had {len(hosts)} hosts")
        print(f"its hosts were fetched by others after {times[0]:.1f} s (first), "
              f"{times[len(times) // 2]:.1f} s (median), {times[-1]:.1f} s (last)")  # fmt: skip
        print(f"everything was restored after {restored_s:.1f} s")
        ledger.close()
    finally:
        for process in nodes.values():
            process.kill()


def _node(
    server: Server, folder: Path, name: str, http: int, dns: int, *, seed: bool = False
) -> subprocess.Popen[bytes]:
    url = server.url
    how = ["join", url]
    if seed:
        how = ["crawl", f"http://h0.d0.test:{http}/", "--ledger", url, "--scope", "any", "--politeness-ms", "1000"]
        how += ["--dns", f"127.0.0.1:{dns}", "--allow-network", "127.0.0.0/8", "--address-connections", "0", *MANY]
    command = [sys.executable, "-m", "gossamer", *how, "--node", name, "-o", str(folder / name), "--no-progress"]
    return subprocess.Popen([*command, "--lease", str(LEASE_S)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _fill(ledger: SharedLedger, http: int, hosts: int, urls: int) -> tuple[float, int]:
    """Store the rows of a crawl that has run for long."""
    began, node, number, written = time.monotonic(), NodeId("filler", "1"), 0, 0
    ledger.join(node, "", 3600.0)
    epochs = ledger.take(node, range(SHARD_COUNT))
    changes: dict[int, list[Row]] = {}
    pending = 0
    per_host = urls // hosts
    for each in range(hosts):
        host, domain = f"h{each}.d{each}.test", f"d{each}.test"
        shard = shard_of(host_id(host))
        found = [
            Row("hosts", host_id(host), rows.encode(HostRecord(host, domain, queued=per_host // QUEUED_SHARE))),
            Row("domains", domain_id(domain), rows.encode(DomainRecord(domain, hosts=1))),
        ]
        for page in range(per_host):
            link = link_to(f"http://{host}:{http}/section-{page % 40}/an-article-about-something-{page}.html")
            queued = QueuedUrl(link.url, link.id, link.host, 0, each * per_host + page + 1, 1)
            record = record_of(queued)
            if page % QUEUED_SHARE:
                record = replace(record, state=UrlState.DONE, outcome="ok", status=200, fetched_at=1.7e9, visits=1)
            else:
                found.append(Row("queue", rows.queue_key(queued), b""))
            found.append(Row("urls", link.id, rows.encode(record)))
        changes[shard] = sorted(changes.get(shard, []) + found)
        pending += len(found)
        if pending >= ROWS_PER_COMMIT or each == hosts - 1:
            number += 1
            ledger.commit(node, Commit(number, Totals(), {shard: epochs[shard] for shard in changes}, changes))
            written += pending
            changes, pending = {}, 0
    ledger.leave(node)
    return time.monotonic() - began, written


def _is_whole(ledger: SharedLedger, server: Server, count: int) -> bool:
    """Return whether this many nodes are alive, own all shards, and have restored them."""
    live = _live(ledger)
    if len(live) != count or any(view.status.restoring or not view.status.queued for view in live.values()):
        return False
    return _owned(server, live) == SHARD_COUNT


def _live(ledger: SharedLedger) -> dict[NodeId, NodeView]:
    return {node: view for node, view in ledger.nodes().items() if view.is_live}


def _owned(server: Server, nodes: Collection[NodeId]) -> int:
    live = {(node.name, node.incarnation) for node in nodes}
    return sum(owner in live for owner in server.owners().values())


def _hosts_of(ledger: SharedLedger, server: Server, name: str) -> set[str]:
    shards = [shard for shard, (owner, _) in server.owners().items() if owner == name]
    found = ledger.scan(shards, ["hosts"])
    return {rows.decode_host(row.value or b"").name for some in found for row in some}


def _requests(log: Path) -> list[tuple[float, str]]:
    lines = log.read_text().splitlines()
    return [(float(at), host) for at, host, *_ in (line.split(" ") for line in lines if line.count(" ") == 2)]


def _wait(is_so: Callable[[], object], longest_s: float = 240.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        if time.monotonic() > until:
            raise SystemExit("it did not happen")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
