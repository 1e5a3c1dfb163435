"""A crawl of one page: nothing that is printed about it says "1 pages"."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import run
from tests.servers.redis import RedisServer

ONE = re.compile(r"(?<![\d.,:/-])1 ((?:more |archive |registrable |queued |near )?[A-Za-z]+s)\b")
EITHER = re.compile(r"\w\(s\)")
NOT_NOUNS = frozenset({"is", "was", "has", "ms", "less"})


class OnePage(http.server.BaseHTTPRequestHandler):
    """A page with two links: one to itself, one to a page that is missing."""

    def do_GET(self) -> None:
        body = b"<title>One</title>One page of its own. <a href=/>again</a> <a href=/missing>more</a>"
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def seed() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), OnePage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def wrong(text: str) -> list[str]:
    return [*EITHER.findall(text), *(found for found in ONE.findall(text) if found not in NOT_NOUNS)]


def said(*words: str) -> str:
    done = run(*words)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_one_of_each_is_singular_in_a_folder(seed: str, tmp_path: Path) -> None:
    out, page = str(tmp_path / "out"), tmp_path / "report.html"
    texts = {"crawl": said("crawl", seed, "-o", out, "--politeness-ms", "1", "-p")}
    for words in (
        ("status",), ("report",), ("hosts",), ("hosts", "127.0.0.1"), ("why", seed), ("audit",), ("verify",),
        ("traps",), ("retry", "--list"),
    ):  # fmt: skip
        texts[" ".join(words)] = said(words[0], out, *words[1:])
    said("report", out, "--html", str(page))
    texts["page"] = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page.read_text(), flags=re.DOTALL)
    assert {name: wrong(text) for name, text in texts.items() if wrong(text)} == {}
    assert "1 dead letter: " in texts["retry --list"]


def test_one_of_each_is_singular_on_a_ledger(seed: str, tmp_path: Path, server: RedisServer) -> None:
    url, out = f"{server.url}/one", str(tmp_path / "a")
    texts = {"crawl": said("crawl", seed, "--ledger", url, "-o", out, "--node", "a", "--politeness-ms", "1", "-p")}
    for words in (("status",), ("report",), ("hosts",), ("audit",), ("verify",), ("retry", "--list"), ("retry",)):
        texts[" ".join(words)] = said(words[0], url, *words[1:])
    texts["add"] = said("add", url, f"{seed}more")
    assert {name: wrong(text) for name, text in texts.items() if wrong(text)} == {}
    assert "1 URL is queued again" in texts["retry"]
