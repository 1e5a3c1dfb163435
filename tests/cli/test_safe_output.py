"""Nothing that a server sends can act on the terminal, whatever verb prints it."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.telemetry.text import SafeStream, printable, safe
from tests.e2e.program import run

# Cursor, C1, direction, zero width, separators, tags.
HOSTILE = "\x1b[2J\x9b31m\u061c\u200b\u200d\u202e\u2028\u2066\ufeff\U000e0041"
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"<title>{HOSTILE}</title><p>word {HOSTILE}<a href='/{HOSTILE}'>x</a><a href='/login{HOSTILE}'>y</a>"
        if self.path == "/robots.txt":
            body = (
                f"User-agent: *\nDisallow: /secret{HOSTILE}\nSitemap: http://x/{HOSTILE}\nContent-Signal: {HOSTILE}\n"
            )
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("X-Robots-Tag", "noarchive\x9b")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def crawled(site: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "c"
    done = run("crawl", site, "--out", str(out), "--politeness-ms", "0", "--max-pages", "3", "-vv")
    assert done.returncode == 0, done.stderr
    assert not UNSAFE.search(done.stdout + done.stderr)
    return out


VERBS = [
    ("status",),
    ("status", "--json"),
    ("hosts",),
    ("hosts", "--json"),
    ("report",),
    ("report", "--json"),
    ("traps",),
    ("audit",),
    ("audit", "--json"),
    ("verify", "--json"),
    ("retry", "--list"),
    ("search", "word"),
    ("search", "word", "--json"),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_verb_on_a_hostile_crawl_prints_nothing_unsafe(crawled: Path, verb: tuple[str, ...]) -> None:
    name, *options = verb
    words = [option for option in options if not option.startswith("-")]
    done = run(name, str(crawled), *words, *[option for option in options if option.startswith("-")])
    assert done.stdout + done.stderr
    assert not UNSAFE.search(done.stdout + done.stderr)
    if "--json" in verb:
        for line in done.stdout.splitlines():
            json.loads(line)


@pytest.mark.parametrize("verb", [("robots",), ("fetch",), ("fetch", "--links"), ("url",), ("why",), ("why", "--json")])
def test_a_verb_on_a_hostile_url_prints_nothing_unsafe(crawled: Path, site: str, verb: tuple[str, ...]) -> None:
    name, *options = verb
    folder = [str(crawled)] if name == "why" else []
    for url in (site, f"{site}login{HOSTILE[4:]}"):
        done = run(name, *folder, url, *options)
        assert done.stdout + done.stderr
        assert not UNSAFE.search(done.stdout + done.stderr)


def test_json_stays_the_same_json() -> None:
    text = json.dumps({"title": HOSTILE, "plain": "a\u00e9\u4e00"}, ensure_ascii=False)
    assert json.loads(safe(text)) == {"title": HOSTILE, "plain": "a\u00e9\u4e00"}
    assert not UNSAFE.search(safe(text))
    assert not UNSAFE.search(printable(HOSTILE))


def test_a_surrogate_can_be_printed() -> None:
    raw = io.StringIO()
    SafeStream(raw).write("a\udcff\n")
    assert raw.getvalue() == "a\\udcff\n"
