"""What does a crawl of one page cost beside the page? CPU time of the whole process, beyond that of an empty one.

`gossamer crawl` of one page on loopback (start, session, request, report, exit) and `python -c pass` run by turns; the
median of each is printed, with the difference and the number of modules that were imported.

    python benchmarks/startup.py [--rounds N] [--python PATH]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = b"<!doctype html><title>One page</title><p>The only page of this site, with no link to another one."
MODULES = "import sys; from gossamer.cli.main import main; main(sys.argv[1:]); print(len(sys.modules))"


class OnePage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_page = self.path == "/"
        body = PAGE if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def cpu_ms(command: Sequence[str]) -> float:
    """Run a program; return its CPU time with that of its children, user and system."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"startup: exit status {process.returncode}: {' '.join(command)}")
    return 1000 * (used.ru_utime + used.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(prog="startup", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--python", default=sys.executable, help="an interpreter in whose environment Gossamer is")
    arguments = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), OnePage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    crawl = ["crawl", f"http://127.0.0.1:{server.server_port}/", "--allow-network", "127.0.0.0/8"]
    empty, one_page = [], []
    with tempfile.TemporaryDirectory(prefix="gossamer-startup-") as folder:
        for number in range(arguments.rounds):
            out = ["--out", str(Path(folder) / str(number))]
            empty.append(cpu_ms([arguments.python, "-c", "pass"]))
            one_page.append(cpu_ms([arguments.python, "-m", "gossamer", *crawl, *out]))
        counted = [arguments.python, "-c", MODULES, *crawl, "--out", f"{folder}/counted"]
        modules = subprocess.run(counted, check=True, capture_output=True, text=True).stdout.split()[-1]
    python, gossamer = statistics.median(empty), statistics.median(one_page)
    print(f"python -c pass                {python:6.0f} ms of CPU (median of {arguments.rounds})")
    print(f"gossamer crawl of one page    {gossamer:6.0f} ms, {modules} modules")
    print(f"beyond Python itself          {gossamer - python:6.0f} ms")


if __name__ == "__main__":
    main()
