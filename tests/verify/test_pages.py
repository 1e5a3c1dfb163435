"""A page store that other nodes and other visits use too, compared with one ledger."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.backends.mongodb.store import MongoPages
from gossamer.core.ledger.catalog import record_of
from gossamer.core.url.forms import link_to
from gossamer.model.records import ArchiveSpan, QueuedUrl, UrlState
from gossamer.reading.archived_pages import ArchivedPages
from gossamer.verify.pages import Fault, PageAgreement
from tests.contracts.test_page_store import page
from tests.servers import engines
from tests.servers.mongodb import MongoServer, running

NOWHERE = ArchivedPages(ArchiveFiles(Path("nowhere")), 1000)
_databases = count()


@pytest.fixture(scope="module", params=[engines.param("mongodb")])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    with running(tmp_path_factory.mktemp("mongodb")) as server:
        yield server


@pytest.fixture
def store(server: MongoServer) -> Iterator[MongoPages]:
    made = MongoPages(server.url(f"agreement{next(_databases)}"), max_part_bytes=100)
    yield made
    made.close()


def ledger_with(path: str, visits: int) -> MemoryLedger:
    """Return a ledger that knows one page after some visits."""
    ledger, link = MemoryLedger(), link_to("http://www.h.test" + path)
    url = QueuedUrl(link.url, link.id, link.host, 0, 1, 0)
    ledger.admit([url])
    row = record_of(url)
    row.state, row.outcome, row.visits = UrlState.DONE, "ok", visits
    row.archived = ArchiveSpan("a.warc.gz", 0, 1)
    ledger.finish(url, row)
    ledger.commit()
    return ledger


def faults(agreement: PageAgreement) -> tuple[list[str], list[str]]:
    problems: list[str] = []
    notes = agreement.check(lambda _, what: problems.append(what))
    return problems, notes


def test_earlier_visits_are_no_problem(store: MongoPages) -> None:
    store.put([page(visit=visit) for visit in range(1, 12)])
    assert faults(PageAgreement(store, ledger_with("/", 11), "db")) == ([], [])


def test_an_earlier_visit_without_its_body_is_named(store: MongoPages) -> None:
    store.put([page(visit=visit) for visit in range(1, 12)])
    store.remove_bodies([page().url_id.hex() + "-2"])
    agreement = PageAgreement(store, ledger_with("/", 11), "db")
    assert faults(agreement) == ([f"http://www.h.test/: {Fault.BODY_LOST.value}"], [])
    assert agreement.mend(NOWHERE) == []


def test_a_body_with_a_missing_part_is_lost(store: MongoPages) -> None:
    store.put([page(content=bytes(range(256)) * 3)])
    assert faults(PageAgreement(store, ledger_with("/", 1), "db")) == ([], [])
    store.content.delete_one({"part": 1})
    assert faults(PageAgreement(store, ledger_with("/", 1), "db")) == ([f"http://www.h.test/: {Fault.LOST.value}"], [])


def test_a_copy_needs_a_page_with_its_content(store: MongoPages) -> None:
    first = page("/first")
    copy = replace(page("/", content=None), duplicate_of=first.url_id, content_hash=first.content_hash)
    store.put([first, copy])
    assert faults(PageAgreement(store, ledger_with("/", 1), "db"))[0] == []
    store.metadata.delete_one({"url": first.url})
    problems, _ = faults(PageAgreement(store, ledger_with("/", 1), "db"))
    assert f"http://www.h.test/: {Fault.COPY_LOST.value}" in problems


def test_pages_of_other_nodes_are_noted_and_their_bodies_are_left_alone(store: MongoPages) -> None:
    store.put([page(), page("/other"), page("/under-way")])
    store.metadata.delete_one({"url": "http://www.h.test/under-way"})
    node = PageAgreement(store, ledger_with("/", 1), "db", is_node=True)
    problems, notes = faults(node)
    assert problems == []
    assert notes == [
        "db: 1 page that this ledger does not know",
        "db: bodies without a page, perhaps of other nodes: 1",
    ]
    assert node.mend(NOWHERE) == []
    assert store.content.count_documents({}) == 3
    alone = PageAgreement(store, ledger_with("/", 1), "db")
    assert alone.mend(NOWHERE) == ["db: bodies without a page removed: 1"]
    assert store.content.count_documents({}) == 2
