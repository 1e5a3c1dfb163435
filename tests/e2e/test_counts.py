"""What a crawl counts is what the server counted."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.reading.folder import CrawlReader
from tests.e2e.program import run, summary_of

STATUSES = (200, 201, 203, 204, 206, 302, 404, 410, 500)


class Site:
    """A front page that links to one page per status; `answers` is what was sent."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name = request.path.strip("/")
        status = int(name) if name.isdigit() else 404 if name == "robots.txt" else 200
        body = f"<p>{request.path} {status}".encode()
        if not name:
            body = "".join(f'<a href="/{status}">{status}</a>' for status in STATUSES).encode()
        elif status in (201, 203):
            body = f'<a href="/found-on-{status}">x</a>'.encode()
        self.answers[status] += 1
        request.send_response(status)
        if status == 302:
            request.send_header("Location", "/target")
        if status != 204:
            request.send_header("Content-Type", "text/html")
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if status != 204:
            request.wfile.write(body)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def test_summary_status_report_and_catalog_agree_with_the_server(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "c"
    done = run(
        "crawl",
        site.url,
        "--out",
        str(out),
        "--politeness-ms",
        "0",
        "--retry-wait",
        "0.01",
        "--max-wait",
        "1",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    summary = summary_of(done.stdout)
    sent = site.answers
    errors = sum(count for status, count in sent.items() if status >= 400) - 1  # a missing robots.txt is no error
    assert summary["pages"] == sent[200]
    assert summary["fetches"] == sum(sent.values())
    assert summary["errors"] == errors
    assert summary["error_rate"] == pytest.approx(errors / sum(sent.values()), abs=0.001)
    status = json.loads(run("status", str(out), "--json").stdout)
    assert (status["pages"], status["fetches"], status["errors"]) == (sent[200], sum(sent.values()), errors)
    report = json.loads((out / "report.json").read_text())
    assert {entry["name"]: entry["count"] for entry in report["fetches"]["statuses"]} == {
        str(status): count for status, count in sent.items()
    }
    assert report["timeline"][-1]["pages"] == sent[200]
    assert report["timeline"][-1]["errors"] == errors
    with CrawlReader(out) as crawl:
        assert sum(host.pages for host in crawl.ledger.hosts()) == sent[200]
    assert run("verify", str(out)).returncode == 0


def test_the_links_of_another_2xx_are_followed(site: Site, tmp_path: Path) -> None:
    assert (
        run(
            "crawl",
            site.url,
            "--out",
            str(tmp_path / "c"),
            "--politeness-ms",
            "0",
            "--retry-wait",
            "0.01",
            "--max-wait",
            "1",
        ).returncode
        == 0
    )
    assert site.answers[200] == 2 + 1 + 2, "front page and /200, the redirect's target, what 201 and 203 link to"
