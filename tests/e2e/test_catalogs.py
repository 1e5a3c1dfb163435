"""Crawls with `--catalog` on real servers; those of PostgreSQL have tests of their own (`test_postgresql_catalog`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.model.records import UrlState
from gossamer.reading.catalog_rows import is_page
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.catalog_places import CatalogPlace, places_of
from tests.e2e.program import beside, crawl_options, run, summary_of, survive, until
from tests.e2e.test_cluster import PLAN, Nodes
from tests.servers import engines
from tests.servers.redis import RedisServer, free_port, running
from tests.servers.tcp_proxy import TcpProxy
from tests.servers.web import RunningWeb

KINDS = [engines.param(kind) for kind in ("cassandra", "mongodb")]
PACE_MS = 20


@pytest.fixture(scope="module", params=KINDS)
def make_place(request: pytest.FixtureRequest) -> Iterator[Callable[[], CatalogPlace]]:
    with places_of(request.param) as make:
        yield make


@pytest.fixture
def place(make_place: Callable[[], CatalogPlace]) -> CatalogPlace:
    return make_place()


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=130, slow=0.0)) as web:
        yield web


def command(web: RunningWeb, out: Path, url: str, *more: str) -> list[str]:
    return ["crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--catalog", url, *more]


def check_whole(place: CatalogPlace, out: Path) -> None:
    """Check that pages, dead letters and hosts are those of the ledger, each exactly once."""
    with CrawlReader(out) as crawl:
        rows = list(crawl.ledger.urls())
        hosts = list(crawl.ledger.hosts())
    columns = ("url_id", "visit", "url", "content_hash", "archive_offset")
    assert sorted(tuple(row[name] for name in columns) for row in place.rows("pages")) == sorted(
        (url_id, row.visits, row.url, row.content_hash.hex(), row.archived.offset if row.archived else None)
        for url_id, row in rows
        if is_page(row)
    )
    assert sorted((row["url_id"], row["url"], row["outcome"]) for row in place.rows("dead_letters")) == sorted(
        (url_id, row.url, row.outcome) for url_id, row in rows if row.state is UrlState.DEAD
    )
    counts = ("name", "domain", "pages", "fetches", "errors", "queued")
    assert sorted(tuple(row[name] for name in counts) for row in place.rows("hosts")) == sorted(
        (host.name, host.domain, host.pages, host.fetches, host.errors, host.queued) for host in hosts
    )
    report = json.loads((out / "report.json").read_text())
    assert len(place.rows("pages")) == report["summary"]["pages"] > 50


def test_a_crawl_is_in_the_tables_when_it_ends(web: RunningWeb, place: CatalogPlace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, place.url(), "--workers", "2"))
    assert done.returncode == 0, done.stderr
    check_whole(place, out)
    pages = {row["url"]: row for row in place.rows("pages")}
    documents = [json.loads(line) for line in run("export", str(out), "--format", "jsonl").stdout.splitlines()]
    assert len(documents) > 50
    for document in documents:
        page = pages[document["url"]]
        fields = (page["title"], page["depth"], page["content_hash"], page["size"])
        assert fields == (document["title"], document["depth"], document["content_hash"], document["bytes"])
    assert {(row["crawl"], row["node"]) for row in pages.values()} == {("out", "")}
    assert {row["worker"] for row in pages.values()} == {0, 1}
    verified = run("verify", str(out))
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize(
    ("workers", "deaths"),
    [
        ("1", ["in_catalog:kill:4", "in_recovery:kill:3", "after_catalog:kill:2"]),
        ("2", ["in_commit:kill:2", "before_commit:kill:1", "in_catalog:kill:1"]),
    ],
)
def test_a_crawl_that_is_killed_and_resumed_has_every_row_once(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path, workers: str, deaths: list[str]
) -> None:
    out = tmp_path / "out"
    arguments = command(web, out, place.url(), "--workers", workers)
    survive(arguments, deaths)
    check_whole(place, out)
    assert run("verify", str(out)).returncode == 0


def test_dead_letters_that_are_tried_again_leave_the_table(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, place.url()))
    before = len(place.rows("dead_letters"))
    assert before > 0, done.stderr
    again = run("retry", str(out), "--politeness-ms", "3000", "--max-time", "1", "--json")  # one per host
    assert summary_of(again.stdout)["urls_queued"] > 0, again.stderr
    assert len(place.rows("dead_letters")) < before
    check_whole(place, out)


# -- outages --------------------------------------------------------------------------------------


def test_an_outage_pauses_the_crawl_which_goes_on_by_itself(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with (
        TcpProxy(place.port, cut_after_bytes=100_000) as proxy,
        beside(*command(web, out, place.url(proxy.port))) as process,
    ):
        warning = until(process, "fetching is paused")
        assert f"catalog {place.url(proxy.port)}" in warning
        assert "nothing is lost" in warning
        proxy.restore()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "Traceback" not in err
    check_whole(place, out)


def test_a_crawl_that_is_killed_during_an_outage_loses_nothing(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(place.port, cut_after_bytes=100_000) as proxy:
        arguments = command(web, out, place.url(proxy.port))
        with beside(*arguments) as process:
            until(process, "fetching is paused")
            process.kill()
        proxy.restore()
        done = run(*arguments)
    assert done.returncode == 0, done.stderr
    check_whole(place, out)


# -- what cannot be used --------------------------------------------------------------------------


def refused(done: subprocess.CompletedProcess[str], out: Path) -> str:
    """Return the one line with which a crawl was refused."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert not out.exists()
    return line


