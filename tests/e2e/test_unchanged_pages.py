"""Pages that are fetched again and answered with 304: what is known of them is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.archive.reader import ArchivedRecord, ArchiveReader
from tests.e2e.program import fetched_urls, run

ETAG = '"v1"'


class Site:
    """A site whose pages have an entity tag; `is_open` decides whether robots.txt allows everything."""

    def __init__(self) -> None:
        self.is_open = False
        self.answers: list[tuple[str, int]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body, etag = b"<p>" + request.path.encode(), ETAG
        if request.path == "/robots.txt":
            body = b"" if self.is_open else b"User-agent: *\nDisallow: /late\n"
            etag = f'"{self.is_open}"'
        elif request.path == "/":
            body = b'<a href="/early">e</a><a href="/late">l</a>'
        is_known = request.headers.get("If-None-Match") == etag
        self.answers.append((request.path, 304 if is_known else 200))
        request.send_response(304 if is_known else 200)
        request.send_header("ETag", etag)
        if not is_known:
            request.send_header("Content-Type", "text/html")
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if not is_known:
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


def _crawl(site: Site, out: Path, *options: str) -> None:
    done = run("crawl", site.url, "--out", str(out), "--politeness-ms", "0", "--cooldown-sec", "1", *options)
    assert done.returncode == 0, done.stderr


def _records(out: Path) -> list[ArchivedRecord]:
    return [record for path in sorted((out / "archive").iterdir()) for record in ArchiveReader(path)]


def test_a_304_is_a_revisit_and_its_links_are_offered_again(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "c"
    _crawl(site, out, "--max-depth", "0")
    assert [path for path, _ in site.answers] == ["/robots.txt", "/"]
    site.answers.clear()
    threading.Event().wait(1.1)  # the cooldown, by the clock of the program
    _crawl(site, out, "--max-depth", "3")
    assert ("/", 304) in site.answers
    assert ("/early", 200) in site.answers, "the link of the stored copy was followed"
    revisit = next(record for record in _records(out) if record.type == "revisit")
    assert revisit.target == site.url
    assert revisit.fields["warc-profile"].endswith("/revisit/server-not-modified")
    assert revisit.fields["warc-refers-to-target-uri"] == site.url
    original = next(record for record in _records(out) if record.type == "response" and record.target == site.url)
    assert revisit.fields["warc-refers-to-date"] == original.fields["warc-date"]
    assert revisit.payload_digest == original.payload_digest
    assert f"{site.url}late" not in fetched_urls(out), "robots.txt forbids it"
    assert run("verify", str(out)).returncode == 0


def test_without_a_stored_copy_the_page_is_requested_whole(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "c"
    _crawl(site, out, "--max-depth", "0", "--store", "files")
    site.answers.clear()
    threading.Event().wait(1.1)
    _crawl(site, out, "--max-depth", "3")
    assert ("/", 200) in site.answers
    assert ("/early", 200) in site.answers
