"""The synthetic web as a process: `serve` is that process, `RunningWeb` starts and controls one.

Invariants: the server ends on SIGTERM or SIGINT and writes its log before; one that
`RunningWeb` started also ends when its parent is gone, since its stdin is closed then.
Cost: a start takes about 0.3 s, mostly imports.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from gossamer.foundation.collector import make_full_collections_rare
from gossamer.sim.web.dns import NameFault, NameServer, Zone
from gossamer.sim.web.log import LoggedRequest, decode_log
from gossamer.sim.web.pages import SyntheticWeb
from gossamer.sim.web.server import WebServer
from gossamer.sim.web.server_judge import JudgeRules, ServerVerdict, judge
from gossamer.sim.web.truth import Scope, Truth, find_truth
from gossamer.sim.web.web import PRESETS, WebPlan, preset

SERVER = (sys.executable, "-m", "gossamer.sim.running")
_FLUSH_EVERY_S = 1.0
_STOP_WITHIN_S = 10.0


class Listening(Struct, frozen=True):
    """Where a started web can be found; a server prints it as its first line."""

    port: int
    dns_address: str


async def serve(
    plan: WebPlan,
    port: int = 0,
    dns_port: int = 0,
    log_path: Path | None = None,
    *,
    faults: Mapping[str, NameFault] | None = None,
    on_ready: Callable[[Listening], None] | None = None,
    stops_with_stdin: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT. Port 0 selects a free one; `on_ready` is called with it."""
    _allow_many_files()
    stop = asyncio.Event()
    _stop_on_signals(stop, stops_with_stdin)
    async with WebServer(plan, port, log_path) as server, NameServer(Zone(plan, faults), dns_port) as names:
        if on_ready is not None:
            on_ready(Listening(server.port, names.address))
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), _FLUSH_EVERY_S)
            except TimeoutError:
                server.log.flush()


def _stop_on_signals(stop: asyncio.Event, stops_with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if stops_with_stdin:
        # Nothing is written to it: it becomes readable when the parent closes it or dies.
        loop.add_reader(0, stop.set)


def _allow_many_files() -> None:
    """Raise the limit of open files: a crawl of 12,000 hosts has thousands of connections, the usual limit is 1,024."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gossamer.sim.running", description="Serve the synthetic web.")
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--plan", metavar="JSON", help="a whole plan instead of a preset")
    parser.add_argument("--faults", metavar="JSON", default="{}", help="names that misbehave in DNS")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dns-port", type=int, default=0)
    parser.add_argument("--log", type=Path, metavar="FILE", help="append the requests to this file, one JSON line each")
    parser.add_argument("--stop-with-stdin", action="store_true", help="end when stdin is closed")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve in the foreground; the first line on stdout is a `Listening` as JSON."""
    import uvloop

    args = _parse(argv)
    make_full_collections_rare()  # a request that is read late looks like one that was sent late
    plan = msgspec.json.decode(args.plan, type=WebPlan) if args.plan else preset(args.preset)
    faults = msgspec.json.decode(args.faults, type=dict[str, NameFault])
    uvloop.run(
        serve(
            plan,
            args.port,
            args.dns_port,
            args.log,
            faults=faults,
            on_ready=lambda listening: print(msgspec.json.encode(listening).decode(), flush=True),
            stops_with_stdin=args.stop_with_stdin,
        )
    )
    return 0


class RunningWeb:
    """A web in a separate process, with its name server; `with` starts and stops it."""

    def __init__(
        self,
        plan: WebPlan,
        *,
        port: int = 0,
        dns_port: int = 0,
        log_path: Path | None = None,
        faults: Mapping[str, NameFault] | None = None,
    ) -> None:
        self.plan = plan
        self.port = port
        self.dns_address = ""
        self._options = ["--stop-with-stdin", "--plan", msgspec.json.encode(plan).decode(), "--port", str(port)]
        self._options += ["--dns-port", str(dns_port), "--faults", msgspec.json.encode(faults or {}).decode()]
        if log_path is not None:
            self._options += ["--log", str(log_path)]
        self._process: subprocess.Popen[bytes] | None = None
        self._web: SyntheticWeb | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until it listens."""
        self._process = self._launched([*SERVER, *self._options])
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"synthetic web: the server ended with status {self._process.wait()} before it listened")
        listening = msgspec.json.decode(line, type=Listening)
        self.port = listening.port
        self.dns_address = listening.dns_address
        self._web = SyntheticWeb(self.plan, self.port)

    def _launched(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - no shell

    def stop(self) -> None:
        """End that process; its log is written then. May be called twice."""
        process = self._process
        self._process = None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def web(self) -> SyntheticWeb:
        """The same web in this process: its sites, pages and truth."""
        assert self._web is not None, "not started"
        return self._web

    def seeds(self, count: int | None = None) -> list[str]:
        """Home pages of the first hosts; of all if None."""
        return self.plan.seeds(self.port, count)

    def truth(self, seeds: Sequence[str] | None = None, scope: Scope = "domain", *, sitemaps: bool = True) -> Truth:
        """What can be found from the seeds (None: all homes)."""
        return find_truth(self.web, self.seeds() if seeds is None else seeds, scope, sitemaps=sitemaps)

    def log(self) -> list[LoggedRequest]:
        """All requests that the server has seen."""
        return decode_log(self._ask("/_log"))

    def forget(self) -> None:
        """Empty the server's log, for a second crawl."""
        self._ask("/_reset")

    def pass_time(self, epoch: int) -> None:
        """Change the changing pages: each epoch has its own text."""
        self._ask(f"/_epoch?{epoch}")

    def judge(self, rules: JudgeRules | None = None, truth: Truth | None = None) -> ServerVerdict:
        """Judge what the server has seen so far. Computed here, so that the server is not delayed."""
        return judge(self.web, self.log(), rules or JudgeRules(), truth)

    def _ask(self, target: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", target)
            return connection.getresponse().read()
        finally:
            connection.close()


if __name__ == "__main__":
    sys.exit(main())
