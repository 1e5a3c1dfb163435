"""`gossamer links --broken --check-external --check-assets`: what the crawl has not fetched is asked, and only once."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from gossamer.handover.findings.checks import due_of
from gossamer.reading.folder import CrawlReader
from tests.e2e.program import run
from tests.reading.folders import is_one_line, ledger_of, owned, said

Output = pytest.CaptureFixture[str]
CHECK = ("--broken", "--check-external", "--check-assets")
DAY_S = 86_400
NO_HEAD = frozenset({"/no-head", "/large"})


class Site:
    """A server on one of the loopback addresses that answers HEAD, too, and records who asked."""

    def __init__(self, address: str) -> None:
        self.answers: dict[str, tuple[int, str, str]] = {}  # status, body, Location
        self.requests: list[str] = []  # method and path
        self.agents: set[str] = set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site._answer(self)

            do_HEAD = do_GET  # noqa: N815 - by http.server

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{request.command} {request.path}")
        self.agents.add(request.headers["User-Agent"])
        status, body, location = self.answers.get(request.path, (404, "no", ""))
        if request.command == "HEAD" and request.path in NO_HEAD:
            status, body, location = 405, "", ""
        request.send_response(status)
        if location:
            request.send_header("Location", location)
        request.send_header("Content-Type", "text/plain" if request.path == "/robots.txt" else "text/html")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "GET":
            try:
                request.wfile.write(body.encode())
            except ConnectionError:
                pass


class Scene(Struct):
    """A crawled site, and another one that it links to."""

    own: Site
    other: Site
    path: Path

    def checked(self, capsys: Output, *words: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Run the check; return the first line of JSON, and the last row of each target by its short name."""
        status, out, _ = said(capsys, "links", self.path, *(words or CHECK), "--json")
        head, *rows = map(json.loads, out.splitlines())
        assert status == (1 if head["counts"]["links"] else 0)
        return head, {self.short(row["to"]): row for row in rows}

    def short(self, url: str) -> str:
        return url.replace(self.own.url, "own").replace(self.other.url, "other")


