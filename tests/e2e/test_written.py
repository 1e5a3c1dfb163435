"""How much may one answer make a crawl write? Events, ledger and archive together, per byte of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gossamer.model.events import MAX_REFUSED_CHARS, EventName
from gossamer.telemetry.event_log import read_events
from tests.e2e.program import run
from tests.hostile.measuring import bytes_in

MAX_PER_BYTE = 60  # a link of 13 bytes that is refused is an event of up to 700
MAX_BESIDES = 3_000_000  # new links with very long URLs, and those that a rule holds back


def _links(count: int, prefix: str = "") -> str:
    return "".join(f"<a href={prefix}{n}>" for n in range(count))


def _based(base: str) -> str:
    return f"<base href={base}>{_links(20_000)}"


LONG = "/".join(f"{n:x>199}" for n in range(19))  # under the limit of a URL, with a number behind it
PAGES: Mapping[str, str] = {
    "plain": "<p>hello",
    "a long base elsewhere": _based(f"http://other.example/{LONG}/"),
    "a long base here": _based(f"/{LONG}/"),
    "a long base with a date": f"<base href=/{LONG}/>{_links(20_000, '?date=2020-01&n=')}",
    "a base of medium length elsewhere": _based(f"http://other.example/{'x' * 228}/"),
    "a base of medium length here": _based(f"/{'x' * 228}/"),
    "a long name": _based(f"http://{'.'.join(['x' * 60] * 4)}.example/"),
    "long links elsewhere": _links(1000, f"http://other.example/{'y' * 1980}/"),
    "short links elsewhere": _links(20_000, "//a.b/"),
    "links to many hosts": "".join(f"<a href=//{n}.b/>" for n in range(20_000)),
    "traps": "".join(f"<a href=/a/a/a/a/a/{n}>" for n in range(20_000)),
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = self.path.removeprefix("/")
        body = list(PAGES.values())[int(number)].encode() if number.isdecimal() else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _crawl(port: int, name: str, out: Path) -> None:
    url = f"http://127.0.0.1:{port}/{list(PAGES).index(name)}"
    more = (
        ["--max-pages", "1"] if name.endswith((" here", " date", "traps")) else []
    )  # the others have nothing to fetch
    done = run("crawl", url, "--out", str(out), "--json", *more)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_what_is_written_is_bounded_by_what_was_received(tmp_path: Path, port: int, name: str) -> None:
    _crawl(port, name, tmp_path / "crawl")
    written = {part.name: bytes_in(part) for part in (tmp_path / "crawl").iterdir() if part.is_dir()}
    assert sum(written.values()) < MAX_PER_BYTE * len(PAGES[name]) + MAX_BESIDES, written


def test_a_refused_link_with_a_long_url_is_found_by_its_id(tmp_path: Path, port: int) -> None:
    _crawl(port, "long links elsewhere", tmp_path / "crawl")
    refused = [
        event for event in read_events(tmp_path / "crawl" / "events") if event.event is EventName.EXCLUDED_BY_RULE
    ]
    assert len(refused) == 1000
    assert {len(event.url) for event in refused} == {MAX_REFUSED_CHARS}
    known = f"http://other.example/{'y' * 1980}/999"
    shown = run("why", str(tmp_path / "crawl"), known)
    assert shown.returncode == 0
    assert shown.stdout.count("refused ") == 1
    assert "out_of_scope (found at depth 1)" in shown.stdout
    assert run("why", str(tmp_path / "crawl"), known + "9").returncode == 1
    assert run("why", str(tmp_path / "crawl"), known[:MAX_REFUSED_CHARS]).returncode == 1
