"""Crawls with `--catalog postgresql://…` on a real server: whole, killed, cut off, and verified."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from gossamer.model.records import UrlState
from gossamer.reading.catalog_rows import is_page
from gossamer.reading.folder import CrawlReader
from gossamer.sim.web.web import preset
from tests.e2e.program import beside, crawl_options, run, summary_of, survive, until
from tests.e2e.test_cluster import PLAN, Nodes
from tests.servers import engines
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.redis import free_port
from tests.servers.tcp_proxy import TcpProxy
from tests.servers.web import RunningWeb

PACE_MS = 20
_schemas = count()


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with RunningWeb(preset("small", pages=130, slow=0.0)) as web:
        yield web


class Schema:
    """A schema for one catalog."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server = server
        self.name = name

    def url(self, port: int = 0, login: str = "postgres") -> str:
        return f"postgresql://{login}@127.0.0.1:{port or self.server.port}/postgres/{self.name}"

    def query(self, text: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, or change something."""
        with psycopg.connect(**self.server.parameters) as connection:  # type: ignore[arg-type]
            connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.name)))
            done = connection.execute(text.encode(), values)
            return done.fetchall() if done.description else []

    def number(self, text: str) -> int:
        ((number,),) = self.query(text)
        return int(number)


@pytest.fixture
def schema(server: PostgresServer) -> Schema:
    return Schema(server, f"catalog{next(_schemas)}")


def command(web: RunningWeb, out: Path, url: str, *more: str) -> list[str]:
    return ["crawl", *web.seeds(), *crawl_options(web, out, PACE_MS), "--catalog", url, *more]


def check_whole(schema: Schema, out: Path) -> None:
    """Check that pages, dead letters and hosts are those of the ledger, each exactly once."""
    with CrawlReader(out) as crawl:
        rows = list(crawl.ledger.urls())
        hosts = list(crawl.ledger.hosts())
    assert sorted(schema.query("SELECT url_id, visit, url, content_hash, archive_offset FROM pages")) == sorted(
        (url_id, row.visits, row.url, row.content_hash.hex(), row.archived.offset if row.archived else None)
        for url_id, row in rows
        if is_page(row)
    )
    assert sorted(schema.query("SELECT url_id, url, outcome FROM dead_letters")) == sorted(
        (url_id, row.url, row.outcome) for url_id, row in rows if row.state is UrlState.DEAD
    )
    assert sorted(schema.query("SELECT name, domain, pages, fetches, errors, queued FROM hosts")) == sorted(
        (host.name, host.domain, host.pages, host.fetches, host.errors, host.queued) for host in hosts
    )
    report = json.loads((out / "report.json").read_text())
    assert schema.number("SELECT count(*) FROM pages") == report["summary"]["pages"] > 50


# -- whole crawls ---------------------------------------------------------------------------------


def test_a_crawl_is_in_the_tables_when_it_ends(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url(), "--workers", "2"))
    assert done.returncode == 0, done.stderr
    check_whole(schema, out)
    exported = run("export", str(out), "--format", "jsonl")
    documents = [json.loads(line) for line in exported.stdout.splitlines()]
    assert len(documents) > 50
    found = {row[0]: row[1:] for row in schema.query("SELECT url, title, depth, content_hash, size FROM pages")}
    for document in documents:
        fields = (document["title"], document["depth"], document["content_hash"], document["bytes"])
        assert found[document["url"]] == fields
    assert schema.query("SELECT DISTINCT worker FROM pages ORDER BY 1") == [(0,), (1,)]
    assert schema.query("SELECT DISTINCT crawl, node, status, content_type FROM pages WHERE words > 0") == [
        ("out", "", 200, "text/html")
    ]
    assert schema.number("SELECT count(*) FROM pages WHERE right(host, length(domain)) <> domain") == 0
    assert schema.number("SELECT count(*) FROM pages WHERE fetched_at < now() - interval '1 hour'") == 0
    files = {path.name for path in (out / "archive").glob("*.warc.gz")}
    assert {file for (file,) in schema.query("SELECT DISTINCT archive_file FROM pages")} == files
    assert run("verify", str(out)).returncode == 0


def test_the_views_answer_what_people_ask(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url()))
    assert done.returncode == 0, done.stderr
    summary = summary_of(done.stdout)
    assert schema.number("SELECT count(*) FROM latest_pages") == summary["pages"]
    assert schema.number("SELECT sum(pages) FROM pages_per_host") == summary["pages"]
    assert schema.number("SELECT sum(pages) FROM hosts") == summary["pages"]
    assert schema.number("SELECT count(*) FROM duplicates WHERE kind = 'exact'") == summary["duplicates"] > 0
    assert schema.number("SELECT count(*) FROM duplicates WHERE kind = 'near'") == summary["near_duplicates"]
    assert schema.number("SELECT count(*) FROM duplicates WHERE original IS NULL OR original = url") == 0
    dead = schema.number("SELECT count(*) FROM dead_letters")
    assert schema.number("SELECT sum(urls) FROM errors_by_outcome") == dead > 0
    links = schema.number("SELECT sum(links) FROM pages")
    assert schema.number("SELECT sum(links) FROM links_summary") == links > summary["pages"]
    ((url, reason, attempts, found_on),) = schema.query(
        "SELECT url, reason, attempts, found_on FROM dead_letters WHERE found_on IS NOT NULL AND status = 404 LIMIT 1"
    )
    assert url != found_on
    assert schema.query("SELECT url FROM pages WHERE url = %s", [found_on]) == [(found_on,)]
    assert (reason, attempts) == ("", 1) or attempts == 1


def test_a_catalog_works_without_an_archive_and_beside_another_catalog(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    other = Schema(schema.server, schema.name + "_other")
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url(), "--catalog", other.url(), "--store", "files"))
    assert done.returncode == 0, done.stderr
    for each in (schema, other):
        check_whole(each, out)
        assert each.query("SELECT DISTINCT archive_file, archive_offset FROM pages") == [(None, None)]


def test_the_schema_has_a_name_of_its_own_unless_the_url_names_one(
    web: RunningWeb, server: PostgresServer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, server.url))
    assert done.returncode == 0, done.stderr
    check_whole(Schema(server, "gossamer_catalog"), out)


# -- kills ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "deaths"),
    [
        ("1", ["in_catalog:kill:4", "in_recovery:kill:3", "after_catalog:kill:2"]),
        ("2", ["in_commit:kill:2", "before_commit:kill:1", "in_catalog:kill:1"]),
    ],
)
def test_a_crawl_that_is_killed_and_resumed_has_every_row_once(
    web: RunningWeb, schema: Schema, tmp_path: Path, workers: str, deaths: list[str]
) -> None:
    out = tmp_path / "out"
    arguments = command(web, out, schema.url(), "--workers", workers)
    survive(arguments, deaths)
    check_whole(schema, out)
    assert run("verify", str(out)).returncode == 0


def test_dead_letters_that_are_tried_again_leave_the_table(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url()))
    before = schema.number("SELECT count(*) FROM dead_letters")
    assert before > 0, done.stderr
    again = run("retry", str(out), "--politeness-ms", "3000", "--max-time", "1", "--json")  # one per host
    assert summary_of(again.stdout)["urls_queued"] > 0, again.stderr
    assert schema.number("SELECT count(*) FROM dead_letters") < before
    check_whole(schema, out)


# -- outages --------------------------------------------------------------------------------------


def test_an_outage_of_more_than_30_s_pauses_the_crawl_which_goes_on_by_itself(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with (
        TcpProxy(schema.server.port, cut_after_bytes=60_000) as proxy,
        beside(*command(web, out, schema.url(proxy.port))) as process,
    ):
        warning = until(process, "fetching is paused")
        assert f"catalog postgresql://127.0.0.1:{proxy.port}/postgres/{schema.name}" in warning
        assert "nothing is lost" in warning
        assert "fetching is paused for 3" in until(process, "fetching is paused"), "again after 30 s"
        proxy.restore()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    check_whole(schema, out)
    events = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.open()]
    assert len([event for event in events if event.get("rule") == "store_unreachable"]) == 2


@pytest.mark.engine("postgresql")
def test_a_server_that_is_killed_and_comes_back_loses_nothing(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running_postgres() as own:
        schema = Schema(own, "killed")
        with beside(*command(web, out, schema.url(), "-vv")) as process:
            until(process, "/p/")
            own.stop()
            until(process, "fetching is paused")
            own.start()
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        check_whole(schema, out)


def test_a_crawl_that_is_killed_during_an_outage_loses_nothing(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with TcpProxy(schema.server.port, cut_after_bytes=60_000) as proxy:
        arguments = command(web, out, schema.url(proxy.port))
        with beside(*arguments) as process:
            until(process, "fetching is paused")
            process.kill()
        proxy.restore()
        done = run(*arguments)
        assert run("verify", str(out)).returncode == 0
    assert done.returncode == 0, done.stderr
    check_whole(schema, out)


def test_a_crawl_that_is_stopped_during_an_outage_can_be_resumed(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(schema.server.port, cut_after_bytes=60_000) as proxy:
        with beside(*command(web, out, schema.url(proxy.port))) as process:
            until(process, "fetching is paused")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 11, err
        assert "resume" in err
        assert "Traceback" not in err
        proxy.restore()
        done = run("resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    check_whole(schema, out)


def test_a_full_disk_of_the_server_pauses_the_crawl_until_there_is_room(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url(), "-n", "20"))
    assert done.returncode == 0, done.stderr
    schema.query(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
    )
    schema.query("CREATE TRIGGER full_disk BEFORE INSERT ON pages FOR EACH ROW EXECUTE FUNCTION full_disk()")
    with beside("resume", str(out), "-n", "10000", "--json") as process:
        warning = until(process, "fetching is paused")
        assert "PostgreSQL is full: could not extend file: No space left on device" in warning
        assert "give it more room" in warning
        schema.query("DROP TRIGGER full_disk ON pages")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    check_whole(schema, out)


# -- what cannot be used --------------------------------------------------------------------------


def refused(done: subprocess.CompletedProcess[str], out: Path) -> str:
    """Return the one line with which a crawl was refused."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert not out.exists()
    return line


def test_a_server_that_is_not_there(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    line = refused(run(*command(web, out, f"postgresql://127.0.0.1:{free_port()}/postgres")), out)
    assert "catalog postgresql://127.0.0.1:" in line
    assert "PostgreSQL cannot be used now" in line
    assert "Connection refused" in line


@pytest.mark.parametrize(("login", "database", "expected"), [
    ("nobody", "postgres", 'role "nobody" does not exist'),
    ("postgres", "elsewhere", 'database "elsewhere" does not exist'),
    ("reader", "postgres/fresh", "permission denied for database"),
    ("reader", "postgres/hidden", "permission denied for schema"),
    ("reader", "postgres/owned", "permission denied for table pages"),
])  # fmt: skip
def test_a_user_or_a_database_that_is_wrong(  # noqa: PLR0917 - fixtures
    web: RunningWeb, server: PostgresServer, tmp_path: Path, login: str, database: str, expected: str
) -> None:
    with server.connection() as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    if database.endswith(("owned", "hidden")):
        owned = Schema(server, database.partition("/")[2])
        assert run(*command(web, tmp_path / "first", owned.url(), "-n", "1")).returncode == 0
    if database.endswith("owned"):
        owned.query("GRANT USAGE ON SCHEMA owned TO reader")
        owned.query("GRANT SELECT ON ALL TABLES IN SCHEMA owned TO reader")
    out = tmp_path / "out"
    line = refused(run(*command(web, out, f"postgresql://{login}:secret@127.0.0.1:{server.port}/{database}")), out)
    assert expected in line
    assert "may create a schema" in line
    assert "secret" not in line


@pytest.mark.engine("postgresql")
def test_the_password_is_in_no_file_and_in_no_message(web: RunningWeb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running_postgres() as guarded:
        with guarded.connection() as connection:
            connection.execute("CREATE ROLE crawler LOGIN SUPERUSER PASSWORD 'right-one'")
        access = guarded.folder / "pg_hba.conf"
        access.write_text("host all postgres all trust\nhost all all all scram-sha-256\n")
        with guarded.connection() as connection:
            connection.execute("SELECT pg_reload_conf()")
        place = f"127.0.0.1:{guarded.port}/postgres"
        line = refused(run(*command(web, out, f"postgresql://crawler:wrong-one@{place}")), out)
        assert "password authentication failed" in line
        assert "wrong-one" not in line
        assert "no password supplied" in refused(run(*command(web, out, f"postgresql://crawler@{place}")), out)
        done = run(*command(web, out, f"postgresql://crawler:right-one@{place}", "-n", "20", "-vv"))
        assert done.returncode == 0, done.stderr
        assert "right-one" not in done.stdout + done.stderr
        for path in [*out.glob("events/*"), out / "crawl.toml"]:
            assert "right-one" not in path.read_text()
        assert f"crawler:***@{place}" in (out / "crawl.toml").read_text()
        more = ("resume", str(out), "-n", "30", "--json")
        assert run(*more).returncode == 2
        done = run(*more, environment={"PGPASSWORD": "right-one"})
        assert done.returncode == 0, done.stderr
        assert Schema(guarded, "gossamer_catalog").number("SELECT count(*) FROM pages") == 30


def test_a_new_crawl_does_not_replace_the_rows_of_another(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    assert run(*command(web, tmp_path / "first", schema.url(), "-n", "5")).returncode == 0
    out = tmp_path / "out"
    line = refused(run(*command(web, out, schema.url())), out)
    assert f"its schema {schema.name} has the catalog of another crawl" in line
    assert "name another schema" in line


def test_tables_of_somebody_else_are_left_alone(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    with schema.server.connection() as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema.name)))
    schema.query("CREATE TABLE pages (number integer)")
    out = tmp_path / "out"
    assert "has a table pages that is not a catalog's" in refused(run(*command(web, out, schema.url())), out)


def test_a_catalog_whose_tables_are_gone_is_not_continued_in_silence(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*command(web, out, schema.url(), "-n", "60")).returncode == 0
    with schema.server.connection() as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema.name)))
    found = run("verify", str(out))
    assert found.returncode == 1
    assert "its tables are gone; --mend creates and fills them" in found.stdout
    resumed = run("resume", str(out), "-n", "70")
    assert resumed.returncode == 2
    assert "its tables are gone; 'gossamer verify DIR --mend' creates and fills them" in resumed.stderr
    mended = run("verify", str(out), "--mend")
    assert mended.returncode == 0, mended.stdout
    check_whole(schema, out)
    assert run("resume", str(out), "-n", "70").returncode == 0
    check_whole(schema, out)


