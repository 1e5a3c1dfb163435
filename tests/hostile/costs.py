"""What does one hostile case cost? Each is crawled alone, and has bounds on CPU time, memory and disk.

A case's cost is what its crawl takes more than a crawl of one plain page: CPU time of the process (and of those that
it started), its peak of resident memory, and what its folder has on disk. Disk is compared with what the
server sent: an answer may be stored several times (archive, files, events, ledger), but not many times.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from tests.e2e.preloaded import GOSSAMER
from tests.hostile.crawling import OPTIONS
from tests.hostile.measuring import Usage, bytes_in, measure
from tests.hostile.serving import HostileServer

MAX_CPU_S = 1.5  # measured: 0.35 for a million links; the rest is for machines that are slower or busy
MAX_GROWTH_BYTES = 100_000_000  # measured: 25 MB for a PDF file of 3 MB, 11 for a page of 5 MB
# Per byte that the server sent: the archive and the second store each have the answer once. Rows, events and the
# index of a page take up to 2 KB, whatever its size, and the second store has it decoded, up to the limit of an answer.
MAX_WRITTEN_PER_BYTE = 2
MAX_WRITTEN_PER_REQUEST = 12_000  # blocks of the file system, one at least for each file
MAX_DECODED_BYTES = 5_100_000  # of the largest bomb, decoded up to `--max-bytes`
CRAWLS_AT_ONCE = 4
LIMIT_S = 60.0


class Cost(Struct, frozen=True):
    """What the crawl of one host took."""

    name: str
    error: str  # empty if the crawl ended as it should
    cpu_s: float
    peak_bytes: int
    written_bytes: int
    sent_bytes: int
    requests: int

    def offences(self, bare: Cost) -> list[str]:
        """Return which bounds the case exceeds, compared with a crawl of one plain page."""
        cpu_s, growth = self.cpu_s - bare.cpu_s, self.peak_bytes - bare.peak_bytes
        written = self.written_bytes - bare.written_bytes
        max_written = (
            MAX_WRITTEN_PER_BYTE * self.sent_bytes + MAX_WRITTEN_PER_REQUEST * self.requests + MAX_DECODED_BYTES
        )
        checks = (
            (bool(self.error), self.error),
            (cpu_s > MAX_CPU_S, f"{cpu_s:.1f} s of CPU, {MAX_CPU_S:g} allowed"),
            (growth > MAX_GROWTH_BYTES, f"{growth:,} bytes of memory, {MAX_GROWTH_BYTES:,} allowed"),
            (written > max_written, f"{written:,} bytes written for {self.sent_bytes:,}, {max_written:,} allowed"),
        )
        return [f"{self.name}: {text}" for is_exceeded, text in checks if is_exceeded]


def cost_of(
    server: HostileServer, name: str, folder: Path, *, program: Sequence[str] = GOSSAMER, limit_s: float = LIMIT_S
) -> Cost:
    """Crawl one host of a server and return what that took."""
    out = folder / name
    sent_before, requests_before = server.sent_bytes[name], len(server.requests(name))
    usage = measure(
        [
            *(*program, "crawl", f"http://{name}.test:{server.port}/", *OPTIONS, "--out", str(out)),
            *("--dns", server.dns_address, "--allow-network", "127.0.0.1/32"),
        ],
        limit_s,
    )
    return Cost(
        name=name,
        error=_error_of(usage),
        cpu_s=usage.cpu_s,
        peak_bytes=usage.peak_bytes,
        written_bytes=bytes_in(out),
        sent_bytes=server.sent_bytes[name] - sent_before,
        requests=len(server.requests(name)) - requests_before,
    )


def _error_of(usage: Usage) -> str:
    """Return what is wrong with the end of a crawl. Status 1 is right if nothing could be fetched, with a summary."""
    if usage.is_overdue:
        return f"not over after {usage.seconds:.0f} s"
    is_usual = usage.status in (0, 1) and usage.stdout.rstrip().endswith("}") and "Traceback" not in usage.stderr
    return "" if is_usual else f"status {usage.status}: {usage.stderr[-300:]}"


def costs_of(server: HostileServer, names: Sequence[str], folder: Path) -> list[Cost]:
    """Return the costs of several hosts, each crawled alone, some at a time: most of them wait."""
    with ThreadPoolExecutor(CRAWLS_AT_ONCE) as threads:
        return list(threads.map(lambda name: cost_of(server, name, folder), names))
