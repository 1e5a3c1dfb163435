"""What only the catalog in MongoDB has: logins, restarts, and a page store beside it. The rest: `tests/contracts`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.backends.mongodb.catalog import MongoCatalog
from gossamer.backends.mongodb.store import MongoPages
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogChanges
from tests.contracts.test_catalog_store import LETTER, PAGE
from tests.servers import engines
from tests.servers.mongodb import PASSWORD, USER, WITH_LOGIN, MongoServer, running
from tests.servers.redis import free_port


@pytest.fixture(params=[engines.param("mongodb")])
def server(tmp_path: Path) -> Iterator[MongoServer]:
    with running(tmp_path / "server") as server:
        yield server


def test_a_page_and_its_body_have_one_name_in_a_database_that_is_store_and_catalog(server: MongoServer) -> None:
    pages, catalog = MongoPages(server.url("both")), MongoCatalog(server.url("both"))
    pages.check()
    catalog.check("crawl")
    catalog.check_empty()
    catalog.put(CatalogChanges(1.0, [PAGE]))
    with server.client() as client:
        (found,) = client["both"]["pages"].find()
        assert client["both"]["metadata"].find_one() is None
    assert found["_id"] == f"{PAGE.url_id.hex()}-1"
    assert found["near_duplicate_of"] == "02" * 16
    pages.close()
    catalog.close()


def test_the_tenth_visit_comes_after_the_second(server: MongoServer) -> None:
    catalog = MongoCatalog(server.url("visits"))
    catalog.check("crawl")
    catalog.put(CatalogChanges(1.0, [replace(PAGE, visit=visit) for visit in (10, 2, 1)]))
    assert [visit.visit for visit in catalog.visits()] == [1, 2, 10]
    catalog.close()


def test_a_server_that_was_restarted_loses_nothing(server: MongoServer) -> None:
    catalog = MongoCatalog(server.url("again"))
    catalog.check("crawl")
    catalog.put(CatalogChanges(1.0, [PAGE]))
    server.stop()
    with pytest.raises(StoreUnavailableError, match=f"catalog mongodb://127.0.0.1:{server.port}/again: .*refused"):
        catalog.put(CatalogChanges(2.0, [replace(PAGE, visit=2)], [LETTER]))
    server.start()
    catalog.put(CatalogChanges(2.0, [replace(PAGE, visit=2)], [LETTER]))
    assert [visit.visit for visit in catalog.visits()] == [1, 2]
    assert [url_id for url_id, _ in catalog.dead_letters()] == [LETTER.url_id]
    catalog.close()


@pytest.mark.engine("mongodb")
def test_no_server_and_no_login_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"catalog mongodb://127.0.0.1:[0-9]+/c: cannot be reached"):
        MongoCatalog(f"mongodb://u:secret@127.0.0.1:{free_port()}/c").check("crawl")
    with running(tmp_path / "guarded", *WITH_LOGIN) as guarded:
        with pytest.raises(UsageError, match=r"catalog .*GOSSAMER_MONGODB_PASSWORD") as refused:
            MongoCatalog(f"mongodb://{USER}:wrong-one@127.0.0.1:{guarded.port}/crawl").check("crawl")
        assert "wrong-one" not in str(refused.value)
        catalog = MongoCatalog(f"mongodb://{USER}:{PASSWORD}@127.0.0.1:{guarded.port}/crawl")
        catalog.check("crawl")
        catalog.put(CatalogChanges(1.0, [PAGE]))
        catalog.close()
