"""A Prometheus of a test's own, which scrapes one address every second."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_S = 60.0


class Prometheus:
    """A server that runs."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def query(self, expression: str) -> dict[str, float]:
        """Return the values of an expression; by the labels that are not of the target, separated by commas."""
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{asked}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        return {_own_labels(one["metric"]): float(one["value"][1]) for one in found}

    def is_ready(self) -> bool:
        """Return whether it answers."""
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _own_labels(metric: dict[str, str]) -> str:
    return ",".join(value for name, value in sorted(metric.items()) if name not in ("__name__", "instance", "job"))


@contextmanager
def running(program: str, folder: Path, target: str, rules: Path) -> Iterator[Prometheus]:
    """Run a server that scrapes `host:port`, with rules."""
    folder.mkdir()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "gossamer", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = _free_port()
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Prometheus(port)
    try:
        until = time.monotonic() + START_S
        while not server.is_ready():
            assert process.poll() is None, "prometheus ended"
            assert time.monotonic() < until, "prometheus does not answer"
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