def test_a_server_that_is_not_there_and_the_catalog_of_another_crawl(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path
) -> None:
    out, port = tmp_path / "out", free_port()
    assert f"catalog {place.url(port)}: " in refused(run(*command(web, out, place.url(port))), out)
    assert run(*command(web, tmp_path / "first", place.url(), "-n", "5")).returncode == 0
    line = refused(run(*command(web, out, place.url())), out)
    assert "has the catalog of another crawl" in line
    assert place.another in line


def test_a_catalog_whose_tables_are_gone_is_not_continued_in_silence(
    web: RunningWeb, place: CatalogPlace, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*command(web, out, place.url(), "-n", "60")).returncode == 0
    place.drop()
    found = run("verify", str(out))
    assert found.returncode == 1
    assert "its tables are gone; --mend creates and fills them" in found.stdout
    resumed = run("resume", str(out), "-n", "70")
    assert resumed.returncode == 2
    assert "its tables are gone; 'gossamer verify DIR --mend' creates and fills them" in resumed.stderr
    mended = run("verify", str(out), "--mend")
    assert mended.returncode == 0, mended.stdout
    check_whole(place, out)


# -- verify ---------------------------------------------------------------------------------------


def test_verify_finds_and_mends_what_the_tables_lack(web: RunningWeb, place: CatalogPlace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, place.url()))
    assert done.returncode == 0, done.stderr
    lost, moved, kept = sorted(place.rows("pages"), key=lambda row: str(row["url"]))[:3]
    place.delete("pages", lost)
    place.change("pages", moved, "archive_offset", 1)
    letter = place.rows("dead_letters")[0]
    place.delete("dead_letters", letter)
    host = place.rows("hosts")[0]
    place.change("hosts", host, "pages", 9999)
    found = run("verify", str(out))
    assert found.returncode == 1
    for row in (lost, moved):
        assert f"{row['url']}: a page that the catalog does not have as the ledger does" in found.stdout
    assert f"{letter['url']}: a dead letter that the catalog does not have" in found.stdout
    assert f"{host['name']}: a host that the catalog does not have with the ledger's counts" in found.stdout
    assert f"{kept['url']}: " not in found.stdout
    assert "4 problems" in found.stdout
    mended = run("verify", str(out), "--mend")
    assert mended.returncode == 0, mended.stdout
    assert "4 rows stored again from the ledger" in mended.stdout
    check_whole(place, out)


# -- a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = engines.valkey()
    with running(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


def test_the_nodes_of_a_cluster_share_a_catalog(redis: RedisServer, place: CatalogPlace, tmp_path: Path) -> None:
    with RunningWeb(PLAN) as web:
        nodes = Nodes(web, redis, tmp_path, place.name, more=["--catalog", place.url()])
        nodes.start("a", "b")
        nodes.wait_for_requests(20)
        nodes.wait_for(lambda: place.commits_of("a") > 1)  # the ledger has the first one, too
        nodes.kill("a")
        summary = nodes.end("b")
    pages = place.rows("pages")
    assert len(pages) == summary["pages"]
    assert {row["node"] for row in pages} == {"a", "b"}
    assert {row["crawl"] for row in pages} == {nodes.name}
    assert place.name not in run("verify", nodes.url).stdout
    place.delete("pages", pages[0])
    assert "a page that the catalog does not have" in run("verify", nodes.url).stdout
