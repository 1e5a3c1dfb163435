"""Certificates: whose authority is trusted, and what the user learns if one is not."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import run, summary_of
from tests.servers.certificates import certified

CAUSE = "self-signed certificate in certificate chain"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority that no system knows (ca.pem), and a server's chain (chain.pem, site_key.pem)."""
    folder = tmp_path_factory.mktemp("keys")
    authority = certified("ca", is_authority=True)
    authority.write(folder)
    certified("site", "localhost", by=authority).write(folder)
    (folder / "chain.pem").write_bytes((folder / "site.pem").read_bytes() + (folder / "ca.pem").read_bytes())
    (folder / "dir").mkdir()
    (folder / "dir" / "intranet.pem").write_bytes((folder / "ca.pem").read_bytes())
    return folder


class Pages(http.server.BaseHTTPRequestHandler):
    """Answers robots.txt with 404, everything else with a page."""

    def do_GET(self) -> None:
        body = b"<p>intranet</p>"
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def intranet(keys: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "chain.pem", keys / "site_key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("how", ["--ca-file", "SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_authority_that_the_operator_adds_is_trusted(tmp_path: Path, keys: Path, intranet: str, how: str) -> None:
    options = ["--ca-file", str(keys / "ca.pem")] if how == "--ca-file" else []
    path = keys / ("dir" if how == "SSL_CERT_DIR" else "ca.pem")
    done = run(
        *("crawl", intranet, "-o", str(tmp_path / "out"), "--json", *options),
        environment={} if options else {how: str(path)},
    )
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == 1


def test_the_cause_is_known_at_once_and_everywhere(tmp_path: Path, intranet: str) -> None:
    out = tmp_path / "out"
    began = time.monotonic()
    done = run("crawl", intranet, "-o", str(out), "--json")
    assert time.monotonic() - began < 20, "certificates are not fixed by waiting"
    assert done.returncode == 1
    first, last = done.stderr.strip().splitlines()
    assert CAUSE in first
    assert "no page could be fetched" in last
    assert CAUSE in last
    assert "--ca-file" in last
    events = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [event for event in events if event["event"] == "robots_unreachable" and CAUSE in event["reason"]]
    assert CAUSE in run("why", str(out), intranet).stdout
    assert CAUSE in run("status", str(out)).stdout


def test_a_crawl_goes_on_as_soon_as_the_authority_is_added(tmp_path: Path, keys: Path, intranet: str) -> None:
    out = str(tmp_path / "out")
    assert run("crawl", intranet, "-o", out).returncode == 1
    done = run("resume", out, "--ca-file", str(keys / "ca.pem"), "--json")
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == 1


@pytest.mark.parametrize("limit", [["--max-time", "1"], ["--max-wait", "1"]])
def test_without_a_page_the_status_is_1_whatever_ended_the_crawl(tmp_path: Path, limit: list[str]) -> None:
    """Nobody listens on the port: it is tried again and again until the limit."""
    done = run("crawl", "http://127.0.0.1:1/", "-o", str(tmp_path / "out"), "--retry-wait", "30", *limit)
    assert done.returncode == 1, done.stdout
    assert "no page could be fetched: http://127.0.0.1:1/robots.txt: connect_failed" in done.stderr


@pytest.mark.parametrize(("content", "says"), [(None, "cannot read it"), ("no certificate", "no certificate in it")])
def test_an_authority_that_cannot_be_used_is_one_line(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    done = run("crawl", "https://localhost:1/", "-o", str(tmp_path / "out"), "--ca-file", str(path))
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert f"--ca-file {path}: {says}" in line
    assert not (tmp_path / "out").exists()


def test_doctor_names_the_stores(keys: Path) -> None:
    done = run("doctor", "--ca-file", str(keys / "ca.pem"), environment={"SSL_CERT_FILE": str(keys / "ca.pem")})
    (line,) = [line for line in done.stdout.splitlines() if "authorities" in line]
    assert f"SSL_CERT_FILE {keys / 'ca.pem'} (1)" in line
    assert f"--ca-file {keys / 'ca.pem'} (1)" in line
    assert line.startswith("ok ")


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_keys_of_connections_are_logged_only_if_asked_for(
    tmp_path: Path, keys: Path, intranet: str, is_asked: bool
) -> None:
    log = tmp_path / "keys.log"
    asked = {"GOSSAMER_TLS_KEYLOG": "1"} if is_asked else {}
    done = run("fetch", intranet, "--ca-file", str(keys / "ca.pem"), environment={"SSLKEYLOGFILE": str(log), **asked})
    assert done.returncode == 0, done.stderr
    assert log.exists() is is_asked
