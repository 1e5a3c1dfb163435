"""How many instructions does a page take, beside another version? Under valgrind: exact to half a percent, and slow.

    python -m benchmarks.instructions CHECKOUT [CHECKOUT …] [-- OPTIONS OF CRAWL]

Each is a checkout with its own `.venv`, as for `benchmarks.versions`. Time on a shared machine differs from crawl to
crawl, the number of instructions hardly does; but not every instruction takes the same time. Needs valgrind.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from compileall import compile_dir
from pathlib import Path

from benchmarks.peers.pages import LONELY, START, build_root
from benchmarks.peers.rivals import gossamer_command
from benchmarks.peers.server import Nginx

MAX_S = 3_600.0
# Valgrind cannot map a store of the usual size. On a busy machine the event loop is watched every 5 ms.
_PROGRAM = """
from gossamer.backends.local import store
store.MAP_BYTES = 1 << 31
try:
    from gossamer.runtime.watch import vitals
except ImportError:  # of a version before its packages were divided
    from gossamer.runtime import vitals
vitals._CONTENDED_S = 1e9
from gossamer.cli.main import run_program
run_program()
"""


def instructions(checkout: Path, url: str, work: Path, more: list[str]) -> tuple[int, int]:
    """Return the instructions of a crawl, and its pages."""
    python = str(checkout.resolve() / ".venv" / "bin" / "python")
    with tempfile.TemporaryDirectory(dir=work) as name:
        out = Path(name) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command = [*valgrind, python, "-c", _PROGRAM, *gossamer_command(url, Path(name), *more)[3:]]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MAX_S, check=False)
        collected = re.search(r"Collected : (\d+)", done.stderr)
        if collected is None:
            raise SystemExit(f"instructions: a crawl failed: {done.stderr[-1000:]}")
        pages = int(re.findall(r'"pages": ?(\d+)', done.stdout)[-1])
        return int(collected[1]), pages


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description="Instructions per page.")
    parser.add_argument("checkouts", type=Path, nargs="+", help="checkouts with a .venv; the first is the other")
    arguments, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="gossamer-instructions-") as name:
        work = Path(name)
        root = build_root(work)
        (work / "nginx").mkdir()
        first = 0.0
        with Nginx(work / "nginx", root, core=None) as server:
            for checkout in arguments.checkouts:
                compile_dir(checkout / "src", quiet=2)  # else the start counts it
                start, _ = instructions(checkout, server.url(LONELY), work, more)
                whole, pages = instructions(checkout, server.url(START), work, more)
                page = (whole - start) / (pages - 1)
                first = first or page
                ratio = page / first
                print(
                    f"{checkout}: {page / 1e6:.3f} million per page, {ratio:.3f}; start {start / 1e6:.0f}", flush=True
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
