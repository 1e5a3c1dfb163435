"""What does not agree between a ledger and a catalog, and who may mend it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.backends.postgresql.catalog import PostgresCatalog
from gossamer.core.url.forms import url_id
from gossamer.model.records import ArchiveSpan, FetchKind, HostRecord, Outcome, Source, UrlRecord, UrlState
from gossamer.ports import Row
from gossamer.ports.catalog_store import CatalogChanges
from gossamer.reading.catalog_rows import BATCH_PAGES, CatalogRows
from gossamer.verify.catalogs import RowAgreement
from tests.servers import engines
from tests.servers.postgresql import PostgresServer, running_postgres

_schemas = count()


def row(url: str, state: UrlState, outcome: Outcome, *, visits: int = 1, parent: bytes = b"") -> UrlRecord:
    record = UrlRecord(url, state, 0, Source.LINK, FetchKind.PAGE, parent, 0, 1, 0, 0, 0.0, 1.0)
    record.outcome, record.visits, record.fetched_at, record.status = outcome.value, visits, 2.0, 200
    record.archived = ArchiveSpan("gossamer-n1-1-00-00000.warc.gz", 10, 20)
    return record


PAGE = row("http://a.test/", UrlState.DONE, Outcome.OK, visits=2)
GONE = row("http://a.test/gone", UrlState.DEAD, Outcome.CLIENT_ERROR, parent=url_id(PAGE.url))
HOST = HostRecord("a.test", "a.test", pages=1, fetches=2, errors=1)


@pytest.fixture(scope="module", params=[engines.param("postgresql")])
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def catalog(server: PostgresServer) -> Iterator[PostgresCatalog]:
    made = PostgresCatalog(f"{server.url}/agree{next(_schemas)}")
    made.check("crawl")
    yield made
    made.close()


@pytest.fixture
def ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    for record in (PAGE, GONE):
        ledger.amend(url_id(record.url), record)
    ledger.put_host(HOST)
    ledger.commit()
    return ledger


def rows_of(ledger: MemoryLedger, node: str = "") -> CatalogRows:
    return CatalogRows(ledger.look_up, node)


def whole(ledger: MemoryLedger, node: str = "") -> CatalogChanges:
    rows = rows_of(ledger, node)
    letters = [rows.dead_letter(url_id(GONE.url), GONE)]
    return CatalogChanges(1.0, [rows.page(url_id(PAGE.url), PAGE)], letters, (), [rows.host(HOST)])


def problems(catalog: PostgresCatalog, ledger: MemoryLedger, *, is_part: bool = False) -> list[str]:
    found: list[str] = []
    agreement = RowAgreement(catalog, ledger, rows_of(ledger), "there", is_part=is_part)
    agreement.check(lambda _, what: found.append(what))
    return found


def test_a_catalog_that_has_what_the_ledger_has_is_fine(catalog: PostgresCatalog, ledger: MemoryLedger) -> None:
    catalog.put(whole(ledger))
    assert problems(catalog, ledger) == []


def test_an_empty_catalog_lacks_everything_and_is_filled(catalog: PostgresCatalog, ledger: MemoryLedger) -> None:
    assert {problem.partition(": ")[0] for problem in problems(catalog, ledger)} == {PAGE.url, GONE.url, HOST.name}
    done = RowAgreement(catalog, ledger, rows_of(ledger), "there").mend(3.0)
    assert done == ["there: 3 rows stored again from the ledger"]
    assert problems(catalog, ledger) == []


def test_earlier_visits_are_no_problem_and_later_ones_are(catalog: PostgresCatalog, ledger: MemoryLedger) -> None:
    catalog.put(whole(ledger))
    for visit in (1, 3):
        other = row(PAGE.url, UrlState.DONE, Outcome.OK, visits=visit)
        catalog.put(CatalogChanges(1.0, [rows_of(ledger).page(url_id(PAGE.url), other)]))
    (problem,) = problems(catalog, ledger)
    assert problem.startswith(f"{PAGE.url}: a visit that the ledger does not know")
    RowAgreement(catalog, ledger, rows_of(ledger), "there").mend(3.0)
    assert [visit.visit for visit in catalog.visits()] == [1, 2]


def test_letters_and_hosts_that_the_ledger_does_not_know_are_removed(
    catalog: PostgresCatalog, ledger: MemoryLedger
) -> None:
    catalog.put(whole(ledger))
    rows = rows_of(ledger)
    stray = HostRecord("stray.test", "stray.test")
    letters = [rows.dead_letter(url_id(PAGE.url), PAGE), rows.dead_letter(b"\xff" * 16, GONE)]
    catalog.put(CatalogChanges(1.0, dead_letters=letters, hosts=[rows.host(stray)]))
    assert [problem.partition(": ")[0] for problem in problems(catalog, ledger)] == [PAGE.url, "ff" * 16, "stray.test"]
    done = RowAgreement(catalog, ledger, rows, "there").mend(3.0)
    assert done == ["there: 3 rows that the ledger does not know removed"]
    assert problems(catalog, ledger) == []


def test_in_the_folder_of_a_node_only_lost_pages_are_a_problem(catalog: PostgresCatalog, ledger: MemoryLedger) -> None:
    other = row("http://b.test/", UrlState.DONE, Outcome.OK)
    catalog.put(CatalogChanges(1.0, [rows_of(ledger).page(url_id(other.url), other)]))
    (problem,) = problems(catalog, ledger, is_part=True)
    assert problem.startswith(f"{PAGE.url}: a page that the catalog does not have")


# -- rows -----------------------------------------------------------------------------------------


def test_the_node_of_a_page_is_the_one_whose_file_has_it(ledger: MemoryLedger) -> None:
    assert rows_of(ledger, "n2").page(url_id(PAGE.url), PAGE).node == "n1"
    assert rows_of(ledger).page(url_id(PAGE.url), PAGE).node == "", "there are no nodes on one machine"


def test_a_dead_letter_names_the_page_that_led_to_it(ledger: MemoryLedger) -> None:
    letter = rows_of(ledger).dead_letter(url_id(GONE.url), GONE)
    assert (letter.found_on, letter.attempts) == (PAGE.url, 1)
    seed = row("http://seed.test/", UrlState.DEAD, Outcome.DNS_FAILED, visits=0)
    assert rows_of(ledger).dead_letter(url_id(seed.url), seed).found_on is None


def test_a_commit_is_put_in_batches_with_its_pages_first(ledger: MemoryLedger) -> None:
    sealed = MemoryLedger()
    for number in range(BATCH_PAGES + 1):
        page = row(f"http://a.test/{number}", UrlState.DONE, Outcome.OK)
        sealed.amend(url_id(page.url), page)
    for record in (
        row("http://a.test/queued", UrlState.QUEUED, Outcome.OK, visits=0),
        row("http://a.test/moved", UrlState.DONE, Outcome.REDIRECT),
        GONE,
    ):
        sealed.amend(url_id(record.url), record)
    sealed.put_host(HOST)
    rows: list[Row] = [each for some in sealed.seal().by_shard().values() for each in some]
    batches = list(rows_of(ledger).changes([*rows, Row("urls", b"removed", None)], 7.0))
    assert [len(batch.pages) for batch in batches] == [BATCH_PAGES, 1, 0, 0, 0]
    assert len(batches[2].not_dead) == BATCH_PAGES + 4
    assert [letter.url for letter in batches[3].dead_letters] == [GONE.url]
    assert [host.name for host in batches[4].hosts] == [HOST.name]
    assert {batch.committed_at for batch in batches} == {7.0}
