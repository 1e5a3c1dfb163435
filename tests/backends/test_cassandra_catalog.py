"""What only the catalog in Cassandra has: two tables per row, partitions, sessions. The rest: `tests/contracts`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gossamer.backends.cassandra.catalog import CassandraCatalog, sorted_rows
from gossamer.backends.cassandra.connect import KeyspaceAddress, place_of
from gossamer.backends.cassandra.letters import VALID_S, KnownLetters
from gossamer.backends.cassandra.writing import bucket_of
from gossamer.backends.clients.cassandra import Servers
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.catalog_store import CatalogChanges
from tests.catalog_places import CassandraPlace, places_of
from tests.contracts.test_catalog_store import HOST, LETTER, PAGE
from tests.servers import engines
from tests.servers.cassandra import SYNCED, WITH_LOGIN, running_cassandra
from tests.servers.redis import free_port


@pytest.fixture(params=[engines.param("cassandra")])
def place() -> Iterator[CassandraPlace]:
    with places_of("cassandra") as make:
        made = make()
        assert isinstance(made, CassandraPlace)
        yield made


@pytest.fixture
def catalog(place: CassandraPlace) -> Iterator[CassandraCatalog]:
    made = CassandraCatalog(place.url())
    made.check("crawl")
    yield made
    made.close()


def test_the_pages_of_a_host_are_divided_and_one_question_finds_them(
    place: CassandraPlace, catalog: CassandraCatalog
) -> None:
    ids = [b"hosthost" + (number * 7919).to_bytes(8, "little") for number in range(1, 400)]
    catalog.put(CatalogChanges(1.0, [replace(PAGE, url_id=each) for each in ids]))
    found = place.query("SELECT bucket, count(*) AS rows FROM pages_by_host GROUP BY host, bucket")
    assert len(found) == 16
    assert max(row["rows"] for row in found) < 2 * len(ids) / 16
    buckets = ", ".join(map(str, range(16)))
    of_host = place.query(f"SELECT url_id FROM pages_by_host WHERE host = 'h.test' AND bucket IN ({buckets})")
    assert sorted(row["url_id"] for row in of_host) == sorted(ids)


def test_a_host_has_as_many_buckets_as_the_catalog_was_created_with(place: CassandraPlace) -> None:
    first = CassandraCatalog(place.url())
    assert first.create("", 3)
    assert not first.create("", 5)
    first.check("named later")
    first.put(CatalogChanges(1.0, [replace(PAGE, url_id=b"hosthost" + bytes([0, each] * 4)) for each in range(9)]))
    first.close()
    assert {row["bucket"] for row in place.query("SELECT bucket FROM pages_by_host")} == {0, 1, 2}
    assert {row["crawl"] for row in place.rows("pages")} == {"named later"}


def test_rows_that_one_of_two_tables_lacks_agree_with_no_page(place: CassandraPlace, catalog: CassandraCatalog) -> None:
    other = replace(PAGE, url_id=b"\x05" * 16)
    catalog.put(CatalogChanges(1.0, [PAGE, other], [LETTER, replace(LETTER, url_id=other.url_id)]))
    place.query("DELETE FROM pages_by_id WHERE url_id = %s", (PAGE.url_id,))
    where = "host = %s AND bucket = %s"
    bucket = bucket_of(other.url_id, 16)
    place.query(f"UPDATE pages_by_host SET content_hash = 'x' WHERE {where} AND url_id = %s AND visit = 1",
                ("h.test", bucket, other.url_id))  # fmt: skip
    place.query(f"DELETE FROM dead_letters WHERE {where}", ("h.test", bucket))
    assert [(visit.url_id, visit.content_hash) for visit in catalog.visits()] == [
        (PAGE.url_id, ""),
        (other.url_id, ""),
    ]
    assert list(catalog.dead_letters()) == [(LETTER.url_id, LETTER.outcome), (other.url_id, "")]


def test_links_that_are_queued_leave_no_tombstones(place: CassandraPlace, catalog: CassandraCatalog) -> None:
    ids = [b"hosthost" + number.to_bytes(8, "little") for number in range(500)]
    catalog.put(CatalogChanges(1.0, [PAGE], [LETTER], (), [HOST]))
    catalog.put(CatalogChanges(2.0, not_dead=ids))
    with place.server.cluster() as cluster:
        session = cluster.connect(place.name)
        for table in ("dead_letters", "dead_letter_ids", "pages_by_id", "pages_by_host"):
            result = session.execute(f"SELECT * FROM {table}", trace=True)
            (read,) = [
                event.description for event in result.get_query_trace().events if "tombstone cells" in event.description
            ]
            assert "and 0 tombstone cells" in read, (table, read)


def test_a_host_without_dead_letters_is_asked_once_or_now_and_then_if_it_may_have_another_owner(
    place: CassandraPlace, catalog: CassandraCatalog
) -> None:
    now = [100.0]
    known = KnownLetters(catalog.ring, 16, lambda: now[0])
    assert known.among([LETTER.url_id]) == []
    other = CassandraCatalog(place.url())
    other.put(CatalogChanges(1.0, dead_letters=[LETTER]))
    other.close()
    now[0] += VALID_S + 1
    assert known.among([LETTER.url_id]) == [], "on one machine nobody else writes"
    known.is_shared = True
    assert [letter.url_id for letter in known.among([LETTER.url_id, PAGE.url_id])] == [LETTER.url_id]
    known.remove([LETTER.url_id])
    assert known.among([LETTER.url_id]) == []


def test_hosts_with_very_many_dead_letters_are_asked_for_each_url(catalog: CassandraCatalog) -> None:
    ids = [b"hosthost" + number.to_bytes(8, "big") for number in range(1, 1203)]
    catalog.put(CatalogChanges(1.0, dead_letters=[replace(LETTER, url_id=each) for each in ids[:1200]]))
    known = KnownLetters(catalog.ring, 16)
    assert sorted(letter.url_id for letter in known.among(ids)) == ids[:1200]
    catalog.put(CatalogChanges(2.0, not_dead=ids[1:]))
    assert [url_id for url_id, _ in catalog.dead_letters()] == ids[:1]


def test_every_read_and_write_needs_a_quorum(place: CassandraPlace, catalog: CassandraCatalog) -> None:
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}"  # of which one is there
    place.query(f"ALTER KEYSPACE {place.name} WITH replication = {replication}")
    for act in (lambda: catalog.put(CatalogChanges(1.0, [PAGE])), lambda: list(catalog.visits())):
        with pytest.raises(StoreUnavailableError, match="Cannot achieve consistency level LOCAL_QUORUM"):
            act()


def test_nodes_that_start_at_the_same_moment_create_the_tables_together(place: CassandraPlace) -> None:
    def checked(name: str) -> None:
        catalog = CassandraCatalog(place.url())
        catalog.check(name)
        catalog.put(CatalogChanges(1.0, [replace(PAGE, node=name, url_id=name.encode() * 16)]))
        catalog.close()

    with ThreadPoolExecutor(4) as nodes:
        list(nodes.map(checked, "abcd"))
    assert sorted(row["node"] for row in place.rows("pages")) == ["a", "b", "c", "d"]
    assert len({row["crawl"] for row in place.rows("pages")}) == 1


def test_a_keyspace_that_is_missing_is_named_with_what_creates_it(place: CassandraPlace) -> None:
    url = place.url().replace(place.name, "nowhere")
    with pytest.raises(
        UsageError, match=r"no keyspace nowhere; create it with 'gossamer init-cluster.*CREATE KEYSPACE"
    ):
        CassandraCatalog(url).check("crawl")


def test_a_server_that_is_not_there_is_named() -> None:
    port = free_port()
    with pytest.raises(UsageError, match=f"catalog cassandra://127.0.0.1:{port}/k: no answer: Connection refused"):
        CassandraCatalog(f"cassandra://u:secret@127.0.0.1:{port}/k").check("crawl")


@pytest.mark.parametrize(("url", "expected"), [
    ("cassandra://a/k", KeyspaceAddress(Servers((("a", 9042),)), "k")),
    ("cassandra://a:1,b:2/k?dc=west", KeyspaceAddress(Servers((("a", 1), ("b", 2))), "k", dc="west")),
    ("cassandra://me:p%40ss@[::1]:3,[::2]/k", KeyspaceAddress(Servers((("::1", 3), ("::2", 9042)), "me", "p@ss"), "k")),
])  # fmt: skip
def test_a_url_names_servers_keyspace_and_login(url: str, expected: KeyspaceAddress) -> None:
    assert place_of(url) == expected


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown option frobnicate; expected \?dc=NAME"):
        place_of("cassandra://a/k?frobnicate=1")


@pytest.mark.engine("cassandra")
def test_logins_rights_and_restarts(tmp_path: Path) -> None:
    with running_cassandra(tmp_path / "server", {**WITH_LOGIN, **SYNCED}) as own:
        place = CassandraPlace(own, "guarded")
        with place.session() as session:
            session.execute("CREATE ROLE reader WITH PASSWORD = 'web' AND LOGIN = true")
        with pytest.raises(UsageError, match=r"Remote end requires authentication.*GOSSAMER_CASSANDRA_PASSWORD"):
            CassandraCatalog(place.url()).check("crawl")
        with pytest.raises(UsageError, match="refuses user or password") as refused:
            CassandraCatalog(place.url().replace("//", "//cassandra:wrong-one@")).check("crawl")
        assert "wrong-one" not in str(refused.value)
        with pytest.raises(
            UsageError, match=r"no CREATE permission.*expected a user with the rights SELECT and MODIFY"
        ):
            CassandraCatalog(place.url().replace("//", "//reader:web@")).check("crawl")
        catalog = CassandraCatalog(place.url().replace("//", "//cassandra:cassandra@"))
        catalog.check("crawl")
        with place.session() as session:
            session.execute("GRANT SELECT ON KEYSPACE guarded TO reader")
        with pytest.raises(UsageError, match="no MODIFY permission"):
            CassandraCatalog(place.url().replace("//", "//reader:web@")).check("crawl")
        catalog.put(CatalogChanges(1.0, [PAGE]))
        own.stop()
        with pytest.raises(StoreUnavailableError, match=rf"catalog cassandra://127.0.0.1:{place.port}/guarded: .*"):
            catalog.put(CatalogChanges(2.0, [replace(PAGE, visit=2)]))
        own.start()
        catalog.put(CatalogChanges(2.0, [replace(PAGE, visit=2)]))
        assert [visit.visit for visit in catalog.visits()] == [1, 2]
        own.stop()
        own.start()
        catalog.put(CatalogChanges(3.0, [replace(PAGE, visit=3)]))
        assert [visit.visit for visit in catalog.visits()] == [1, 2, 3]
        catalog.close()


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 5), st.text(max_size=3))), st.integers(1, 5))
def test_rows_that_do_not_fit_into_memory_are_sorted_too(rows: list[tuple[bytes, int, str]], lot: int) -> None:
    assert list(sorted_rows(iter(rows), lot)) == sorted(rows)
