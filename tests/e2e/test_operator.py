"""What the operator sees while a crawl runs, and how it is stopped."""

from __future__ import annotations

import http.server
import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.web.web import preset
from gossamer.telemetry.text import REPORT_HINT
from tests.e2e.program import crawl_options, run, start
from tests.servers.web import RunningWeb

STOPPING = {
    signal.SIGINT: r"gossamer: stopping: waiting for \d+ requests?, again to stop at once\n",
    signal.SIGTERM: r"gossamer: SIGTERM: stopping: waiting for \d+ requests?, a second signal stops at once\n",
    signal.SIGHUP: r"gossamer: SIGHUP: stopping: waiting for \d+ requests?, a second signal stops at once\n",
}


@pytest.fixture
def small_web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small")) as web:
        yield web


def events_of(out: Path, name: str) -> list[dict[str, Any]]:
    lines = [line for path in sorted((out / "events").glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["event"] == name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_and_says_what_it_waits_for(
    tmp_path: Path, small_web: RunningWeb, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    process = start("crawl", *small_web.seeds(), *crawl_options(small_web, out, 40), "-vv")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("heartbeat"):
            break
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 11, stderr
    assert re.search(STOPPING[number], stderr), stderr
    assert json.loads((out / "report.json").read_text())["summary"]["finished"] == "signal"


class Silent(http.server.BaseHTTPRequestHandler):
    """Has no robots.txt, and never answers anything else."""

    ended = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.send_error(404)
        else:
            self.ended.wait(60)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_second_signal_ends_at_once_and_says_how_to_continue(tmp_path: Path) -> None:
    out = tmp_path / "two words"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        seed = f"http://127.0.0.1:{server.server_address[1]}/"
        process = start("crawl", seed, "-o", str(out), "--politeness-ms", "5", "-vv")
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("robots_fetched"):
                break
        process.send_signal(signal.SIGINT)
        for line in process.stderr:
            if line.startswith("gossamer: stopping"):
                break
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
        Silent.ended.set()
        server.shutdown()
        thread.join()
    assert (process.returncode, stdout) == (13, "")
    last = stderr.splitlines()[-1]
    assert last == f"gossamer: ended by a second signal; to continue: gossamer resume '{out}'"


def test_a_heartbeat_comes_exactly_every_50_pages_with_figures(tmp_path: Path, small_web: RunningWeb) -> None:
    out = tmp_path / "out"
    done = run("crawl", *small_web.seeds(), *crawl_options(small_web, out, 5), "-vv", "-p")
    assert done.returncode == 0, done.stderr
    *beats, last = events_of(out, "heartbeat")
    assert [beat["fetched"] for beat in beats] == [50 * number for number in range(1, len(beats) + 1)]
    assert len(beats) > 2
    assert last["fetched"] - beats[-1]["fetched"] < 50
    assert all(beat["enqueued"] and beat["frontier_size"] >= 0 and beat["pages_per_second"] > 0 for beat in beats)
    printed = [line for line in done.stderr.splitlines() if line.startswith("heartbeat ")]
    assert len(printed) == len(beats) + 1
    figures = ("fetched=50 ", "enqueued=", "errors=", "unique_domains=", "frontier_size=", "pages_per_second=")
    assert all(figure in printed[0] for figure in figures)
    plain = [line for line in done.stderr.splitlines() if line.endswith("/s on average")]
    assert [line.split(" ")[1].split("/")[0] for line in plain[:2]] == ["50", "100"]


def test_conditions_are_watched_while_a_crawl_runs(tmp_path: Path) -> None:
    """A site of which half of all pages is missing."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), HalfMissing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        seed = f"http://127.0.0.1:{server.server_address[1]}/0"
        options = ["--politeness-ms", "5", "--max-time", "4", "--json"]
        done = run("crawl", seed, "-o", str(tmp_path / "out"), *options)
        server.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr
    (warning,) = [event for event in events_of(tmp_path / "out", "warning") if event["rule"] == "error_rate"]
    assert f"warning: {warning['reason']}" in done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert any(line.endswith(warning["reason"].removesuffix(REPORT_HINT)) for line in report["warnings"])


class HalfMissing(http.server.BaseHTTPRequestHandler):
    """Every page links to the next hundred; every second one is missing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        number = int(self.path[1:]) if self.path[1:].isdigit() else 1
        links = "".join(f"<a href=/{following}>x</a>" for following in range(number + 1, number + 100))
        body = f"<title>{number}</title>{links}".encode()
        self.send_response(404 if number % 2 else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_user_name_and_password_of_a_seed_are_dropped_and_that_is_said(
    tmp_path: Path, small_web: RunningWeb
) -> None:
    out = tmp_path / "out"
    seed = small_web.seeds()[0]
    done = run("crawl", seed.replace("://", "://me:hush@"), *crawl_options(small_web, out, 5), "-n", "2")
    assert done.returncode == 0, done.stderr
    host = seed.split("/")[2].split(":")[0]
    dropped = "its user name and password are dropped: they are neither stored nor sent"
    assert f"gossamer: seed at {host}: {dropped}" in done.stderr
    for path in out.rglob("*"):
        assert not path.is_file() or b"hush" not in path.read_bytes(), path


def test_a_password_without_a_scheme_is_not_repeated() -> None:
    done = run("crawl", "me:hush@example.org/x", "-o", "never")
    assert done.returncode == 2
    assert "hush" not in done.stderr
    assert "expected https://example.org/" in done.stderr
