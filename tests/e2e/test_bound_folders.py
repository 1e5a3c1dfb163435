"""The folder of a node belongs to one crawl: another one does not cut, move or replace anything in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.reading.node_folders import NODE_FILE
from gossamer.sim.web.web import preset
from tests.e2e.program import run
from tests.e2e.test_cluster import Nodes
from tests.servers.redis import RedisServer
from tests.servers.web import RunningWeb

PAGES = 40


def _begun(web: RunningWeb, server: RedisServer, folder: Path, name: str, pages: int) -> Nodes:
    """Crawl some pages as node `b` and end."""
    nodes = Nodes(web, server, folder, name, more=["--max-pages", str(pages)])
    nodes.start("b")
    nodes.end("b")
    return nodes


def _files(folder: Path) -> dict[str, bytes]:
    kinds = ("archive/*", "index/*", "events/*", "aside/*", "crawl.toml", "state/*")
    paths = (path for kind in kinds for path in folder.glob(kind))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def _is_refused(url: str, folder: Path) -> bool:
    """Return whether joining with a folder is refused in one line, and changes nothing."""
    before = _files(folder)
    done = run("join", url, "--node", "b", "-o", str(folder), "--no-progress")
    assert _files(folder) == before
    lines = done.stderr.splitlines()
    return (done.returncode, len(lines)) == (2, 1) and "of another crawl" in lines[0]


def _has_joined(url: str, folder: Path) -> bool:
    done = run("join", url, "--node", "b", "-o", str(folder), "--no-progress")
    assert done.returncode == 0, done.stderr
    return not list(folder.glob("aside/*"))


@pytest.fixture
def web() -> RunningWeb:
    return RunningWeb(preset("small", seed=3, pages=PAGES))


def test_the_folder_of_a_node_of_another_crawl_is_refused(web: RunningWeb, server: RedisServer, tmp_path: Path) -> None:
    with web:
        _begun(web, server, tmp_path, "books", 10)
        two = _begun(web, server, tmp_path / "two", "two", 10)
        assert run("set", two.url, "max-pages", "20").returncode == 0
        assert _is_refused(two.url, tmp_path / "b")
        assert _has_joined(two.url, tmp_path / "two" / "b")


def test_a_crawl_that_was_begun_again_under_its_name_is_another_one(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    with web:
        _begun(web, server, tmp_path, "books", 10)
        with server.client() as client:
            client.flushall()
        again = _begun(web, server, tmp_path / "again", "books", 10)
        assert run("set", again.url, "max-pages", "20").returncode == 0
        assert _is_refused(again.url, tmp_path / "b")


def test_a_folder_that_went_on_with_a_copy_does_not_go_back(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    with web:
        old = _begun(web, server, tmp_path, "old", 10)
        new = f"{server.url}/new"
        assert run("migrate", old.url, new).returncode == 0
        for url in (old.url, new):
            assert run("set", url, "max-pages", "20").returncode == 0
        assert _has_joined(new, tmp_path / "b")
        assert _is_refused(old.url, tmp_path / "b")
        assert run("verify", new).returncode == 0


def test_a_folder_of_an_earlier_version_belongs_to_the_crawl_that_knows_its_archive(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    with web:
        books = _begun(web, server, tmp_path, "books", 10)
        two = _begun(web, server, tmp_path / "two", "two", 10)
        file = tmp_path / "b" / "state" / NODE_FILE
        file.write_text(" ".join(file.read_text().split()[:2]))
        for nodes in (books, two):
            assert run("set", nodes.url, "max-pages", "20").returncode == 0
        assert _is_refused(two.url, tmp_path / "b")
        assert _has_joined(books.url, tmp_path / "b")


def test_an_archive_file_of_unknown_origin_is_neither_cut_nor_moved(
    web: RunningWeb, server: RedisServer, tmp_path: Path
) -> None:
    with web:
        books = _begun(web, server, tmp_path, "books", 10)
        strange = tmp_path / "b" / "archive" / "gossamer-c-20260101000000000-00-00000.warc.gz"
        strange.write_bytes(b"what another node has stored")
        assert run("set", books.url, "max-pages", "20").returncode == 0
        before = _files(tmp_path / "b")
        done = run("join", books.url, "--node", "b", "-o", str(tmp_path / "b"), "--no-progress")
        assert (done.returncode, "of which this crawl knows nothing" in done.stderr) == (2, True), done.stderr
        after = _files(tmp_path / "b")
        assert {name for name in before if before[name] != after[name]} <= {f"state/{NODE_FILE}", "state/owner"}
        strange.unlink()
        assert _has_joined(books.url, tmp_path / "b")
