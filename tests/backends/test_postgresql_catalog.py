"""The tables of a catalog on a real PostgreSQL: what is replaced, what is not, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from msgspec.structs import replace

from gossamer.backends.postgresql.catalog import PostgresCatalog
from gossamer.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogChanges, CatalogHost, CatalogPage, DeadLetter, HostCounts
from tests.servers.postgresql import PostgresServer, postgres_programs, running_postgres

_schemas = count()
PAGE = CatalogPage(
    url_id=b"\x01" * 16,
    visit=1,
    url="http://h.test/a",
    host="h.test",
    domain="h.test",
    title="Title",
    status=200,
    content_type="text/html",
    language="en",
    depth=1,
    size=5_000_000_000,
    words=7,
    links=3,
    content_hash="ab",
    duplicate_of=None,
    near_duplicate_of=b"\x02" * 16,
    fetched_at=1_700_000_000.25,
    archive_file="gossamer-1.warc.gz",
    archive_offset=5_000_000_000,
    node="",
    worker=2,
)
LETTER = DeadLetter(
    url_id=b"\x03" * 16,
    url="http://h.test/gone",
    host="h.test",
    outcome="client_error",
    status=404,
    reason="",
    attempts=1,
    found_on="http://h.test/a",
    at=1_700_000_001.0,
    node="",
)
HOST = CatalogHost(
    name="h.test",
    domain="h.test",
    pages=1,
    fetches=2,
    errors=1,
    queued=0,
    bytes=100,
    rank=0.5,
    delay_s=1.0,
    latency_s=0.01,
    is_blocked=False,
    is_dead=False,
    park_reason="",
    parked_until=0.0,
    first_seen_at=1_700_000_000.0,
    last_fetch_at=1_700_000_001.0,
    node="",
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if postgres_programs() is None:
        pytest.skip("no PostgreSQL: make engines")
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    return f"{server.url}/s{next(_schemas)}"


@pytest.fixture
def catalog(url: str) -> Iterator[PostgresCatalog]:
    made = PostgresCatalog(url)
    made.check("crawl")
    yield made
    made.close()


def rows(server: PostgresServer, catalog: PostgresCatalog, query: str) -> list[tuple[object, ...]]:
    with server.connection() as connection:
        connection.execute(f"SET search_path TO {catalog.name.rpartition('/')[2]}".encode())
        found = connection.execute(query.encode())
        return found.fetchall() if found.description else []


def test_rows_say_what_was_put(server: PostgresServer, catalog: PostgresCatalog) -> None:
    catalog.put(CatalogChanges(1.0, [PAGE], [LETTER], (), [HOST]))
    fields = "url, title, size, extract(epoch FROM fetched_at)::float8, archive_offset, near_duplicate_of, crawl"
    assert rows(server, catalog, f"SELECT {fields} FROM pages") == [
        (PAGE.url, "Title", PAGE.size, PAGE.fetched_at, PAGE.archive_offset, PAGE.near_duplicate_of, "crawl")
    ]
    assert rows(server, catalog, "SELECT url, outcome, status, attempts, found_on FROM dead_letters") == [
        (LETTER.url, "client_error", 404, 1, PAGE.url)
    ]
    assert rows(server, catalog, "SELECT name, pages, parked_until, is_dead FROM hosts") == [("h.test", 1, None, False)]


def test_rows_that_are_put_again_change_nothing(server: PostgresServer, catalog: PostgresCatalog) -> None:
    changes = CatalogChanges(1.0, [PAGE], [LETTER], (), [HOST])
    catalog.put(changes)
    before = [rows(server, catalog, f"SELECT * FROM {table}") for table in ("pages", "dead_letters", "hosts")]
    catalog.put(changes)
    assert [rows(server, catalog, f"SELECT * FROM {table}") for table in ("pages", "dead_letters", "hosts")] == before
    assert [len(found) for found in before] == [1, 1, 1]


def test_every_visit_has_a_row_and_the_last_one_is_in_the_view(
    server: PostgresServer, catalog: PostgresCatalog
) -> None:
    again = replace(PAGE, visit=2, title="Changed")
    catalog.put(CatalogChanges(1.0, [PAGE]))
    catalog.put(CatalogChanges(2.0, [again]))
    assert rows(server, catalog, "SELECT visit, title FROM pages ORDER BY visit") == [(1, "Title"), (2, "Changed")]
    assert rows(server, catalog, "SELECT visit, title FROM latest_pages") == [(2, "Changed")]


def test_an_earlier_commit_of_a_node_never_replaces_a_later_one(
    server: PostgresServer, catalog: PostgresCatalog
) -> None:
    def of_node(name: str, at: float) -> CatalogChanges:
        letter = replace(LETTER, reason=name, node=name)
        return CatalogChanges(at, [replace(PAGE, title=name, node=name)], [letter], (), [replace(HOST, node=name)])

    query = "SELECT title, (SELECT reason FROM dead_letters), (SELECT node FROM hosts) FROM pages"  # one row of each
    catalog.put(of_node("b", 20.0))
    catalog.put(of_node("a", 10.0))
    catalog.put(CatalogChanges(10.0, not_dead=[LETTER.url_id]))
    assert rows(server, catalog, query) == [("b", "b", "b")]
    catalog.put(of_node("c", 30.0))
    assert rows(server, catalog, query) == [("c", "c", "c")]


def test_on_one_machine_a_clock_that_was_set_back_loses_nothing(
    server: PostgresServer, catalog: PostgresCatalog
) -> None:
    catalog.put(CatalogChanges(20.0, [PAGE], [LETTER]))
    catalog.put(CatalogChanges(10.0, [replace(PAGE, title="Later")], not_dead=[LETTER.url_id]))
    assert rows(server, catalog, "SELECT title FROM pages") == [("Later",)]
    assert rows(server, catalog, "SELECT * FROM dead_letters") == []


def test_what_is_no_dead_letter_any_more_leaves_the_table(server: PostgresServer, catalog: PostgresCatalog) -> None:
    other = replace(LETTER, url_id=b"\x04" * 16)
    catalog.put(CatalogChanges(1.0, dead_letters=[LETTER, other]))
    catalog.put(CatalogChanges(2.0, not_dead=[LETTER.url_id, PAGE.url_id]))
    assert rows(server, catalog, "SELECT url_id FROM dead_letters") == [(other.url_id,)]


def test_texts_with_nul_and_very_long_urls_are_stored(server: PostgresServer, catalog: PostgresCatalog) -> None:
    url = "http://h.test/" + "".join(chr(0x4E00 + number) for number in range(8000))  # does not compress
    catalog.put(CatalogChanges(1.0, [replace(PAGE, url=url, title="a\0b")], [replace(LETTER, url=url, reason="\0")]))
    assert rows(server, catalog, "SELECT url, title FROM pages") == [(url, "a\ufffdb")]
    assert rows(server, catalog, "SELECT url, reason FROM dead_letters") == [(url, "\ufffd")]


def test_queries_by_url_host_time_status_and_hash_have_an_index(
    server: PostgresServer, catalog: PostgresCatalog
) -> None:
    schema = catalog.name.rpartition("/")[2]
    found = rows(server, catalog, f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}'")
    indexes = " ".join(str(definition) for (definition,) in found if f"{schema}.pages " in str(definition))
    for columns in ("(url_id, visit)", "hash (url)", "(host)", "(fetched_at)", "(status)", "(content_hash)"):
        assert columns in indexes


def test_lists_are_sorted_and_whole_however_long(catalog: PostgresCatalog) -> None:
    ids = [number.to_bytes(16, "big") for number in range(2500, 0, -1)]
    catalog.put(
        CatalogChanges(
            1.0,
            [replace(PAGE, url_id=each, visit=visit) for each in ids for visit in (2, 1)],
            [replace(LETTER, url_id=each) for each in ids],
            (),
            [replace(HOST, name=f"h{number}.test") for number in range(2500)],
        )
    )
    ids.sort()
    assert [(each.url_id, each.visit) for each in catalog.visits()] == [
        (each, visit) for each in ids for visit in (1, 2)
    ]
    assert [url_id for url_id, _ in catalog.dead_letters()] == ids
    assert list(catalog.host_names()) == sorted(f"h{number}.test" for number in range(2500))
    assert catalog.hosts(["h7.test", "unknown.test"]) == {"h7.test": HostCounts(1, 2, 1)}
    catalog.remove([(ids[0], 1)], ids[:2], ["h7.test"])
    assert next(catalog.visits())[:2] == (ids[0], 2)
    assert next(catalog.dead_letters())[0] == ids[2]
    assert catalog.hosts(["h7.test"]) == {}


def test_a_server_that_is_gone_is_named_and_what_was_not_stored_can_be_stored_later() -> None:
    with running_postgres() as own:
        catalog = PostgresCatalog(f"{own.url}/gone")
        catalog.check("crawl")
        own.stop()
        with pytest.raises(
            StoreUnavailableError, match=rf"catalog postgresql://127.0.0.1:{own.port}/postgres/gone: .*"
        ):
            catalog.put(CatalogChanges(1.0, [PAGE]))
        own.start()
        catalog.put(CatalogChanges(1.0, [PAGE]))
        assert [visit.url for visit in catalog.visits()] == [PAGE.url]
        catalog.close()


def test_connections_that_a_restart_has_closed_are_made_again_without_an_error() -> None:
    with running_postgres() as own:
        catalog = PostgresCatalog(f"{own.url}/again")
        catalog.check("crawl")
        own.stop()
        own.start()
        catalog.put(CatalogChanges(1.0, [PAGE]))
        catalog.close()


def test_checking_leaves_nothing_behind_and_can_be_repeated(catalog: PostgresCatalog) -> None:
    catalog.check("another name")
    catalog.check_empty()
    assert catalog.is_there()
    catalog.put(CatalogChanges(1.0, hosts=[HOST]))
    with pytest.raises(UsageError, match="has the catalog of another crawl"):
        catalog.check_empty()


def test_a_catalog_of_another_format_is_refused(server: PostgresServer, catalog: PostgresCatalog) -> None:
    rows(server, catalog, "UPDATE catalog SET format = 99")
    with pytest.raises(UsageError, match="a catalog of format 99, this version writes format 1"):
        catalog.check("crawl")


def test_a_database_that_cannot_hold_every_text_is_refused(server: PostgresServer) -> None:
    with psycopg.connect(**server.parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(UsageError, match="the encoding LATIN1; expected UTF8"):
        PostgresCatalog(f"{server.url.removesuffix('/postgres')}/latin").check("crawl")


def test_an_unknown_option_is_refused(server: PostgresServer) -> None:
    with pytest.raises(UsageError, match="invalid connection option"):
        PostgresCatalog(f"{server.url}?frobnicate=1").check("crawl")
