"""Bad input: one clear line, the right exit status, no traceback, nothing made."""

from __future__ import annotations

import functools
import http.server
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gossamer.sim.web.web import preset
from tests.e2e.preloaded import GOSSAMER
from tests.e2e.program import run, summary_of
from tests.servers.web import RunningWeb

SEED = "http://localhost:9/"


def refused(done: CompletedProcess[str], *words: str, status: int = 2) -> None:
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0]
    for word in words:
        assert word in lines[0], lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([SEED, "--frobnicate"], ["--frobnicate"]),
        ([SEED, "--max-pages", "many"], ["max-pages", "many"]),
        ([SEED, "--max-pages", "0"], ["max-pages", "0"]),
        ([SEED, "--order", "alphabetic"], ["--order", "breadth"]),
        ([SEED, "--exclude-pattern", "("], ["exclude-pattern", "regular expression"]),
        ([SEED, "--exclude-pattern", "^(?!.*keep)"], ["exclude-pattern", "linear time", "no look-around"]),
        ([SEED, "--allow-network", "home"], ["allow-network", "10.0.0.0/8"]),
        ([SEED, "--store", "floppy"], ["store", "floppy"]),
        ([SEED, "--store", "mongodb://u:secret@localhost"], ["mongodb://u:***@localhost", "database"]),
        ([SEED, "--catalog", "postgresql://u:secret@localhost"], ["postgresql://u:***@localhost", "database/SCHEMA"]),
        ([SEED, "--catalog", "oracle://localhost/x"], ["unknown catalog", "expected postgresql://", "cassandra://"]),
        ([SEED, "--catalog", "cassandra://u:secret@localhost/A-b"], ["cassandra://u:***@localhost", "a keyspace"]),
        (
            [SEED, "--crawl-delay", "2", "--politeness-ms", "50"],
            ["--crawl-delay 2", "--politeness-ms 50", "one of them"],
        ),
        ([SEED, "--crawl-delay", "-1"], ["--crawl-delay -1"]),
        ([SEED, "--crawl-delay", "nan"], ["--crawl-delay nan"]),
        (["ftp://example.org/"], ["ftp", "http"]),
        (["http://exa mple.org/"], ["not a URL"]),
        (["/no/such/seeds.txt"], ["/no/such/seeds.txt"]),
        ([], ["no seeds"]),
        (["https://example.org/"], ["--contact"]),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    out = [] if not arguments else ["--out", str(tmp_path / "out")]
    refused(run("crawl", *arguments, *out, environment={"XDG_CONFIG_HOME": str(tmp_path)}, cwd=tmp_path), *words)
    assert not (tmp_path / "out").exists()


def test_an_unknown_key_names_file_and_key(tmp_path: Path) -> None:
    config = tmp_path / "crawl.toml"
    config.write_text("max-pagez = 5\n", "utf-8")
    refused(run("crawl", SEED, "--config", str(config)), str(config), "max-pagez", "max-pages")


def test_an_unknown_variable_is_named(tmp_path: Path) -> None:
    refused(run("crawl", SEED, environment={"GOSSAMER_MAX_PAGEZ": "5"}, cwd=tmp_path), "GOSSAMER_MAX_PAGEZ")