# -- verify ---------------------------------------------------------------------------------------


def test_verify_finds_and_mends_what_the_tables_lack(web: RunningWeb, schema: Schema, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(web, out, schema.url()))
    assert done.returncode == 0, done.stderr
    (lost,), (moved,), (kept,) = schema.query("SELECT url FROM pages ORDER BY url LIMIT 3")
    schema.query("DELETE FROM pages WHERE url = %s", [lost])
    schema.query("UPDATE pages SET archive_offset = 1 WHERE url = %s", [moved])
    stray = "http://stray.test/"
    schema.query(
        "INSERT INTO pages SELECT '\\x00', 1, %s, host, domain, title, status, content_type, language, depth, size, "
        "words, links, content_hash, NULL, NULL, fetched_at, archive_file, archive_offset, node, worker, crawl, "
        "committed_at FROM pages LIMIT 1",
        [stray],
    )
    ((letter,),) = schema.query("SELECT url FROM dead_letters LIMIT 1")
    schema.query("DELETE FROM dead_letters WHERE url = %s", [letter])
    ((host,),) = schema.query("UPDATE hosts SET pages = 0 WHERE name IN (SELECT max(name) FROM hosts) RETURNING name")
    found = run("verify", str(out))
    assert found.returncode == 1
    for url in (lost, moved):
        assert f"{url}: a page that the catalog does not have as the ledger does" in found.stdout
    assert f"{stray}: a visit that the ledger does not know" in found.stdout
    assert f"{letter}: a dead letter that the catalog does not have" in found.stdout
    assert f"{host}: a host that the catalog does not have with the ledger's counts" in found.stdout
    assert f"{kept}: " not in found.stdout
    assert "5 problems" in found.stdout
    mended = run("verify", str(out), "--mend")
    assert mended.returncode == 0, mended.stdout
    assert "4 rows stored again from the ledger" in mended.stdout
    assert "1 row that the ledger does not know removed" in mended.stdout
    check_whole(schema, out)