@contextmanager
def served(address: str) -> Iterator[Site]:
    site = Site(address)
    thread = threading.Thread(target=site.server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        thread.join()
        site.server.server_close()


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.2", 0))
        return int(unused.getsockname()[1])


def set_up(own: Site, other: Site) -> None:
    links = ("fine", "gone", "no-head", "large", "private", "moved", "round")
    anchors = " ".join(f"<a href='{other.url}/{name}'>{name}</a>" for name in links)
    body = (
        f"<link rel=stylesheet href=/s.css><img src=/i.png srcset='{other.url}/i2.png 2x'>{anchors}<a href=/two>two</a>"
        f"<a href=/file.zip>file</a><a href=/away>away</a><a href='http://127.0.0.2:{free_port()}/'>refused</a>"
        "<a href='http://10.255.255.1/'>private</a>"
    )
    own.answers = {
        "/": (200, f"<html><body>{body}</body></html>", ""),
        "/two": (200, f"<a href='{other.url}/gone'>gone, too</a>", ""),
        "/s.css": (200, "a{}", ""),
        "/away": (302, "", f"{other.url}/lost"),
    }
    other.answers = {
        "/robots.txt": (200, "User-agent: *\nDisallow: /private\n", ""),
        "/fine": (200, "fine", ""),
        "/no-head": (200, "fine", ""),
        "/large": (200, "x" * 3_000_000, ""),
        "/private": (404, "", ""),
        "/moved": (301, "", "/nowhere"),
        "/round": (302, "", "/round2"),
        "/round2": (302, "", "/round"),
    }


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with served("127.0.0.1") as own, served("127.0.0.2") as other:
        set_up(own, other)
        out = tmp_path / "crawl"
        options = ("--politeness-ms", "20", "--retry-wait", "0.05", "--allow-network", "127.0.0.0/8", "--max-wait", "2")
        done = run("crawl", f"{own.url}/", "--out", str(out), "--scope", "host", "--contact", "me@a.test", *options)
        assert done.returncode == 0, done.stderr
        own.requests.clear()
        yield Scene(own, other, out)


def test_what_the_crawl_has_not_fetched_is_asked_once_and_listed_with_its_pages(scene: Scene, capsys: Output) -> None:
    head, rows = scene.checked(capsys)
    broken = {name: (row["outcome"], row["status"]) for name, row in rows.items() if row["checked"]}
    refused = next(name for name in broken if name.startswith("http://127.0.0.2:"))
    assert broken == {
        "other/gone": ("client_error", 404),
        "other/moved": ("client_error", 404),
        "other/round": ("redirect_loop", 302),
        "other/i2.png": ("client_error", 404),
        "own/i.png": ("client_error", 404),
        "own/file.zip": ("client_error", 404),
        "own/away": ("client_error", 404),
        refused: ("connect_failed", 0),
    }
    assert {name: row["outcome"] for name, row in rows.items() if not row["checked"]} == {
        "other/private": "robots_denied",
        "http://10.255.255.1/": "blocked_address",
    }
    assert [scene.short(hop) for hop in rows["own/away"]["chain"]] == ["other/lost"]
    assert rows["other/round"]["loop"] is True
    assert (rows["own/i.png"]["element"], rows["own/file.zip"]["element"]) == ("img", "a")
    assert (head["counts"]["targets"], head["counts"]["links"], head["counts"]["not_checked"]) == (8, 9, 2)
    assert not [request for request in scene.other.requests if "/private" in request]
    assert scene.other.requests.count("HEAD /gone") == scene.other.requests.count("GET /gone") == 1
    assert "GET /fine" not in scene.other.requests
    assert scene.own.agents == scene.other.agents  # that of the crawl, with its contact
    assert said(capsys, "audit", scene.path / "checks")[0] == 0
    assert said(capsys, "verify", scene.path / "checks")[0] == 0
    assert said(capsys, "verify", scene.path)[0] == 0


def test_results_are_valid_for_a_day_unless_asked_again(scene: Scene, capsys: Output) -> None:
    first, rows = scene.checked(capsys)
    scene.other.requests.clear()
    again, same = scene.checked(capsys)
    assert same == rows
    unanswered = 2  # the server that cannot be reached, and the private address
    assert first["checks"]["asked"] == again["checks"]["known"] + unanswered
    assert scene.other.requests == []
    scene.other.answers["/gone"] = (200, "back", "")
    scene.other.answers["/fine"] = (410, "", "")
    _, rows = scene.checked(capsys, *CHECK, "--recheck")
    assert "other/gone" not in rows
    assert rows["other/fine"]["status"] == 410
    urls = [f"{scene.other.url}/{name}" for name in ("fine", "gone", "private", "new")]
    with CrawlReader(scene.path) as crawl, CrawlReader(scene.path / "checks") as results:
        for days, due in ((0.5, 1), (1.5, 4)):
            crawl.now = time.time() + days * DAY_S
            assert len(due_of(urls, crawl, results.ledger, is_again=False).seeds) == due


def test_a_private_address_is_checked_as_soon_as_the_crawl_may_contact_it(scene: Scene, capsys: Output) -> None:
    private = "http://10.255.255.1/"
    error = scene.checked(capsys)[1][private]["error"]
    assert error.endswith("; 'gossamer resume DIR --allow-network CIDR' allows private addresses")
    with CrawlReader(scene.path) as crawl, CrawlReader(scene.path / "checks") as results:
        urls = [private, f"{scene.other.url}/gone"]
        assert [seed.link.url for seed in due_of(urls, crawl, results.ledger, is_again=False).seeds] == [private]


def test_a_check_that_was_killed_goes_on_with_what_is_left(scene: Scene, capsys: Output) -> None:
    command = ("links", str(scene.path), *CHECK)
    killed = run(*command, environment={"GOSSAMER_FAILPOINT": "after_archive_write:kill:8"})
    assert killed.returncode == -signal.SIGKILL
    assert scene.other.requests
    head, rows = scene.checked(capsys)
    assert head["counts"]["targets"] == 8
    assert "other/large" not in rows
    everything = [f"own {request}" for request in scene.own.requests] + scene.other.requests
    repeated = {request for request in everything if everything.count(request) > 1}
    assert len(repeated) <= 2  # what was on the wire at either host
    assert said(capsys, "verify", scene.path / "checks")[0] == 0


def test_only_what_is_asked_for_is_checked(scene: Scene, capsys: Output) -> None:
    _, rows = scene.checked(capsys, "--broken", "--check-external")
    assert not [name for name in rows if name.startswith("own/") and name != "own/away"]
    assert "other/i2.png" not in rows
    assert not [request for request in scene.own.requests if "robots" not in request]
    _, rows = scene.checked(capsys, "--broken", "--check-assets")
    assert sorted(rows) == ["other/i2.png", "own/file.zip", "own/i.png"]


def test_a_host_that_the_crawl_promised_to_leave_alone_is_left_alone(scene: Scene, capsys: Output) -> None:
    with ledger_of(scene.path) as ledger:
        host = ledger.host("127.0.0.1")
        assert host is not None
        host.parked_until = 4_000_000_000.0
        ledger.put_host(host)
    head, rows = scene.checked(capsys, "--broken", "--check-assets")
    assert list(head["checks"]["promised"]) == ["127.0.0.1"]
    assert scene.own.requests == []
    assert (rows["own/i.png"]["checked"], rows["own/i.png"]["error"]) == (False, "not asked")


def test_a_host_that_opted_out_is_not_asked(scene: Scene, capsys: Output) -> None:
    (scene.path / "blocked.txt").write_text("127.0.0.2\n", "utf-8")
    _, rows = scene.checked(capsys, "--broken", "--check-external")
    assert rows["other/gone"]["checked"] is False
    assert scene.other.requests == []


def test_what_cannot_be_checked_is_refused_in_one_line(scene: Scene, capsys: Output) -> None:
    for words, expected in (
        (["--external", "--check-external"], "are for --broken"),
        (["--broken", "--recheck"], "--recheck is for a check"),
        (["--broken", "--contact", "a@b.test"], "--contact is for a check"),
    ):
        status, out, err = said(capsys, "links", scene.path, *words)
        assert (status, out, is_one_line(err)) == (2, "", True)
        assert expected in err
    with owned(scene.path):
        status, out, err = said(capsys, "links", scene.path, *CHECK)
    assert (status, out, is_one_line(err)) == (2, "", True)
    assert "the crawl runs" in err
    status, _, err = said(capsys, "links", "redis://127.0.0.1:1/0/x", *CHECK)
    assert (status, "expected --checks FOLDER" in err) == (2, True)


def test_public_hosts_need_a_contact(scene: Scene, capsys: Output, tmp_path: Path) -> None:
    scene.own.answers = {"/": (200, "<a href='http://name.invalid/'>x</a>", "")}
    out = tmp_path / "other"
    assert run("crawl", f"{scene.own.url}/", "--out", str(out), "--politeness-ms", "0").returncode == 0
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path)
    try:
        status, _, err = said(capsys, "links", out, *CHECK)
    finally:
        del os.environ["XDG_CONFIG_HOME"]
    assert (status, is_one_line(err)) == (2, True)
    assert "--contact" in err