def test_empty_seeds_are_named(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("# nothing here\n\n", "utf-8")
    refused(run("crawl", str(seeds)), str(seeds), "no seeds")


def test_a_seed_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes(b"\xff\xfe\x00binary")
    refused(run("crawl", str(seeds)), str(seeds))


def test_a_folder_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine", "utf-8")
    refused(run("crawl", SEED, "--out", str(tmp_path)), str(tmp_path), "something other than a crawl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious.txt"]


def test_a_folder_whose_process_died_while_making_it_is_taken(tmp_path: Path, plain_server: int) -> None:
    for name in ("state", "archive", "index", "events"):
        (tmp_path / "out" / name).mkdir(parents=True)
    done = run("crawl", f"http://localhost:{plain_server}/", "--out", str(tmp_path / "out"), "--politeness-ms", "20")
    assert done.returncode == 0, done.stderr


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    refused(run("crawl", SEED, "--out", "/proc/nowhere/crawl"), "/proc/nowhere/crawl")
    blocker = tmp_path / "file"
    blocker.touch()
    refused(run("crawl", SEED, "--out", str(blocker)), str(blocker), "folder")


def test_a_host_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with RunningWeb(preset("small")) as web:
        done = run("crawl", "http://no-such-host.test/", "--out", str(tmp_path / "out"), "--dns", web.dns_address)
    refused(done, "no page could be fetched", "no-such-host.test", status=1)


def test_a_closed_address_is_reported_with_the_option_that_opens_it(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with RunningWeb(preset("small")) as web:
        (seed,) = web.seeds(1)
        done = run("crawl", seed, "--out", out, "--dns", web.dns_address)
        refused(done, "no page could be fetched", "blocked_address", "--allow-network CIDR", status=1)
        why = run("why", out, seed)
        assert "what helps  --allow-network CIDR allows" in why.stdout
        done = run("retry", out, "--allow-network", "127.0.0.0/8", "-n", "3", "--politeness-ms", "20", "--json")
        assert summary_of(done.stdout)["pages"] == 3, done.stderr
        assert "--allow-network" not in run("why", out, seed).stdout


def test_an_unknown_verb_is_reported() -> None:
    refused(run("crwal"), "crwal", "crawl")


def test_status_of_something_else_is_refused(tmp_path: Path) -> None:
    for verb in ("status", "report", "hosts", "verify", "resume"):
        refused(run(verb, str(tmp_path)), str(tmp_path))


@pytest.fixture
def plain_server(tmp_path: Path) -> Iterator[int]:
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "index.html").write_text('<title>Home</title><a href="sub/">s</a> <a href="b.html">b</a>', "utf-8")
    (site / "b.html").write_text("<title>B</title><p>hello</p>", "utf-8")
    (site / "sub" / "index.html").write_text('<a href="../b.html">b</a><a href="https://example.com/">out</a>', "utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("seed", ["http://localhost:{port}/", "localhost:{port}", "http://127.0.0.1:{port}/"])
def test_a_plain_file_server_is_crawled_as_is(tmp_path: Path, plain_server: int, seed: str) -> None:
    out = tmp_path / "out"
    done = run("crawl", seed.format(port=plain_server), "--out", str(out), "--politeness-ms", "20", "--json")
    assert done.returncode == 0, done.stderr
    assert summary_of(done.stdout)["pages"] == 3


def test_too_few_open_files_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    command = f'ulimit -n 50; exec "$@" --out "{tmp_path}/crawl"'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", *GOSSAMER, "crawl", SEED], capture_output=True, text=True, check=False
    )
    refused(done, "only 50 files may be open", "expected at least 64", "ulimit -n 1024")
    assert not (tmp_path / "crawl").exists()


def test_with_few_open_files_a_crawl_uses_fewer_connections_and_says_so(tmp_path: Path, plain_server: int) -> None:
    options = ["--politeness-ms", "20", "--connections", "300", "--json", "--out", str(tmp_path / "crawl")]
    command = [*GOSSAMER, "crawl", f"http://127.0.0.1:{plain_server}/", *options]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 70; exec "$@"', "sh", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "files may be open" in line]
    assert lines == [
        "warning: only 70 files may be open at once: 15 connections per worker are used instead of 300; "
        "'ulimit -n 640' allows all of them"
    ]
    assert summary_of(done.stdout)["pages"] == 3


def test_a_robots_txt_that_breaks_off_is_not_shown_as_whole() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nUser-agent: *\n")
                connection.recv(1)  # until the client gives up

        thread = threading.Thread(target=serve)
        thread.start()
        done = run("robots", f"http://127.0.0.1:{server.getsockname()[1]}/", "--timeout", "0.5")
        thread.join()
    assert done.returncode == 1
    assert "robots.txt: 200, 14 bytes, then timeout: silent for 0.5 s" in done.stdout