def test_a_catalog_that_cannot_be_reached_is_named_by_verify_and_before_a_crawl_goes_on(
    web: RunningWeb, schema: Schema, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with TcpProxy(schema.server.port) as proxy:
        done = run(*command(web, out, schema.url(proxy.port), "-n", "20"))
        assert done.returncode == 0, done.stderr
    found = run("verify", str(out), "--mend")
    assert found.returncode == 1
    assert "its rows were not compared" in found.stdout
    assert "1 problem" in found.stdout
    resumed = run("resume", str(out))
    assert resumed.returncode == 2
    assert len(resumed.stderr.splitlines()) == 1
    assert f"postgresql://127.0.0.1:{proxy.port}/postgres/{schema.name}: PostgreSQL cannot be used" in resumed.stderr


# -- a cluster ------------------------------------------------------------------------------------


def test_the_nodes_of_a_cluster_share_a_catalog(schema: Schema, tmp_path: Path) -> None:
    with RunningWeb(PLAN) as web:
        nodes = Nodes(web, schema.server, tmp_path, f"of_{schema.name}", more=["--catalog", schema.url()])
        nodes.start("a", "b")
        nodes.wait_for_requests(20)
        ledger = Schema(schema.server, f"gossamer_{nodes.name}")
        nodes.wait_for(lambda: ledger.number("SELECT pages FROM nodes WHERE name = 'a'") > 20)
        nodes.kill("a")
        summary = nodes.end("b")
    assert schema.number("SELECT count(*) FROM pages") == summary["pages"]
    assert {node for (node,) in schema.query("SELECT DISTINCT node FROM pages")} == {"a", "b"}
    assert schema.query("SELECT DISTINCT crawl FROM pages") == [(nodes.name,)]
    verified = run("verify", nodes.url)
    assert schema.name not in verified.stdout, verified.stdout
    schema.query("DELETE FROM pages WHERE url IN (SELECT url FROM pages LIMIT 1)")
    assert "a page that the catalog does not have" in run("verify", nodes.url).stdout
