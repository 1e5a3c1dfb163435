"""A ledger of the format before is upgraded where it is: nothing is lost, and forged ids have no effect any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.backends.local.ledger import LocalLedger
from gossamer.backends.local.store import Store
from gossamer.core.ledger import rows
from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import host_of, key_of, link_to
from gossamer.model.records import (
    DomainRecord,
    FetchKind,
    HostRecord,
    QueuedUrl,
    Source,
    UrlRecord,
    UrlState,
)
from tests.engine.test_forged_ids import FORGED_HOST, FORGED_PAGE, PAGE, VICTIM

DONE = [PAGE, "http://a.test/", "http://a.test/x?b=1&a=2"]
QUEUED = ["http://a.test/queued", "http://b.a.test/queued", f"http://{FORGED_HOST}/first"]


def old_id(name: str, domain: str) -> bytes:
    """Return the id of a host or domain as earlier versions made it."""
    shard = xxh3_64_intdigest(domain.encode()) >> 52
    return (shard << 52 | xxh3_64_intdigest(name.encode()) & (1 << 52) - 1).to_bytes(8, "big")


def old_url_id(url: str) -> bytes:
    host = host_of(url)
    return old_id(host, registrable_domain(host)) + xxh3_64_digest(key_of(url).encode())


def old_rows() -> list[tuple[str, bytes, bytes]]:
    """Return the rows of a ledger of format 2, made without the code that made them then."""
    found = list[tuple[str, bytes, bytes]]()
    hosts: dict[str, HostRecord] = {}
    for number, url in enumerate([*DONE, *QUEUED], 1):
        is_done = url in DONE
        host = hosts.setdefault(host_of(url), HostRecord(host_of(url), registrable_domain(host_of(url))))
        host.queued += not is_done
        state = UrlState.DONE if is_done else UrlState.QUEUED
        row = UrlRecord(url, state, 0, Source.LINK, FetchKind.PAGE, b"", 0, number, 0, 0, 0.0, 1.0)
        found.append(("urls", old_url_id(url), rows.encode(row)))
        if not is_done:
            queued = QueuedUrl(url, old_url_id(url), host.name, 0, number, 0)
            found.append(("queue", rows.queue_key(queued), b""))
    for name, record in hosts.items():
        # As they were written then: without the fields that came later.
        fields = rows.encode(record)[:-1]
        assert fields[0] == 0xDC
        count = int.from_bytes(fields[1:3], "big") - 1
        found.append(("hosts", old_id(name, record.domain), fields[:1] + count.to_bytes(2, "big") + fields[3:]))
        found.append(("domains", old_id(record.domain, record.domain), rows.encode(DomainRecord(record.domain, 1, 1))))
    found.append(("meta", rows.FORMAT_KEY, b"2"))
    return found


def make_old(folder: Path) -> None:
    """Make a ledger of format 2."""
    folder.mkdir()
    store = Store(folder, rows.TABLES, {}, is_readonly=False)
    store.open()
    store.create_tables()
    for table, key, value in old_rows():
        store.put(table, key, value)
    store.write_now()
    store.close()


def tables_of(folder: Path) -> dict[str, dict[bytes, bytes]]:
    with lmdb.open(str(folder), readonly=True, max_dbs=100) as env, env.begin() as txn:
        names = [name for name, _ in txn.cursor()]
        return {name.decode(): dict(txn.cursor(env.open_db(name, txn))) for name in names}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    make_old(tmp_path / "state")
    return tmp_path / "state"


def check_kept(ledger: LocalLedger) -> None:
    for url in DONE + QUEUED:
        row = ledger.look_up(ledger.url_id(url))
        assert row is not None, url
        assert (row.url, row.state) == (url, UrlState.DONE if url in DONE else UrlState.QUEUED)
        assert ledger.url_id(url) == old_url_id(url)
    queued = [url.url for host in ledger.hosts() for url in ledger.read_queue(ledger.host_id(host.name), None, 9)]
    assert set(QUEUED) <= set(queued)


def test_a_reader_reads_it_as_it_is(old: Path) -> None:
    before = tables_of(old)
    with closing(LocalLedger(old, is_readonly=True)) as ledger:
        ledger.open()
        check_kept(ledger)
    assert tables_of(old) == before


def test_a_writer_changes_two_rows_at_once_and_no_others(old: Path) -> None:
    before = tables_of(old)
    with closing(LocalLedger(old)) as ledger:
        ledger.open()
        record = ledger.identity.record
        check_kept(ledger)
    after = tables_of(old)
    assert record.is_unkeyed
    assert record.key != bytes(16)
    assert after["meta"].pop(rows.FORMAT_KEY) == b"3"
    assert rows.decode_identity(after["meta"].pop(rows.IDENTITY_KEY)) == record
    assert before["meta"].pop(rows.FORMAT_KEY) == b"2"
    assert {name: table for name, table in after.items() if name in before} == before
    with closing(LocalLedger(old)) as ledger:
        ledger.open()
        assert ledger.identity.record == record, "the key stays"
        check_kept(ledger)


_OPEN = "from pathlib import Path; from gossamer.backends.local.ledger import LocalLedger; import sys; "
_OPEN += "LocalLedger(Path(sys.argv[1])).open(); print('open')"


@pytest.mark.parametrize("point", ["before_commit", "in_commit", ""])
def test_an_upgrade_that_is_killed_is_whole_or_not_begun(old: Path, point: str) -> None:
    failpoint = {"GOSSAMER_FAILPOINT": f"{point}:kill:1"} if point else {}
    done = subprocess.run([sys.executable, "-c", _OPEN, str(old)], env=os.environ | failpoint, check=False)
    assert done.returncode == (-signal.SIGKILL if point else 0)
    meta = tables_of(old)["meta"]
    assert (meta[rows.FORMAT_KEY] == b"2") == (rows.IDENTITY_KEY not in meta) == bool(point)
    with closing(LocalLedger(old)) as ledger:
        ledger.open()
        check_kept(ledger)


def test_what_was_kept_out_by_a_forged_id_is_known_from_now_on(old: Path) -> None:
    victims = [f"http://{VICTIM}/", FORGED_PAGE]
    with closing(LocalLedger(old)) as ledger:
        ledger.open()
        assert ledger.host(VICTIM) is None
        ledger.identify(VICTIM)
        ledger.put_host(HostRecord(VICTIM, "victim.test"))
        queued = [QueuedUrl(url, link_to(url).id, host_of(url), 0, 100, 0) for url in victims]
        assert [url.url for url in ledger.admit(queued)] == victims
        assert ledger.admit(queued) == []
    with closing(LocalLedger(old, is_readonly=True)) as ledger:
        ledger.open()
        check_kept(ledger)
        for url in victims:
            row = ledger.look_up(ledger.url_id(url))
            assert row is not None
            assert row.url == url
        for name in (VICTIM, FORGED_HOST):
            host = ledger.host(name)
            assert host is not None
            assert host.name == name
