"""Faults that are planted in the due index are found: a URL that is not in it would never be fetched again."""

from __future__ import annotations

import pytest

from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.core.ledger.tables import DUE, DUE_HOSTS
from gossamer.core.revisit.schedule import RevisitRules
from gossamer.core.revisit.stored import DueUrl, due_host_key, due_key
from gossamer.engine.rules import CrawlRules
from gossamer.sim.scenarios import START, Scenario, many_hosts
from gossamer.verify.ledger import check_catalog

DAY = 86_400.0


@pytest.fixture
def ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    rules = CrawlRules(watches_traps=False, revisits=RevisitRules())
    _, driver = Scenario(many_hosts(5, 6), ["http://h0.test/"], rules=rules, ledger=ledger).prepare()
    driver.run(until=START + 3 * DAY)
    return ledger


def problems(ledger: MemoryLedger) -> list[str]:
    found: list[str] = []
    check_catalog(ledger, lambda where, what: found.append(f"{where}: {what}"), is_running=False)
    return found


def test_an_index_that_has_what_the_rows_say_is_fine(ledger: MemoryLedger) -> None:
    assert len(list(ledger.records(DUE))) == 30
    assert problems(ledger) == []


def test_an_entry_that_is_missing_is_found(ledger: MemoryLedger) -> None:
    due = next(ledger.records(DUE))
    ledger.remove_record(DUE, due_key(due.id, due.at))
    assert problems(ledger) == ["due index: 30 URLs are to be fetched again by the catalog, it has 29 of them"]


def test_an_entry_at_another_time_is_found(ledger: MemoryLedger) -> None:
    due = next(ledger.records(DUE))
    ledger.remove_record(DUE, due_key(due.id, due.at))
    ledger.put_record(DUE, DueUrl(due.id, due.at + 1))
    expected = "due index: 30 URLs are to be fetched again by the catalog, it has the same number, at other times"
    assert problems(ledger) == [expected]


def test_a_host_that_is_missing_is_found(ledger: MemoryLedger) -> None:
    due = next(ledger.records(DUE_HOSTS))
    ledger.remove_record(DUE_HOSTS, due_host_key(due.host, due.at))
    assert problems(ledger) == ["due index: 5 hosts are to be asked again by the catalog, it has 4"]
