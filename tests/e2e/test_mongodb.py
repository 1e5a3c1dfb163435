"""Crawls with `--store mongodb://…` on a real server: whole, killed, cut off, and verified."""

from __future__ import annotations

import hashlib
import json
import signal
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pymongo.database import Database

from gossamer.backends.mongodb.connect import Document
from gossamer.model.records import FetchKind
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.e2e.program import beside, crawl_options, run, survive, until
from tests.e2e.test_cluster import Nodes, verb
from tests.servers import engines
from tests.servers.mongodb import PASSWORD, USER, WITH_LOGIN, MongoServer, running
from tests.servers.redis import running as running_redis
from tests.servers.tcp_proxy import TcpProxy
from tests.servers.web import RunningWeb

PACE_MS = 20
_databases = count()


@pytest.fixture(scope="module", params=[engines.param("mongodb")])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    with running(tmp_path_factory.mktemp("mongodb")) as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=130, slow=0.0)) as web:
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
    done = run(*command(web, out, server.url(database.name), "--workers", "2"))
    assert done.returncode == 0, done.stderr
    check_whole(database, out)
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
        ("1", ["in_store:kill:2", "in_recovery:kill:3", "in_store:kill:1"]),
        ("2", ["in_commit:kill:2", "before_commit:kill:1"]),
    ],
)
def test_a_crawl_that_is_killed_and_resumed_has_every_page_once(  # noqa: PLR0917 - fixtures
    web: RunningWeb,
    server: MongoServer,
    database: Database[Document],
    tmp_path: Path,
    workers: str,
    deaths: list[str],
) -> None:
    out = tmp_path / "out"
    arguments = command(web, out, server.url(database.name), "--workers", workers)
    survive(arguments, deaths)
    check_whole(database, out)


