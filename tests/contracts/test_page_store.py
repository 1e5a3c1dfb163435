"""What every page store must do, on a real server. See `gossamer.ports.page_store`."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Iterator
from itertools import count

import pytest
from msgspec.structs import replace

from gossamer.backends.mongodb.store import MongoPages
from gossamer.core.url.forms import link_to
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.page_store import PageCopy
from tests.servers import engines
from tests.servers.mongodb import PASSWORD, USER, WITH_LOGIN, MongoServer, running

_databases = count()


@pytest.fixture(scope="module", params=[engines.param("mongodb")])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    with running(tmp_path_factory.mktemp("mongodb")) as server:
        yield server


@pytest.fixture
def store(server: MongoServer) -> Iterator[MongoPages]:
    made = MongoPages(server.url(f"db{next(_databases)}"), max_part_bytes=1000)
    made.check()
    yield made
    made.close()


def page(path: str = "/", content: bytes | None = b"<p>one</p>", at: float = 100.0, visit: int = 1) -> PageCopy:
    link = link_to("http://www.h.test" + path)
    return PageCopy(
        url_id=link.id,
        visit=visit,
        url=link.url,
        host=link.host,
        domain="h.test",
        title="Grüße",
        content_hash=hashlib.sha256(content or b"").hexdigest(),
        status=200,
        crawled_at=at,
        depth=2,
        size=len(content or b""),
        links=7,
        content_type="text/html",
        worker=1,
        node="n1",
        duplicate_of=b"",
        content=content,
    )


def body(store: MongoPages, copy: PageCopy) -> bytes:
    name = f"{copy.url_id.hex()}-{copy.visit}"
    parts = list(store.content.find({"page_id": name}).sort("part", 1))
    assert [part["part"] for part in parts] == list(range(parts[0]["parts"]))
    return zlib.decompress(b"".join(part["html_compressed"] for part in parts))


def test_a_page_has_its_metadata_and_its_compressed_body(store: MongoPages) -> None:
    copy = page(content=b"<p>one</p>" * 100, at=1_700_000_000.25)
    store.put([copy])
    (found,) = store.metadata.find({})
    assert found.pop("crawl_time").timestamp() == 1_700_000_000.25
    assert found == {
        "_id": copy.url_id.hex() + "-1",
        "url": "http://www.h.test/",
        "host": "www.h.test",
        "domain": "h.test",
        "title": "Grüße",
        "content_hash": hashlib.sha256(b"<p>one</p>" * 100).hexdigest(),
        "status": 200,
        "depth": 2,
        "size": 1000,
        "links": 7,
        "content_type": "text/html",
        "worker": 1,
        "node": "n1",
        "duplicate_of": None,
    }
    (content,) = store.content.find({})
    assert content["page_id"] == found["_id"]
    assert zlib.decompress(content["html_compressed"]) == b"<p>one</p>" * 100
    assert content["compression_ratio"] == round(len(content["html_compressed"]) / 1000, 4)


def test_storing_pages_again_changes_nothing(store: MongoPages) -> None:
    pages = [page(f"/{number}", f"<p>{number}</p>".encode()) for number in range(120)]
    store.put(pages[:50])
    before = list(store.metadata.find({}).sort("_id", 1))
    store.put(pages[:50])
    assert list(store.metadata.find({}).sort("_id", 1)) == before
    store.put(pages)
    assert store.metadata.count_documents({}) == store.content.count_documents({}) == 120


def test_an_earlier_fetch_never_replaces_a_later_one(store: MongoPages) -> None:
    store.put([page(content=b"later", at=200.0)])
    store.put([page(content=b"earlier", at=100.0)])
    assert body(store, page()) == b"later"
    store.put([page(content=b"latest", at=300.0)])
    assert body(store, page()) == b"latest"
    (found,) = store.metadata.find({})
    assert found["content_hash"] == hashlib.sha256(b"latest").hexdigest()


def test_every_visit_is_a_page_of_its_own(store: MongoPages) -> None:
    store.put([page(content=b"first")])
    store.put([page(content=b"second", at=200.0, visit=2)])
    assert body(store, page()) == b"first"
    assert body(store, page(visit=2)) == b"second"
    assert store.metadata.count_documents({"url": "http://www.h.test/"}) == 2


def test_a_body_that_is_larger_than_a_document_is_cut_into_parts(store: MongoPages) -> None:
    large = random.Random(1).randbytes(3500)  # does not compress
    store.put([page(content=large), page("/small")])
    assert store.content.count_documents({"page_id": page().url_id.hex() + "-1"}) == 4
    assert body(store, page()) == large
    store.put([page(content=b"small", at=200.0)])
    assert body(store, page()) == b"small", "no part of the larger body is left"
    assert store.content.count_documents({"page_id": page().url_id.hex() + "-1"}) == 1


def test_a_body_of_more_than_16_mb_is_stored(server: MongoServer) -> None:
    store = MongoPages(server.url("large"))
    large = random.Random(2).randbytes(17 << 20)
    store.put([page(content=large)])
    assert store.content.count_documents({}) == 2
    assert body(store, page()) == large
    store.close()


def test_a_copy_refers_to_the_first_page_and_has_no_body(store: MongoPages) -> None:
    first = page()
    copy = replace(page("/copy", content=None), duplicate_of=first.url_id, content_hash=first.content_hash)
    store.put([first, copy])
    (found,) = store.metadata.find({"url": "http://www.h.test/copy"})
    assert found["duplicate_of"] == first.url_id.hex()
    assert store.content.count_documents({}) == 1
    assert store.metadata.count_documents({"content_hash": first.content_hash}) == 2


def test_a_page_that_was_the_first_and_is_a_copy_when_it_is_fetched_again_loses_its_body(store: MongoPages) -> None:
    first = page("/first")
    store.put([page(), first])
    copy = replace(page(content=None, at=200.0), duplicate_of=first.url_id, content_hash=first.content_hash)
    store.put([copy])
    assert [found["page_id"] for found in store.content.find({})] == [first.url_id.hex() + "-1"]
    store.put([replace(copy, crawled_at=50.0, url_id=first.url_id)])
    assert store.content.count_documents({}) == 1, "an earlier fetch removes nothing"


def test_queries_by_url_host_time_status_and_hash_have_an_index(store: MongoPages) -> None:
    names = {next(iter(index["key"])) for index in store.metadata.list_indexes()}
    assert names >= {"url", "host", "crawl_time", "status", "content_hash"}
    assert "page_id" in {next(iter(index["key"])) for index in store.content.list_indexes()}


def test_checking_leaves_nothing_behind(store: MongoPages) -> None:
    assert store.metadata.count_documents({}) == store.content.count_documents({}) == 0


def test_a_server_that_is_gone_is_named_and_what_was_not_stored_can_be_stored_later(server: MongoServer) -> None:
    store = MongoPages(server.url("gone"))
    store.put([page()])
    server.stop()
    try:
        with pytest.raises(StoreUnavailableError, match=rf"mongodb://127.0.0.1:{server.port}/gone: .*refused"):
            store.put([page("/later")])
    finally:
        server.start()
    store.put([page("/later")])
    assert store.metadata.count_documents({}) == store.content.count_documents({}) == 2
    store.close()


# -- before a crawl -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[engines.param("mongodb")])
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    with running(tmp_path_factory.mktemp("guarded"), *WITH_LOGIN) as server:
        yield server


def refused(url: str) -> str:
    store = MongoPages(url)
    with pytest.raises(UsageError) as caught:
        store.check()
    store.close()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300
    return text


def test_a_wrong_password_is_not_shown(guarded: MongoServer) -> None:
    text = refused(f"mongodb://{USER}:secret@127.0.0.1:{guarded.port}/crawl")
    assert "refuses user or password" in text
    assert "secret" not in text
    assert "GOSSAMER_MONGODB_PASSWORD" in text


def test_missing_rights_are_named(guarded: MongoServer) -> None:
    assert "no right to write to this database" in refused(guarded.url("crawl"))


def test_the_right_password_is_accepted(guarded: MongoServer) -> None:
    store = MongoPages(f"mongodb://{USER}:{PASSWORD}@127.0.0.1:{guarded.port}/crawl")
    store.check()
    store.put([page()])
    assert store.metadata.count_documents({}) == 1
    store.close()


def test_a_url_without_a_database_is_refused() -> None:
    with pytest.raises(UsageError, match="expected mongodb://host:port/database"):
        MongoPages("mongodb://127.0.0.1:1/")
