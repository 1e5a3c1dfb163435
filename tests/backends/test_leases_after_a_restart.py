"""A ledger that may have lost the last renewals takes nobody for dead until a lease has passed since it is back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.backends.registry import open_shared
from gossamer.model.errors import LedgerUnavailableError
from gossamer.model.state import CrawlRecord, NodeStatus, Terms
from gossamer.ports.shared_ledger import NodeId, SharedLedger
from tests.servers import engines
from tests.servers.postgresql import running_postgres
from tests.servers.redis import running

A = NodeId("a", "1")
B = NodeId("b", "1")
LEASE_S = 1.5
SHARD = 7


def _begin(ledger: SharedLedger) -> None:
    """Have a node own a shard that never renews its lease, and another one live."""
    ledger.start(CrawlRecord(Terms(1, "3", "rules"), b"", started_at=time.time()))
    ledger.join(A, "", LEASE_S)
    ledger.join(B, "", 100 * LEASE_S)
    assert ledger.take(A, [SHARD]).keys() == {SHARD}
    assert ledger.take(B, [SHARD]) == {}


def _taken(ledger: SharedLedger) -> bool:
    with suppress(LedgerUnavailableError):
        return bool(ledger.take(B, [SHARD]))
    return False


def _is_alone(ledger: SharedLedger) -> bool:
    with suppress(LedgerUnavailableError):
        return [member.name for member in ledger.renew(B, NodeStatus()).members] == ["b"]
    return False


def _wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def _judge(ledger: SharedLedger, restart: Callable[[], None]) -> None:
    _begin(ledger)
    _wait_for(lambda: _is_alone(ledger))
    restart()
    begun_at = time.monotonic()
    _wait_for(lambda: _is_alone(ledger))
    first_answer_at = time.monotonic()
    assert not _taken(ledger) or first_answer_at > begun_at + LEASE_S, "it may have been renewed"
    _wait_for(lambda: _taken(ledger))
    assert time.monotonic() - begun_at >= LEASE_S


def test_memory() -> None:
    now = [0.0]
    ledger = MemorySharedLedger(lambda: now[0])
    _begin(ledger)
    lost = ledger.snapshot()
    now[0] = 1.0
    ledger.renew(A, NodeStatus())
    ledger.roll_back(lost)
    now[0] = 1.0 + LEASE_S - 0.1
    assert not _taken(ledger), "by its own clock it is alive"
    now[0] = 1.0 + LEASE_S + 0.1
    assert _taken(ledger)


def test_a_node_that_has_left_is_not_waited_for() -> None:
    now = [0.0]
    ledger = MemorySharedLedger(lambda: now[0])
    _begin(ledger)
    ledger.leave(A)
    ledger.roll_back(ledger.snapshot())
    assert _taken(ledger)


def test_redis(tmp_path: Path) -> None:
    with running(engines.valkey(), tmp_path / "server", "--appendfsync", "always") as server:

        def restart() -> None:
            server.stop()
            server.start()

        ledger = open_shared(f"{server.url}/crawl")
        _judge(ledger, restart)


def test_a_server_that_was_not_restarted_frees_shards_when_a_lease_ends(tmp_path: Path) -> None:
    with running(engines.valkey(), tmp_path / "server") as server:
        ledger = open_shared(f"{server.url}/crawl")
        _begin(ledger)
        _wait_for(lambda: _is_alone(ledger))
        assert _taken(ledger)


@pytest.mark.engine("postgresql")
def test_postgresql() -> None:
    with running_postgres() as server:

        def restart() -> None:
            server.stop()
            server.start()

        _judge(open_shared(f"{server.url}/crawl"), restart)