def test_pages_of_a_worker_that_dies_are_in_the_database(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = command(web, out, server.url(database.name), "--workers", "2")
    done = run(*arguments, environment={"GOSSAMER_FAILPOINT": "after_archive_write:kill:20"})
    assert done.returncode == 0, done.stderr
    assert "was killed by SIGKILL" in done.stderr
    check_whole(database, out)


# -- outages --------------------------------------------------------------------------------------


def test_an_outage_pauses_the_crawl_which_goes_on_by_itself(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with (
        TcpProxy(server.port, cut_after_bytes=60_000) as proxy,
        beside(*command(web, out, server.url(database.name, proxy.port))) as process,
    ):
        warning = until(process, "fetching is paused")
        assert f"mongodb://127.0.0.1:{proxy.port}/{database.name}" in warning
        assert "nothing is lost" in warning
        proxy.restore()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    check_whole(database, out)
    events = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.open()]
    assert [event for event in events if event.get("rule") == "store_unreachable"]


def test_a_crawl_that_is_killed_during_an_outage_loses_nothing(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(server.port, cut_after_bytes=60_000) as proxy:
        arguments = command(web, out, server.url(database.name, proxy.port))
        with beside(*arguments) as process:
            until(process, "fetching is paused")
            process.kill()
        proxy.restore()
        done = run(*arguments)
        assert run("verify", str(out)).returncode == 0
    assert done.returncode == 0, done.stderr
    check_whole(database, out)


def test_a_crawl_that_is_stopped_during_an_outage_can_be_resumed(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(server.port, cut_after_bytes=60_000) as proxy:
        arguments = command(web, out, server.url(database.name, proxy.port))
        with beside(*arguments) as process:
            until(process, "fetching is paused")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 11, err
        assert "resume" in err
        assert "Traceback" not in err
        proxy.restore()
        done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    check_whole(database, out)


@pytest.mark.engine("mongodb")
def test_the_password_is_in_no_file_and_in_no_message(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(tmp_path / "guarded", *WITH_LOGIN) as guarded:
        wrong = command(web, out, f"mongodb://{USER}:secret@127.0.0.1:{guarded.port}/crawl")
        refused = run(*wrong)
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) == 1
        assert "refuses user or password" in refused.stderr
        assert "secret" not in refused.stderr
        url = f"mongodb://{USER}@127.0.0.1:{guarded.port}/crawl"
        more = ("-n", "20", "-vv")
        done = run(*command(web, out, url, *more), environment={"GOSSAMER_MONGODB_PASSWORD": PASSWORD + "x"})
        assert done.returncode == 2, done.stderr
        done = run(*command(web, out, url, *more), environment={"GOSSAMER_MONGODB_PASSWORD": PASSWORD})
        assert done.returncode == 0, done.stderr
    for path in [*out.glob("events/*"), out / "crawl.toml"]:
        assert f":{PASSWORD}@" not in path.read_text()


def test_a_new_crawl_does_not_replace_the_pages_of_another(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    database.metadata.insert_one({"_id": "of another crawl"})
    out = tmp_path / "out"
    refused = run(*command(web, out, server.url(database.name)))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert f"{database.name}: has pages of another crawl" in refused.stderr
    assert not out.exists()


# -- verify ---------------------------------------------------------------------------------------


def test_verify_finds_and_mends_what_the_collections_lack(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, server.url(database.name)))
    assert done.returncode == 0, done.stderr
    assert run("verify", str(out)).returncode == 0
    pages = list(database.metadata.find({"duplicate_of": None}).limit(4))
    database.metadata.delete_one({"_id": pages[0]["_id"]})
    database.content.delete_one({"page_id": pages[1]["_id"]})
    database.metadata.delete_one({"_id": pages[2]["_id"]})
    database.content.delete_one({"page_id": pages[2]["_id"]})
    stray = "00" * 16 + "-1"
    database.content.insert_one({"_id": stray + "/000", "page_id": stray, "part": 0, "parts": 1})
    found = run("verify", str(out))
    assert found.returncode == 1
    for page in pages[:3]:
        assert f"{page['url']}: not stored, or without its whole body" in found.stdout
    assert pages[3]["url"] not in found.stdout
    assert f"{stray}: a body without a page" in found.stdout
    assert "4 problems" in found.stdout
    mended = run("verify", str(out), "--mend")
    assert mended.returncode == 0, mended.stdout
    assert "3 pages stored again from the archive" in mended.stdout
    assert "bodies without a page removed: 1" in mended.stdout
    check_whole(database, out)


def test_a_page_that_is_neither_in_the_database_nor_in_the_archive_is_named(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, server.url(database.name), "--save-interval", "60"))
    assert done.returncode == 0, done.stderr
    lost = sorted((out / "archive").glob("*.warc.gz"))[0]
    lost.unlink()
    database.content.delete_many({})
    mended = run("verify", str(out), "--mend", "--json")
    assert mended.returncode == 1
    with CrawlReader(out) as crawl:
        rows = [row for _, row in crawl.ledger.urls() if row.outcome == "ok" and not row.duplicate_of]
        rows = [row for row in rows if row.kind is FetchKind.PAGE]
        gone = {row.url for row in rows if row.archived is not None and row.archived.file == lost.name}
    assert 0 < len(gone) < len(rows)
    assert f"{len(rows) - len(gone)} pages stored again" in mended.stdout
    problems = [problem["what"] for problem in json.loads(mended.stdout)["problems"]]
    assert {what.partition(": ")[0] for what in problems if "not stored, or without" in what} == gone
    assert database.content.count_documents({}) == len(rows) - len(gone)


def test_a_database_that_cannot_be_reached_is_named_by_verify_and_before_a_crawl(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(server.port) as proxy:
        done = run(*command(web, out, server.url(database.name, proxy.port), "-n", "20"))
        assert done.returncode == 0, done.stderr
    found = run("verify", str(out))
    assert found.returncode == 1
    assert "its pages were not compared" in found.stdout
    assert "1 problem" in found.stdout
    refused = run("resume", str(out))
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert f"mongodb://127.0.0.1:{proxy.port}/{database.name}: cannot be reached" in refused.stderr


# -- a cluster ------------------------------------------------------------------------------------


class NodesWithStore(Nodes):
    """Nodes that store their pages in one database."""

    store = ""

    def options(self) -> list[str]:
        return [*super().options(), "--store", self.store]


def committed_pages(nodes: Nodes, name: str) -> int:
    lines = json.loads(verb("status", nodes.url, "--json"))["nodes"]
    return sum(int(line["pages"]) for line in lines if line["name"] == name)


def test_the_nodes_of_a_cluster_share_a_database(
    web: RunningWeb, server: MongoServer, database: Database[Document], tmp_path: Path
) -> None:
    program = engines.valkey()
    with running_redis(program, tmp_path / "redis") as redis:
        nodes = NodesWithStore(web, redis, tmp_path)
        nodes.store = server.url(database.name)
        nodes.start("a", "b")
        nodes.wait_for(lambda: database.metadata.count_documents({"node": "a"}) > 20)
        # What is in the database before its commit is fetched again by the other node.
        nodes.wait_for(lambda: committed_pages(nodes, "a") > 20)
        nodes.kill("a")
        summary = nodes.end("b")
    pages = list(database.metadata.find({}))
    assert len(pages) == summary["pages"]
    assert {page["node"] for page in pages} == {"a", "b"}
    bodies = {content["page_id"] for content in database.content.find({})}
    assert {page["_id"] for page in pages if page["duplicate_of"] is None} <= bodies <= {page["_id"] for page in pages}
