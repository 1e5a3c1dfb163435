"""Where does the time of a real page go? `gossamer bench --stages` over the documentation that the rivals crawl.

python -m benchmarks.peers.stages [options of gossamer bench]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.measure import RIVAL_CORE, pinned
from benchmarks.peers.pages import START, build_root
from benchmarks.peers.rivals import GOSSAMER
from benchmarks.peers.server import Nginx


def main() -> int:
    """Serve, measure, print."""
    with tempfile.TemporaryDirectory(prefix="gossamer-stages-") as name:
        work = Path(name)
        root = build_root(work)
        (work / "nginx").mkdir()
        with Nginx(work / "nginx", root) as server:
            command = [
                *(*GOSSAMER, "bench", "--stages", server.url(START)),
                *("--pages", "100000", "--scope", "host", "--politeness-ms", "0", "--host-connections", "16"),
                *("--max-depth", "1000", "--include-pattern", "/admin/", *sys.argv[1:]),
            ]
            with pinned(RIVAL_CORE):
                return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
