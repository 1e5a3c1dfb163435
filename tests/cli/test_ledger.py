"""Verbs on a ledger URL: what is wrong is said in one line, without the password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.cli.main import main
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running

READING = {
    "why": ["http://h.example/"],
    "hosts": [],
    "report": [],
    "traps": [],
    "retry": ["--list"],
    "status": [],
    "export": ["--format", "jsonl"],
    "verify": [],
    "audit": [],
    "feed": [],
    "search": ["word"],
}
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


def refused(capsys: Output, *words: str) -> str:
    """Run a verb that ends with status 2; return the one line that it prints."""
    try:
        status = main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    return err


@pytest.mark.parametrize("verb", READING)
def test_a_server_that_cannot_be_reached_is_one_line(capsys: Output, verb: str) -> None:
    url = f"redis://user:se/cr@et@127.0.0.1:{free_port()}/0/books"
    assert "cannot be reached" in refused(capsys, verb, url.replace("se/cr@et", "secret"), *READING[verb])
    line = refused(capsys, verb, url, *READING[verb])
    assert "se/cr" not in line
    assert "user" not in line


@pytest.mark.parametrize("verb", READING)
def test_a_name_that_no_crawl_has_is_one_line(capsys: Output, server: RedisServer, verb: str) -> None:
    assert "there is no crawl nothing" in refused(capsys, verb, f"{server.url}/nothing", *READING[verb])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "redis://u:pw@h/0", "http://h/"], "expected redis://host:port/db/NAME"),
        (["why", "redis://u:pw@h:port/0/x", "http://h/"], "expected redis://host:port/db/NAME"),
        (["hosts", "http://u:pw@h/"], "not a ledger URL"),
        (["resume", "redis://u:pw@h/0/x", "--max-pages", "5"], "gossamer set"),
        (["verify", "redis://u:pw@h/0/x", "--mend"], "--mend"),
        (["feed", "redis://u:pw@h/0/x", "--after", "3"], "--cursor-file"),
        (["status", "redis://u:pw@h/0/x", "redis://u:pw@h/0/y"], "unrecognized arguments"),
        (["report", "redis://u:pw@h/0/x", "--node-folder", "b"], "expected NAME=DIR"),
    ],
)
def test_what_is_wrong_with_a_ledger_is_one_line_without_its_password(
    capsys: Output, words: list[str], expected: str
) -> None:
    line = refused(capsys, *words)
    assert expected in line
    assert "pw" not in line


def test_the_folder_of_a_node_is_only_for_a_ledger(capsys: Output, tmp_path: Path) -> None:
    assert "is for a ledger URL" in refused(capsys, "report", str(tmp_path), "--node-folder", "b=/x")
