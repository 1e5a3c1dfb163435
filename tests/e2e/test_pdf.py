"""PDF files of a site: whatever type its server declares, their links are followed."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.dashboard_crawl import wait_for
from tests.e2e.program import fetched_urls, run, start
from tests.parse.test_pdf_deep import pdf

PAGE = "<a href=typed.pdf>1</a> <a href='untyped?download'>2</a> <a href=named.PDF?v=1>3</a> <a href=program>4</a>"
BINARY = "application/octet-stream"
TYPES = {"typed.pdf": "application/pdf", "named.PDF": BINARY, "untyped": BINARY, "program": BINARY}

REQUESTED: list[str] = []


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "site"
    root.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            REQUESTED.append(self.path)

        def guess_type(self, path: object) -> str:
            name = Path(str(path)).name
            return "application/pdf" if name.startswith("slow-") else TYPES.get(name, "text/html")

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    address = f"http://127.0.0.1:{server.server_port}/"
    (root / "index.html").write_text(PAGE)
    for name in ("typed.pdf", "untyped", "named.PDF"):
        link = f"{address}from-{name[0]}"
        (root / name).write_bytes(b"%PDF-1.4\n/A <</S /URI /URI (" + link.encode() + b")>>")
        (root / f"from-{name[0]}").write_text("<p>here")
    (root / "program").write_bytes(b"\x7fELF" + bytes(100))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


def _found(site: str, out: Path, *options: str) -> set[str]:
    done = run("crawl", site, "--out", str(out), "--politeness-ms", "0", *options)
    assert done.returncode == 0, done.stderr
    return {url.removeprefix(site) for url in fetched_urls(out) if "/from-" in url}


def test_a_pdf_is_known_by_its_type_its_name_or_its_first_bytes(site: str, tmp_path: Path) -> None:
    assert _found(site, tmp_path / "out") == {"from-t", "from-u", "from-n"}
    assert _found(site, tmp_path / "off", "--no-parse-pdf-links") == set()
    life = run("why", str(tmp_path / "out"), f"{site}program").stdout
    assert "type_refused" in life


def test_a_deep_look_finds_links_in_the_text(site: str, tmp_path: Path) -> None:
    # The link is written in two pieces, as programs do that space letters.
    head, tail = site[:9].encode(), site[9:].encode()
    page = b"BT /F1 12 Tf 20 100 Td [(See %s) -20 (%sfrom-t)] TJ ET" % (head, tail)
    (tmp_path / "site" / "typed.pdf").write_bytes(pdf(page))
    assert "from-t" not in _found(site, tmp_path / "links")
    assert "from-t" in _found(site, tmp_path / "deep", "--pdf", "deep")
    life = run("why", str(tmp_path / "deep"), f"{site}untyped?download").stdout
    assert "pdf: " in life  # what pypdf could not read


def test_a_contradiction_starts_nothing(site: str, tmp_path: Path) -> None:
    done = run("crawl", site, "--out", str(tmp_path / "out"), "--pdf", "deep", "--no-parse-pdf-links")
    assert done.returncode == 2
    assert "--pdf deep contradicts --no-parse-pdf-links" in done.stderr


def test_a_stop_gives_up_what_is_read_deeply_and_the_next_run_reads_it(site: str, tmp_path: Path) -> None:
    names = [f"slow-{number}.pdf" for number in range(6)]
    pages = tmp_path / "site"
    (pages / "index.html").write_text("".join(f"<a href={name}>{name}</a> " for name in names))
    for name in names:  # ten seconds each, after which reading ends
        (pages / name).write_bytes(pdf(b"BT /F1 12 Tf (some words) Tj ET " * 500, pages=4000) + name.encode())
    out = tmp_path / "out"
    options = ("--politeness-ms", "0", "--host-connections", "6", "--pdf", "deep")
    process = start("crawl", site, "--out", str(out), *options)
    wait_for(lambda: sum("/slow-" in path for path in REQUESTED) == len(names))
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 11
    assert time.monotonic() - began < 25, "not the minute that all of them take"
    for name in names:
        (pages / name).write_bytes(pdf() + name.encode())
    done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert {f"{site}{name}" for name in names} <= set(fetched_urls(out))


def test_the_text_of_a_pdf_is_in_export_feed_and_search(site: str, tmp_path: Path) -> None:
    page = b"BT /F1 12 Tf 20 100 Td (Quarterly tables of the meadow survey) Tj ET"
    (tmp_path / "site" / "typed.pdf").write_bytes(pdf(page))
    out = str(tmp_path / "out")
    done = run("crawl", site, "-o", out, "--politeness-ms", "0", "--pdf", "deep", "--accept", "application/pdf")
    assert done.returncode == 0, done.stderr
    for verb in (("export", out, "--format", "jsonl"), ("feed", out)):
        lines = [json.loads(line) for line in run(*verb).stdout.splitlines()]
        (found,) = [line for line in lines if line.get("url") == f"{site}typed.pdf"]
        found = found.get("document") or found
        assert "tables of the meadow survey" in found["text"]
        assert found["words"] == 6
    assert f"{site}typed.pdf" in run("search", out, "meadow survey").stdout