def chain_of(name: str, hops: int, end: tuple[int, str, str]) -> dict[str, tuple[int, str, str]]:
    hop = {f"/{name}{number}": (302, "", f"/{name}{number + 1}") for number in range(hops)}
    return hop | {f"/{name}{hops}": end}


def test_a_long_chain_of_redirects_is_no_broken_link_and_is_followed_to_its_end(tmp_path: Path, capsys: Output) -> None:
    with served("127.0.0.1") as own:
        own.answers = {"/": (200, "<a href=/good0>good</a> <a href=/bad0>bad</a> <a href=/endless0>endless</a>", "")}
        own.answers |= chain_of("good", 6, (200, "<p>the end of a chain", ""))
        own.answers |= chain_of("bad", 7, (404, "", ""))
        own.answers |= chain_of("endless", 90, (200, "", ""))
        out = tmp_path / "crawl"
        done = run("crawl", own.url, "-o", str(out), "--politeness-ms", "1", "--contact", "me@a.test")
        assert done.returncode == 0, done.stderr
        assert "GET /good6" not in own.requests

        status, said_of, _ = said(capsys, "links", out, "--broken")
        assert (status, "good0" in said_of) == (0, False)
        status, listed, _ = said(capsys, "links", out, "--redirects", "--json")
        (row,) = [row for row in map(json.loads, listed.splitlines()[1:]) if row["to"].endswith("/good0")]
        assert row["outcome"] == "long_chain"
        assert [hop.rpartition("/")[2] for hop in row["chain"]] == [f"good{number}" for number in range(1, 7)]
        assert "a long chain of 6 redirects" in said(capsys, "links", out, "--redirects")[1]

        scene = Scene(own, own, out)
        _, rows = scene.checked(capsys, "--broken", "--check-external")
        assert {name: (row["outcome"], row["status"]) for name, row in rows.items()} == {
            "own/bad0": ("client_error", 404),
            "own/endless0": ("too_many_redirects", 302),
        }
        assert "HEAD /good6" in own.requests
        _, listed, _ = said(capsys, "missing", out, "--outcome", "too_many_redirects")
        assert "long chain: more than 5 redirects in a row" in listed

        assert run("retry", str(out), "--outcome", "too_many_redirects").returncode == 0
        assert "GET /good6" in own.requests, "of a URL that is queued again, hops count from there"
        own.requests.clear()
        done = run("crawl", own.url, "-o", str(tmp_path / "all"), "--politeness-ms", "1", "--max-redirects", "12")
        assert done.returncode == 0, done.stderr
        assert "GET /good6" in own.requests
        assert {"GET /endless12", "GET /endless13"} & set(own.requests) == {"GET /endless12"}
        done = run("crawl", own.url, "-o", str(tmp_path / "none"), "--max-redirects", "21")
        assert (done.returncode, is_one_line(done.stderr)) == (2, True)
