"""What every catalog store does, on real servers: what is replaced, what is not, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from gossamer.backends.registry import open_catalog
from gossamer.model.errors import UsageError
from gossamer.ports.catalog_store import (
    CatalogChanges,
    CatalogHost,
    CatalogPage,
    CheckedCatalog,
    DeadLetter,
    HostCounts,
    VisitKey,
)
from tests.catalog_places import KINDS, CatalogPlace, Row, opened, places_of

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


@pytest.fixture(scope="module", params=KINDS)
def make_place(request: pytest.FixtureRequest) -> Iterator[Callable[[], CatalogPlace]]:
    with places_of(request.param) as make:
        yield make


@pytest.fixture
def place(make_place: Callable[[], CatalogPlace]) -> CatalogPlace:
    return make_place()


@pytest.fixture
def catalog(place: CatalogPlace) -> Iterator[CheckedCatalog]:
    made = opened(place)
    yield made
    made.close()


def parts(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in rows)


def put_one_of_each(catalog: CheckedCatalog, at: float = 1.0, node: str = "") -> None:
    changes = CatalogChanges(
        at,
        [replace(PAGE, title=node or PAGE.title, node=node)],
        [replace(LETTER, reason=node, node=node)],
        (),
        [replace(HOST, node=node)],
    )
    catalog.put(changes)


def test_rows_say_what_was_put(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    put_one_of_each(catalog)
    ((page,), (letter,), (host,)) = (place.rows(table) for table in ("pages", "dead_letters", "hosts"))
    for found, row in ((page, PAGE), (letter, LETTER), (host, HOST)):
        expected = {name: value for name, value in asdict(row).items() if name != "parked_until"}
        assert {name: found[name] for name in expected} == expected
        assert found["committed_at"] == 1.0
    assert page["crawl"] == "crawl"
    assert not host["parked_until"]


def test_values_that_are_not_there_replace_those_that_were(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    put_one_of_each(catalog)
    bare = replace(PAGE, duplicate_of=None, near_duplicate_of=None, archive_file=None, archive_offset=None)
    catalog.put(CatalogChanges(2.0, [bare], [replace(LETTER, status=None, found_on=None)]))
    (page,) = place.rows("pages")
    assert [page[name] for name in ("near_duplicate_of", "archive_file", "archive_offset")] == [None] * 3
    assert parts(place.rows("dead_letters"), "status", "found_on") == [(None, None)]
    (visit,) = catalog.visits()
    assert (visit.archive_file, visit.archive_offset) == (None, None)


def test_rows_that_are_put_again_change_nothing(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    put_one_of_each(catalog)
    before = [place.rows(table) for table in ("pages", "dead_letters", "hosts")]
    put_one_of_each(catalog)
    assert [place.rows(table) for table in ("pages", "dead_letters", "hosts")] == before
    assert [len(found) for found in before] == [1, 1, 1]


def test_every_visit_has_a_row(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    catalog.put(CatalogChanges(1.0, [PAGE]))
    catalog.put(CatalogChanges(2.0, [replace(PAGE, visit=2, title="Changed")]))
    assert parts(place.rows("pages"), "visit", "title") == [(1, "Title"), (2, "Changed")]


def test_an_earlier_commit_of_a_node_never_replaces_a_later_one(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    def now_there() -> list[str]:
        ((page,), (letter,), (host,)) = (place.rows(table) for table in ("pages", "dead_letters", "hosts"))
        return [page["title"], letter["reason"], host["node"]]

    put_one_of_each(catalog, 20.0, "b")
    put_one_of_each(catalog, 10.0, "a")
    catalog.put(CatalogChanges(10.0, not_dead=[LETTER.url_id]))
    assert now_there() == ["b", "b", "b"]
    put_one_of_each(catalog, 30.0, "c")
    assert now_there() == ["c", "c", "c"]
    catalog.put(CatalogChanges(30.0, not_dead=[LETTER.url_id]))
    assert place.rows("dead_letters") == []


def test_on_one_machine_a_clock_that_was_set_back_loses_nothing(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    catalog.put(CatalogChanges(20.0, [PAGE], [LETTER]))
    catalog.put(CatalogChanges(10.0, [replace(PAGE, title="Later")], not_dead=[LETTER.url_id]))
    assert parts(place.rows("pages"), "title") == [("Later",)]
    assert place.rows("dead_letters") == []
    again = open_catalog(place.url())
    again.put(CatalogChanges(5.0, [replace(PAGE, title="Next run")], [LETTER]))
    again.close()
    assert parts(place.rows("pages"), "title") == [("Next run",)]
    assert parts(place.rows("dead_letters"), "url") == [(LETTER.url,)]


def test_what_is_no_dead_letter_any_more_leaves_the_table(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    others = [replace(LETTER, url_id=LETTER.url_id[:8] + number.to_bytes(8, "big")) for number in range(300)]
    catalog.put(CatalogChanges(1.0, dead_letters=[LETTER, *others]))
    catalog.put(CatalogChanges(2.0, not_dead=[LETTER.url_id, PAGE.url_id, *(each.url_id for each in others[1:])]))
    assert parts(place.rows("dead_letters"), "url_id") == [(others[0].url_id,)]


def test_very_long_urls_and_odd_texts_are_stored(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    url = "http://h.test/" + "".join(chr(0x4E00 + number) for number in range(8000))  # does not compress
    catalog.put(CatalogChanges(1.0, [replace(PAGE, url=url, title="a\0b")], [replace(LETTER, url=url, reason="\0")]))
    ((page,), (letter,)) = place.rows("pages"), place.rows("dead_letters")
    assert (page["url"], letter["url"]) == (url, url)
    assert page["title"] in {"a\0b", "a\ufffdb"}  # not every database stores a NUL
    assert letter["reason"] in {"\0", "\ufffd"}


def test_lists_are_sorted_and_whole_however_long(catalog: CheckedCatalog) -> None:
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
    assert list(catalog.dead_letters()) == [(each, "client_error") for each in ids]
    assert list(catalog.host_names()) == sorted(f"h{number}.test" for number in range(2500))
    assert catalog.hosts(["h7.test", "unknown.test"]) == {"h7.test": HostCounts(1, 2, 1)}
    catalog.remove([VisitKey(ids[0], 1, PAGE.url)], ids[:2], ["h7.test"])
    assert next(catalog.visits())[:2] == (ids[0], 2)
    assert next(catalog.dead_letters())[0] == ids[2]
    assert catalog.hosts(["h7.test"]) == {}
    catalog.put(CatalogChanges(1.0, [replace(PAGE, url_id=ids[0])], [replace(LETTER, url_id=ids[0])], (), [HOST]))
    assert next(catalog.visits()) == (ids[0], 1, PAGE.url, "ab", PAGE.archive_file, PAGE.archive_offset)
    assert next(catalog.dead_letters()) == (ids[0], "client_error")


def test_checking_leaves_nothing_behind_and_can_be_repeated(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    catalog.check("another name")
    catalog.check_empty()
    assert catalog.is_there()
    put_one_of_each(catalog)
    assert parts(place.rows("pages"), "crawl") == [("crawl",)]
    with pytest.raises(UsageError, match=f"has the catalog of another crawl.*{place.another}"):
        catalog.check_empty()


def test_hosts_alone_are_rows_of_another_crawl_too(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    catalog.put(CatalogChanges(1.0, hosts=[HOST]))
    with pytest.raises(UsageError, match=f"has the catalog of another crawl.*{place.another}"):
        catalog.check_empty()


def test_a_catalog_of_another_format_is_refused(place: CatalogPlace, catalog: CheckedCatalog) -> None:
    place.set_format(99)
    with pytest.raises(UsageError, match=f"a catalog of format 99, this version writes format 1; {place.another}"):
        catalog.check("crawl")


def test_tables_of_somebody_else_are_left_alone(place: CatalogPlace) -> None:
    place.add_stranger()
    catalog = open_catalog(place.url())
    with pytest.raises(UsageError, match=f"that is not a catalog's; {place.another}"):
        catalog.check("crawl")
    catalog.close()


def test_a_catalog_whose_tables_are_gone_is_not_there_and_can_be_made_again(
    place: CatalogPlace, catalog: CheckedCatalog
) -> None:
    put_one_of_each(catalog)
    place.drop()
    again = open_catalog(place.url())
    assert not again.is_there()
    again.check("crawl")
    again.check_empty()
    put_one_of_each(again)
    assert len(place.rows("pages")) == 1
    again.close()
