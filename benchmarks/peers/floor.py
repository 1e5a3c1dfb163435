"""The floor: what does it cost to fetch these pages and do nothing with them?

wrk asks for the same pages in turn, on the rivals' core. CPU per request, on kept connections
and on new ones, plain and over TLS. A new TLS connection is a full handshake, since the server lets
nobody resume; wrk does not verify the certificate.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.measure import run_pinned

CONNECTIONS = 16
_SCRIPT = """\
local requests = {{}}
local at = 0
init = function(args)
  for path in io.lines("{paths}") do
    requests[#requests + 1] = wrk.format("GET", path, {{["Host"] = "{host}"{close}}})
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
"""
_REQUESTS = re.compile(r"(\d+) requests in")


def cost_of_request_us(
    url: str, paths: Sequence[str], *, new_connections: bool, seconds: int = 4, host: str = ""
) -> float:
    """Return CPU microseconds per request; `url` is the origin, `host` the name to ask for where that differs."""
    if shutil.which("wrk") is None:
        raise SystemExit("peers: wrk is not installed; expected: make bench-tools")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "paths").write_text("\n".join(paths) + "\n", "utf-8")
        host = host or url.split("://")[1].rstrip("/")
        close = ', ["Connection"] = "close"' if new_connections else ""
        script = folder / "pages.lua"
        script.write_text(_SCRIPT.format(paths=folder / "paths", host=host, close=close), "utf-8")
        taken = run_pinned(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url], folder)
    found = _REQUESTS.search(taken.output)
    if not taken.is_good or found is None:
        raise SystemExit(f"peers: wrk failed: {taken.output[-300:]}")
    return 1e6 * taken.cpu_s / int(found[1])


def floors(origin: str, tls_origin: str, paths: Sequence[str], seconds: int = 4) -> dict[str, float]:
    """Return CPU microseconds per request by kind of connection."""
    return {
        "kept connection": cost_of_request_us(origin, paths, new_connections=False, seconds=seconds),
        "new connection": cost_of_request_us(origin, paths, new_connections=True, seconds=seconds),
        "kept TLS connection": cost_of_request_us(tls_origin, paths, new_connections=False, seconds=seconds),
        "new TLS connection": cost_of_request_us(tls_origin, paths, new_connections=True, seconds=seconds),
    }
