"""The broad web: thousands of hosts, a few pages each, a new connection for every request.

nginx serves all hosts without keep-alive, names come from a server of ours. What a connection
costs Gossamer is all of its CPU that is not work on the page (the stages from decoding to the
commit): libcurl, names, addresses, the event loop. It is held against wrk, which makes new
connections to the same server and does nothing else. Over TLS both make full handshakes (see server.py);
Gossamer verifies the certificate as always, wrk does not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median

import msgspec
from benchmarks.peers.floor import cost_of_request_us
from benchmarks.peers.measure import SERVER_CORE, pinned, run_pinned
from benchmarks.peers.server import Nginx
from msgspec import Struct

from gossamer.cli.bench.bench import BenchFigures

DOMAINS, HOSTS_PER_DOMAIN, PAGES_PER_HOST = 30, 100, 3
ADDRESSES = tuple(f"127.0.1.{number}" for number in range(1, 9))
MAX_TIMES_WRK = 2.5
_WORDS_PER_PAGE = 1200
_TIMES_LINKED = 6


class Broad(Struct, frozen=True):
    """What a broad crawl took, in CPU microseconds."""

    kind: str
    hosts: int
    pages: int
    requests: int
    page_us: float  # all of it, a page, as measured without clocks
    work_us: float  # of that, what the page itself takes
    connection_us: float  # the rest, a request
    wrk_us: float  # what wrk takes for a request on a new connection

    @property
    def times_wrk(self) -> float:
        """Return what a connection costs in wrk's."""
        return self.connection_us / self.wrk_us

    @staticmethod
    def table(rows: list[Broad]) -> tuple[list[str], list[list[str]]]:
        """Return head and rows of a table."""
        head = ["broad, new connections", "hosts", "pages", "requests", "CPU µs per page", "page work"]
        head += ["a connection", "wrk's", f"times (most {MAX_TIMES_WRK})"]
        cells = [
            [
                *(one.kind, f"{one.hosts:,}", f"{one.pages:,}", f"{one.requests:,}", f"{one.page_us:.0f}"),
                *(f"{one.work_us:.0f}", f"{one.connection_us:.0f}", f"{one.wrk_us:.0f}", f"{one.times_wrk:.2f}"),
            ]
            for one in rows
        ]
        return head, cells


class _Web(Struct, frozen=True):
    """The broad web while it is served."""

    server: Nginx
    hosts: list[str]
    dns: str
    work: Path

    def origin(self, kind: str, host: str) -> str:
        port = self.server.port if kind == "http" else self.server.tls_port
        return f"{kind}://{host}:{port}"


def measure_broad(work: Path, rounds: int) -> list[Broad]:
    """Crawl the broad web, plain and over TLS, so many times each; the median counts."""
    folder = work / "broad"
    folder.mkdir()
    hosts = [f"h{host}.d{domain}.test" for domain in range(DOMAINS) for host in range(HOSTS_PER_DOMAIN)]
    names = tuple(f"*.d{domain}.test" for domain in range(DOMAINS))
    server = Nginx(
        folder, folder / "root" / "$host", addresses=ADDRESSES, names=names, keeps_alive=False, more="index index.html;"
    )
    _write_pages(folder / "root", hosts)
    table = {host: ADDRESSES[number % len(ADDRESSES)] for number, host in enumerate(hosts)}
    (folder / "hosts.json").write_bytes(msgspec.json.encode(table))
    with server, _name_server(folder / "hosts.json") as dns:
        web = _Web(server, hosts, dns, work)
        return [_measure(kind, web, rounds) for kind in ("http", "https")]


def _measure(kind: str, web: _Web, rounds: int) -> Broad:
    web.server.count_from_here()
    plain = _bench(kind, web)
    served = web.server.served()
    again = [_bench(kind, web) for _ in range(rounds - 1)]
    # Work and connection are told apart within one run: two runs differ by more than a part of them.
    profiles, wrk_us = [], []
    for _ in range(rounds):  # by turns, since the machine is not the same from one minute to the next
        profiles.append(_profile(kind, web))
        origin = web.origin(kind, ADDRESSES[0])
        wrk_us.append(cost_of_request_us(origin, ["/index.html"], new_connections=True, seconds=2, host=web.hosts[0]))
    return Broad(
        kind=kind,
        hosts=len(web.hosts),
        pages=plain.pages,
        requests=served.requests,
        page_us=1000 * median(figures.cpu_ms_per_page for figures in (plain, *again)),
        work_us=median(work_us for _, work_us in profiles),
        connection_us=median(whole_us - work_us for whole_us, work_us in profiles) * plain.pages / served.requests,
        wrk_us=median(wrk_us),
    )


def _profile(kind: str, web: _Web) -> tuple[float, float]:
    """Return what a page takes, and what of it is work on the page."""
    profile = _bench(kind, web, "--stages").stages
    assert profile is not None
    return profile.whole_us, sum(share.us for name, share in profile.stages.items() if name != "fetch")


def _bench(kind: str, web: _Web, *more: str) -> BenchFigures:
    with tempfile.TemporaryDirectory(dir=web.work) as name:
        folder = Path(name)
        seeds = folder / "seeds.txt"
        seeds.write_text("\n".join(web.origin(kind, host) + "/index.html" for host in web.hosts), "utf-8")
        command = [
            *(sys.executable, "-m", "gossamer", "bench", str(seeds), "--ca-file", str(web.server.ca_file)),
            *("--dns", web.dns),
            *("--allow-network", "127.0.0.0/8", "--politeness-ms", "0", "--address-connections", "0"),
            *("--scope", "any", "--pages", "1000000", "--json", *more),
        ]
        taken = run_pinned(command, folder, max_s=300)
    if not taken.is_good:
        raise SystemExit(f"peers: the broad crawl failed: {taken.output[-500:]}")
    return msgspec.json.decode(taken.output.splitlines()[-1], type=BenchFigures)


@contextmanager
def _name_server(hosts: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.peers.names", str(hosts)]
    with pinned(SERVER_CORE):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def _write_pages(root: Path, hosts: list[str]) -> None:
    """Write pages that have words of their own, and links to the others of their host."""
    random = Random(1)
    letters = "aeioubdfgklmnprstvz"
    words = ["".join(random.choices(letters, k=random.randint(3, 9))) for _ in range(3000)]
    names = ["index.html", *(f"{number}.html" for number in range(1, PAGES_PER_HOST))]
    for host in hosts:
        folder = root / host
        folder.mkdir(parents=True)
        for name in names:
            links = " ".join(f'<a href="{other}#{random.choice(words)}">{other}</a>' for other in names * _TIMES_LINKED)
            text = " ".join(random.choices(words, k=_WORDS_PER_PAGE))
            page = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{host} {name}</title><p>{links}<p>{text}"
            (folder / name).write_text(page, "utf-8")
