"""Crawls with `--store mongodb://…` on a real server: whole, killed, cut off, and verified."""

from __future__ import annotations

import hashlib
import json
import signal
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from gossamer.backends.mongodb.connect import Document
from gossamer.sim.running import RunningWeb
from gossamer.sim.web import preset
from tests.e2e.program import crawl_options, run, start, summary_of
from tests.servers.mongodb import PASSWORD, USER, WITH_LOGIN, MongoServer, require_mongodb, running
from tests.servers.tcp_proxy import TcpProxy

PACE_MS = 20
_databases = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    require_mongodb()
    with running(tmp_path_factory.mktemp("mongodb")) as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=150)) as web:
        yield web


@pytest.fixture
def database(server: MongoServer) -> Iterator[Database[Document]]:
    with server.client() as client:
        yield client[f"crawl{next(_databases)}"]


def command(web: RunningWeb, out: Path, url: str, *more: str) -> list[str]:
    return ["crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--store", "warc", "--store", url, *more]


def check_whole(database: Database[Document], out: Path) -> None:
    """Check that every page of the catalog is in the database exactly once, with the body of the archive."""
    pages = {page["_id"]: page for page in database.metadata.find({})}
    report = json.loads((out / "report.json").read_text())
    assert len(pages) == report["summary"]["pages"] > 50
    urls = [page["url"] for page in pages.values()]
    assert len(set(urls)) == len(urls)
    bodies = {content["page_id"]: content for content in database.content.find({})}
    assert database.content.count_documents({}) == len(bodies)
    for name, page in pages.items():
        if page["duplicate_of"] is None:
            body = zlib.decompress(bodies.pop(name)["html_compressed"])
            assert hashlib.sha256(body).hexdigest() == page["content_hash"]
            assert len(body) == page["size"]
    assert bodies == {}, "no body without its page"


def test_a_crawl_is_in_the_database_when_it_ends(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, server.url(database.name)))
    assert done.returncode == 0, done.stderr
    check_whole(database, out)


def test_it_has_what_the_catalog_has(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, server.url(database.name), "--workers", "2"))
    assert done.returncode == 0, done.stderr
    exported = run("export", str(out), "--format", "jsonl")
    assert exported.returncode == 0, exported.stderr
    documents = [json.loads(line) for line in exported.stdout.splitlines()]
    assert len(documents) > 50
    for document in documents:
        (page,) = database.metadata.find({"url": document["url"]})
        assert page["title"] == document["title"]
        assert page["status"] == 200
        assert page["content_type"] == "text/html"
        assert page["host"].endswith(page["domain"])
    assert {page["worker"] for page in database.metadata.find({})} == {0, 1}
    copies = list(database.metadata.find({"duplicate_of": {"$ne": None}}))
    assert copies, "this web has pages with the same content"
    for copy in copies:
        (first,) = database.metadata.find({"_id": copy["duplicate_of"] + "-1"})
        assert first["content_hash"] == copy["content_hash"]
        assert first["duplicate_of"] is None


def test_only_the_database_may_be_named_and_the_archive_is_still_there(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--store", server.url(database.name)]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    check_whole(database, out)
    assert list((out / "archive").glob("*.warc.gz"))


@pytest.mark.parametrize(
    ("workers", "deaths"),
    [
        ("1", ["in_store:kill:2", "before_commit:kill:2", "in_recovery:kill:3", "in_store:kill:1"]),
        ("2", ["after_archive_write:kill:20", "in_commit:kill:2", "in_store:kill:1", "before_commit:kill:1"]),
    ],
)
def test_a_crawl_that_is_killed_and_resumed_has_every_page_once(
    web: RunningWeb,
    server: MongoServer,
    database: Database[Document],
    tmp_path: Path,
    workers: str,
    deaths: list[str],
) -> None:
    out = tmp_path / "out"
    arguments = command(web, out, server.url(database.name), "--workers", workers)
    for death in deaths:
        killed = run(*arguments, environment={"GOSSAMER_FAILPOINT": death})
        is_hub = not death.startswith("after_archive_write") or workers == "1"
        assert killed.returncode == (-signal.SIGKILL if is_hub else 0), killed.stderr
        if not is_hub:  # a worker died, and the hub went on
            check_whole(database, out)
            arguments = [*arguments[:-1], workers, "--out", str(tmp_path / "second")]
            out = tmp_path / "second"
            database.client.drop_database(database.name)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    check_whole(database, out)
