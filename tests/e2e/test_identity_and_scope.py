"""What a crawl calls itself, and which links it follows, on a folder served by a plain web server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.program import fetched_urls, run

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(16)
PAGE = '<a href="a.png">a</a> <a href="b.zip">b</a> <a href="named/">n</a> <a href="all/">o</a> <a href="login/">l</a>'
ROBOTS = "User-agent: Name2\nDisallow: /named/\n\nUser-agent: *\nDisallow: /all/\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "site"
    for folder in ("named", "all", "login"):
        (root / folder).mkdir(parents=True)
        (root / folder / "index.html").write_text(f"<p>{folder}")
    (root / "index.html").write_text(PAGE)
    (root / "robots.txt").write_text(ROBOTS)
    (root / "a.png").write_bytes(PIXEL)
    (root / "b.zip").write_bytes(b"PK\3\4")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def _paths(site: str, out: Path, *options: str) -> set[str]:
    done = run("crawl", site, "--out", str(out), "--politeness-ms", "0", *options)
    assert done.returncode == 0, done.stderr
    return {"/" + url.removeprefix(site) for url in fetched_urls(out)}


def test_the_group_of_our_name_binds(site: str, tmp_path: Path) -> None:
    assert _paths(site, tmp_path / "ours", "--user-agent", "Name2/1.0 (+me)") == {"/", "/all/"}
    assert _paths(site, tmp_path / "other", "--user-agent", "Other/1.0 (+me)") == {"/", "/named/"}
    assert _paths(site, tmp_path / "set", "--user-agent", "Other/1.0", "--robots-token", "name2") == {"/", "/all/"}
    assert run("audit", str(tmp_path / "ours")).returncode == 0


def test_an_accepted_type_opens_its_extensions(site: str, tmp_path: Path) -> None:
    assert _paths(site, tmp_path / "c", "--accept", "image/*") == {"/", "/named/", "/a.png"}


def test_the_users_excludes_are_added_to_the_built_in_ones(site: str, tmp_path: Path) -> None:
    assert _paths(site, tmp_path / "a", "--exclude-pattern", "/named/") == {"/"}
    every = ("--exclude-pattern", "/named/", "--no-default-excludes", "--accept", "application/zip")
    assert _paths(site, tmp_path / "b", *every) == {"/", "/login/", "/b.zip"}
    told = run("why", str(tmp_path / "a"), f"{site}named/").stdout
    assert "exclude_pattern" in told
    assert "/named/" in told.replace(site, "")


def test_a_name_with_digits_can_be_asked_for(site: str) -> None:
    asked = run("robots", f"{site}named/", "--agent", "Name2")
    assert (asked.returncode, "line 2" in asked.stdout) == (1, True)
