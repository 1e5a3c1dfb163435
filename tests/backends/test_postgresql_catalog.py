"""What only the catalog in PostgreSQL has: views, indexes, connections. The rest: `tests/contracts`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from msgspec.structs import replace

from gossamer.backends.postgresql.catalog import PostgresCatalog
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogChanges
from tests.contracts.test_catalog_store import LETTER, PAGE
from tests.servers import engines
from tests.servers.postgresql import PostgresServer, running_postgres

_schemas = count()


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def server() -> Iterator[PostgresServer]:
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


def test_every_visit_has_a_row_and_the_last_one_is_in_the_view(
    server: PostgresServer, catalog: PostgresCatalog
) -> None:
    again = replace(PAGE, visit=2, title="Changed")
    catalog.put(CatalogChanges(1.0, [PAGE]))
    catalog.put(CatalogChanges(2.0, [again]))
    assert rows(server, catalog, "SELECT visit, title FROM pages ORDER BY visit") == [(1, "Title"), (2, "Changed")]
    assert rows(server, catalog, "SELECT visit, title FROM latest_pages") == [(2, "Changed")]


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


@pytest.mark.engine("postgresql")
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


@pytest.mark.engine("postgresql")
def test_connections_that_a_restart_has_closed_are_made_again_without_an_error() -> None:
    with running_postgres() as own:
        catalog = PostgresCatalog(f"{own.url}/again")
        catalog.check("crawl")
        own.stop()
        own.start()
        catalog.put(CatalogChanges(1.0, [PAGE]))
        catalog.close()


def test_a_database_that_cannot_hold_every_text_is_refused(server: PostgresServer) -> None:
    with psycopg.connect(**server.parameters, autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(UsageError, match="the encoding LATIN1; expected UTF8"):
        PostgresCatalog(f"{server.url.removesuffix('/postgres')}/latin").check("crawl")


def test_an_unknown_option_is_refused(server: PostgresServer) -> None:
    with pytest.raises(UsageError, match="invalid connection option"):
        PostgresCatalog(f"{server.url}?frobnicate=1").check("crawl")
