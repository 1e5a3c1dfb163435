"""A crawl of the ledger's format before, on each shared ledger, in which somebody has forged ids of others.

Nodes are killed before the upgrade, between it and the first commit, and in commits. As `test_upgraded_folder`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.backends.registry import open_shared
from gossamer.control.record import new_record, own_terms
from gossamer.core.ledger import rows
from gossamer.core.url.identity import Identity
from gossamer.model.records import UrlState
from gossamer.model.state import CrawlRecord, IdentityRecord
from gossamer.ports.shared_ledger import SharedLedger
from gossamer.settings.load import settings_for_new
from gossamer.settings.seeds import seed_from
from tests.e2e.program import run, start
from tests.e2e.test_upgraded_folder import FORGED, LATER, VICTIMS, Site, any_host
from tests.engine.test_forged_ids import FORGED_HOST, VICTIM
from tests.servers import engines
from tests.servers.kafka_cassandra import shared_both
from tests.servers.postgresql import running_postgres
from tests.servers.redis import running
from tests.servers.redis_cluster import running_cluster

FIRST = "http://attacker.test/"
LEASE_S = 3
WITHIN_S = 30.0
DEATHS = ["before_commit:kill:1", "after_commit:kill:1"]
KAFKA_DEATHS = ["before_decision:kill:1", "before_rows:kill:1"]
OLD = Identity(IdentityRecord(is_unkeyed=True))


@pytest.fixture(params=["valkey", "redis-cluster", engines.param("postgresql"), engines.param("kafka", "cassandra")])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    name = f"upgraded{os.getpid()}"
    with ExitStack() as stack:
        match request.param:
            case "kafka":
                yield shared_both().prepared(name)
            case "postgresql":
                yield f"{stack.enter_context(running_postgres()).url}/{name}"
            case "valkey":
                yield f"{stack.enter_context(running(engines.valkey(), tmp_path / 'redis')).url}/{name}"
            case _:
                yield f"{stack.enter_context(running_cluster(engines.valkey(), tmp_path / 'redis')).url}/{name}"


def begun_before(shared: SharedLedger, proxy: str) -> None:
    """Make the record of a crawl as an earlier version did, which nobody has worked on yet."""
    given = {"proxy": proxy, "scope": "any", "politeness_ms": 0, "contact": "t@example.org"}
    settings = settings_for_new([("the test", given)], has_domain_list=False)
    shared.start(as_before(new_record(settings, [seed_from(FIRST, "the test")])))


def as_before(record: CrawlRecord) -> CrawlRecord:
    return replace(record, terms=replace(own_terms(), ledger_format="2"), identity=None)


def record_of(shared: SharedLedger) -> CrawlRecord:
    record = shared.record()
    assert record is not None
    return record


def wait_for_row(shared: SharedLedger, url_id: bytes) -> None:
    until = time.monotonic() + WITHIN_S
    while not ((row := shared.look_up([url_id])[0]) and rows.decode_url(row).state is UrlState.DONE):
        assert time.monotonic() < until, "it is not stored"
        time.sleep(0.05)


def wait_for_leases(shared: SharedLedger) -> None:
    until = time.monotonic() + WITHIN_S
    while any(view.is_live for view in shared.nodes().values()):
        assert time.monotonic() < until, "a node that was killed is there for ever"
        time.sleep(0.05)


def node(folder: Path, name: str, *command: str, death: str = "") -> subprocess.Popen[str]:
    more = ("--node", name, "-o", str(folder / name), "--lease", str(LEASE_S), "--no-progress")
    return start(*command, *more, environment={"GOSSAMER_FAILPOINT": death} if death else None)


def end(process: subprocess.Popen[str], status: int) -> None:
    _, err = process.communicate(timeout=2 * WITHIN_S)
    assert process.returncode == status, err


def check(site: Site, ledger_url: str, folder: Path) -> None:
    """Check that everything was fetched, and that each name of a pair has its own history."""
    assert {*FORGED, *VICTIMS, LATER} <= set(site.asked)
    for url in [*FORGED, *VICTIMS]:
        why = run("why", ledger_url, url)
        assert why.returncode == 0, why.stderr
        lines = dict(line.split(None, 1) for line in why.stdout.splitlines() if line and line[0] != " ")
        assert (lines["url"], lines["title"]) == (url, url)
        assert lines["state"].startswith("done, ok 200")
    verified = run("verify", ledger_url, cwd=folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_crawl_of_the_format_before_is_upgraded_and_loses_nothing_to_kills(ledger_url: str, tmp_path: Path) -> None:
    with any_host() as (site, proxy), closing(open_shared(ledger_url)) as shared:
        slow = f"{FIRST}slow"
        site.links[FIRST] = [*FORGED, slow]
        begun_before(shared, proxy)
        first = node(tmp_path, "a", "crawl", FIRST, "--ledger", ledger_url)
        wait_for_row(shared, OLD.url_candidate(OLD.host_id(FORGED_HOST), FORGED[0], 0))
        wait_for_row(shared, OLD.url_candidate(OLD.host_id("shared.test"), FORGED[1], 0))
        first.kill()
        first.communicate()
        site.released.set()
        assert OLD.host_id(FORGED_HOST) == OLD.host_id(VICTIM)
        wait_for_leases(shared)
        # What is stored now is what an earlier version stores, but for the key in the record.
        record = record_of(shared)
        assert shared.change_record(replace(as_before(record), version=record.version + 1))
        assert not site.asked[len(FORGED) + 2 :]
        added = run("add", ledger_url, LATER)
        assert added.returncode == 0, added.stderr
        upgraded = record_of(shared)
        assert upgraded.terms == own_terms()
        assert upgraded.ids.is_unkeyed
        deaths = DEATHS + (KAFKA_DEATHS if ledger_url.startswith("kafka") else [])
        for number, death in enumerate(deaths):
            end(node(tmp_path, f"b{number}", "join", ledger_url, death=death), -signal.SIGKILL)
        end(node(tmp_path, "c", "join", ledger_url), 0)
        assert record_of(shared).ids == upgraded.ids, "the key stays"
        check(site, ledger_url, tmp_path)
