"""One contract for every ledger that nodes share: in memory, on Redis and its kin, PostgreSQL, Kafka with Cassandra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.setup import create
from gossamer.backends.kafka.shared_ledger import KafkaSharedLedger
from gossamer.backends.kafka.topic import Topic
from gossamer.backends.memory.ledger import MemoryLedger
from gossamer.backends.memory.shared_ledger import MemorySharedLedger
from gossamer.backends.postgresql.database import Database
from gossamer.backends.postgresql.shared_ledger import PostgresSharedLedger
from gossamer.backends.redis.cluster_calls import ClusterCalls
from gossamer.backends.redis.cluster_ledger import RedisClusterLedger
from gossamer.backends.redis.shared_ledger import RedisSharedLedger
from gossamer.control.record import adopted, own_terms
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.dedup.minhash import LANES, equal_lanes, minhash
from gossamer.core.ledger import rows
from gossamer.core.ledger.catalog import record_of
from gossamer.core.ledger.rows import SHARDED
from gossamer.core.ledger.tables import DUE, DUE_HOSTS, HOST_VISITS, SHARD_VISITS
from gossamer.core.politeness.address_permits import AddressAsk, AddressGrant, AddressRules
from gossamer.core.revisit.stored import DueHost, DueUrl, HostVisits, ShardVisits
from gossamer.core.url.forms import link_to
from gossamer.core.url.identity import SHARD_COUNT, Identity, current, domain_id, host_id, shard_of, shard_prefix, use
from gossamer.model.errors import LeaseLostError, NodeNameTakenError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import DomainRecord, HostRecord, QueuedUrl, RobotsRecord, UrlState
from gossamer.model.state import CrawlRecord, IdentityRecord, NodeStatus, OperatorRequest, SeedRecord, Terms
from gossamer.ports import Row
from gossamer.ports.shared_ledger import PAGE_PARTS, Commit, NodeId, Ownership, SharedLedger
from gossamer.reading.cluster_catalog import SharedCatalog
from tests.backends.test_upgraded_ledger import old_rows
from tests.engine.test_forged_ids import FORGED_HOST, VICTIM
from tests.servers import engines
from tests.servers.cassandra import shared_cassandra
from tests.servers.kafka import shared_kafka
from tests.servers.postgresql import PostgresServer, running_postgres
from tests.servers.redis import RedisServer, running
from tests.servers.redis_cluster import RedisClusterServers, running_cluster

LEASE_S = 60.0
A, B = NodeId("a", "1"), NodeId("b", "1")
TERMS = Terms(1, "3", "rules")
LINK = link_to("http://h.example/page")
SHARD = shard_of(LINK.id)
OTHER = (SHARD + 1) % SHARD_COUNT
_names = count()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RedisServer]]:
    started: dict[str, RedisServer] = {}
    with ExitStack() as stack:

        def start(name: str) -> RedisServer:
            program = str(engines.program("redis")) if name == "redis" else engines.valkey()
            if name not in started:
                started[name] = stack.enter_context(running(program, tmp_path_factory.mktemp(name)))
            return started[name]

        yield start


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RedisClusterServers]]:
    started: list[RedisClusterServers] = []
    with ExitStack() as stack:

        def start() -> RedisClusterServers:
            program = engines.valkey()
            if not started:
                started.append(stack.enter_context(running_cluster(program, tmp_path_factory.mktemp("cluster"))))
            return started[0]

        yield start


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], PostgresServer]]:
    started: list[PostgresServer] = []
    with ExitStack() as stack:

        def start() -> PostgresServer:
            if not started:
                started.append(stack.enter_context(running_postgres()))
            return started[0]

        yield start


@pytest.fixture(scope="session")
def kafka() -> Callable[[str], SharedLedger]:
    def start(name: str) -> SharedLedger:
        brokers, database = shared_kafka().address, shared_cassandra().address
        place = place_of(f"kafka://{brokers}/{name}-{os.getpid()}?cassandra={database}/contract", {})
        create(place, Layout(partitions=4, buckets=2), replication=1)
        return KafkaSharedLedger(Keyspace(place), Topic(place))

    return start


@pytest.fixture(
    params=[
        "memory",
        "valkey",
        "redis-cluster",
        engines.param("redis"),
        engines.param("postgresql"),
        engines.param("kafka", "cassandra"),
    ]
)
def ledger(
    request: pytest.FixtureRequest,
    servers: Callable[[str], RedisServer],
    cluster: Callable[[], RedisClusterServers],
    postgres: Callable[[], PostgresServer],
    kafka: Callable[[str], SharedLedger],
) -> Iterator[SharedLedger]:
    made: SharedLedger
    name = f"crawl{next(_names)}"
    match request.param:
        case "memory":
            made = MemorySharedLedger(lambda: 1_700_000_000.0)
        case "redis-cluster":
            made = RedisClusterLedger(ClusterCalls(cluster().client(), name))
        case "postgresql":
            made = PostgresSharedLedger(Database(postgres().parameters, name))
        case "kafka":
            made = kafka(name)
        case engine:
            made = RedisSharedLedger(servers(engine).client(), name)
    yield made
    made.close()


def started(ledger: SharedLedger, **budgets: int) -> SharedLedger:
    ledger.start(CrawlRecord(TERMS, b"", budgets=budgets))
    return ledger


def url_row(url: str, state: UrlState = UrlState.QUEUED) -> Row:
    link = link_to(url)
    queued = QueuedUrl(url, link.id, link.host, 0, 1, 0)
    return Row("urls", link.id, rows.encode(replace(record_of(queued), state=state)))


def restored(ledger: SharedLedger, node: NodeId, *shards: int) -> list[Row]:
    return sorted(row for some in ledger.restore(node, shards, SHARDED) for row in some)


# -- the record -----------------------------------------------------------------------------------


def test_the_first_record_stays(ledger: SharedLedger) -> None:
    assert ledger.record() is None
    first = ledger.start(CrawlRecord(TERMS, b"first", scope=["http://a.example/"]))
    second = ledger.start(CrawlRecord(TERMS, b"second"))
    assert first.settings == second.settings == b"first"
    assert ledger.record() == first
    assert first.version == 1


def test_a_record_is_changed_only_by_who_has_read_the_last_version(ledger: SharedLedger) -> None:
    record = ledger.start(CrawlRecord(TERMS, b""))
    record.version, record.scope = 2, ["a.example"]
    assert ledger.change_record(record)
    record.scope = ["b.example"]
    assert not ledger.change_record(record)
    stored = ledger.record()
    assert stored is not None
    assert (stored.version, stored.scope) == (2, ["a.example"])


# -- how ids are made -----------------------------------------------------------------------------


def before_upgrade(**more: Any) -> CrawlRecord:
    return CrawlRecord(replace(own_terms(), ledger_format="2"), b"", **more)


def test_a_crawl_of_the_format_before_is_upgraded_once_and_keeps_its_ids(ledger: SharedLedger) -> None:
    stored = ledger.start(before_upgrade(scope=["http://a.example/"]))
    upgraded = adopted(ledger, stored)
    assert ledger.record() == upgraded
    assert (upgraded.terms, upgraded.version, upgraded.scope) == (own_terms(), 2, ["http://a.example/"])
    assert upgraded.ids.is_unkeyed
    assert len(upgraded.ids.key) == 16
    assert upgraded.ids.key != bytes(16)
    assert current().record == upgraded.ids
    # Another process read the record before, and upgrades it at the same time.
    assert adopted(ledger, stored) == upgraded
    assert adopted(ledger, upgraded) == upgraded


def test_a_crawl_is_not_upgraded_while_nodes_of_an_earlier_version_work_on_it(ledger: SharedLedger) -> None:
    stored = ledger.start(before_upgrade())
    ledger.join(A, "", LEASE_S)
    with pytest.raises(UsageError, match="stop them first"):
        adopted(ledger, stored)
    assert ledger.record() == stored
    ledger.leave(A)
    assert adopted(ledger, stored).identity is not None


def test_a_crawl_that_is_over_is_upgraded_by_what_reopens_it(ledger: SharedLedger) -> None:
    ledger.start(before_upgrade())
    ledger.join(A, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    ledger.renew(A, idle(0))
    assert ledger.try_end(A) == "exhausted"
    ledger.leave(A)
    over = ledger.record()
    assert over is not None
    read = adopted(ledger, over)
    assert ledger.record() == over
    assert read.ids.is_unkeyed
    assert ledger.change_record(replace(read, version=3, ended=""))
    reopened = ledger.record()
    assert reopened is not None
    assert reopened.ids == read.ids


def meant(row: Row) -> tuple[str, bytes, Any]:
    """Return what a row says; as it was written, fields may be missing that came later."""
    decode = {"hosts": rows.decode_host, "domains": rows.decode_domain, "urls": rows.decode_url}.get(row.table)
    return row.table, row.key, decode(row.value) if decode and row.value is not None else row.value


class KilledError(Exception):
    """The process ended here."""


class DyingLedger:
    """A ledger whose process is killed before or after it has changed the record."""

    def __init__(self, ledger: SharedLedger, *, is_changed: bool) -> None:
        self._ledger = ledger
        self._is_changed = is_changed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def change_record(self, record: CrawlRecord) -> bool:
        if self._is_changed:
            assert self._ledger.change_record(record)
        raise KilledError


@pytest.mark.parametrize("is_changed", [False, True])
def test_an_upgrade_that_is_killed_has_happened_or_not_and_every_row_is_there(
    ledger: SharedLedger, is_changed: bool
) -> None:
    stored = ledger.start(before_upgrade(scope=["http://a.test/"]))
    written: dict[int, list[Row]] = {}
    for row in sorted({Row(*each) for each in old_rows() if each[0] != "meta"}):
        written.setdefault(shard_of(row.key), []).append(row)
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, list(written))
    ledger.commit(A, Commit(1, Totals(pages=3), epochs=epochs, rows=written))
    ledger.leave(A)
    with pytest.raises(KilledError):
        adopted(cast("SharedLedger", DyingLedger(ledger, is_changed=is_changed)), stored)
    found = ledger.record()
    assert found is not None
    assert (found.identity is not None) == is_changed
    assert found == stored or found.terms == own_terms()
    upgraded = adopted(ledger, found)
    assert ledger.record() == upgraded
    assert not is_changed or upgraded == found, "the key stays"
    ledger.join(B, "", LEASE_S)
    ledger.take(B, list(written))
    all_rows = [row for each in written.values() for row in each]
    assert list(map(meant, restored(ledger, B, *written))) == list(map(meant, sorted(all_rows)))
    # Each of the names is looked up by its own id, and the one that was kept out is not taken for the other.
    catalog = SharedCatalog(ledger, upgraded)
    for url in (rows.decode_url(row.value or b"").url for row in all_rows if row.table == "urls"):
        kept = catalog.look_up(catalog.url_id(url))
        assert kept is not None
        assert kept.url == url
    assert catalog.host(VICTIM) is None
    assert catalog.host(FORGED_HOST) is not None


def test_names_with_another_than_their_first_id_come_back_under_it(ledger: SharedLedger) -> None:
    identity = Identity(IdentityRecord(b"k" * 16, is_unkeyed=True))
    ledger.start(CrawlRecord(TERMS, b"", identity=identity.record))
    names = [FORGED_HOST, VICTIM]
    shard = identity.shard_of_domain("victim.test")
    first, second = identity.host_id(names[0]), identity.host_candidate(names[1], 1)
    domain = identity.domain_candidate("victim.test", 2)
    robots = RobotsRecord(f"http://{VICTIM}", 200, "ok", b"User-agent: *", 1.0, 2.0, probe=1)
    written = sorted([
        Row("hosts", first, rows.encode(HostRecord(names[0], "a200532.test"))),
        Row("hosts", second, rows.encode(HostRecord(names[1], "victim.test", probe=1))),
        Row("domains", domain, rows.encode(DomainRecord("victim.test", probe=2))),
        Row("robots", rows.robots_key(robots.origin, second, identity), rows.encode_robots(robots)),
    ])  # fmt: skip
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, [shard])
    ledger.commit(A, Commit(1, Totals(), epochs=epochs, rows={shard: written}))
    assert restored(ledger, A, shard) == written
    record = ledger.record()
    assert record is not None
    use(Identity())  # of another crawl that this process has opened
    catalog = SharedCatalog(ledger, record)
    for name, key in zip(names, (first, second), strict=True):
        host = catalog.host(name)
        assert host is not None
        assert (host.name, catalog.host_id(name)) == (name, key)
    assert [each.origin for each in catalog.robots(second)] == [robots.origin]


# -- leases ---------------------------------------------------------------------------------------


def test_a_node_that_joins_sees_who_is_there(ledger: SharedLedger) -> None:
    started(ledger).join(A, "eu", LEASE_S)
    membership = ledger.join(B, "", LEASE_S)
    assert [(member.name, member.label) for member in membership.members] == [("a", "eu"), ("b", "")]
    assert membership.shards == {}
    assert (membership.lease_s, membership.commit, membership.record_version) == (LEASE_S, 0, 1)
    ledger.commit(B, Commit(1, Totals()))
    assert ledger.renew(B, NodeStatus()).commit == 1


def test_joining_twice_is_joining_once(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    assert ledger.join(A, "", LEASE_S).shards == epochs


def test_a_name_is_used_by_one_live_node(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    with pytest.raises(NodeNameTakenError):
        ledger.join(NodeId("a", "2"), "", LEASE_S)
    ledger.leave(A)
    assert [member.name for member in ledger.join(NodeId("a", "2"), "", LEASE_S).members] == ["a"]


def test_a_shard_has_one_owner(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    taken = ledger.take(A, [SHARD, OTHER])
    assert taken.keys() == {SHARD, OTHER}
    assert ledger.take(B, [SHARD]) == {}
    assert ledger.renew(A, NodeStatus()).shards == taken
    ledger.release(A, [SHARD])
    again = ledger.take(B, [SHARD])
    assert again[SHARD] > taken[SHARD], "epochs grow"
    assert ledger.renew(A, NodeStatus()).shards == {OTHER: taken[OTHER]}


def test_all_shards_can_be_taken_at_once(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    assert len(set(ledger.take(A, range(SHARD_COUNT)).values())) == SHARD_COUNT


def test_the_shards_of_a_node_that_left_are_free_and_it_can_do_nothing_more(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    ledger.leave(A)
    ledger.leave(A)
    assert ledger.take(B, [SHARD]).keys() == {SHARD}
    for call in (
        lambda: ledger.renew(A, NodeStatus()),
        lambda: ledger.take(A, [OTHER]),
        lambda: ledger.release(A, [SHARD]),
        lambda: ledger.receive(A, {}, 1000),
        lambda: ledger.commit(A, Commit(1, Totals(), epochs)),
        lambda: ledger.try_end(A),
        lambda: list(ledger.restore(A, [SHARD], SHARDED)),
    ):
        with pytest.raises(LeaseLostError):
            call()


# -- commits --------------------------------------------------------------------------------------


def test_the_next_owner_restores_what_was_committed(ledger: SharedLedger) -> None:
    host, domain = HostRecord("h.example", "h.example", queued=3), DomainRecord("h.example", hosts=1)
    robots = RobotsRecord("http://h.example", 200, "ok", b"User-agent: *\n\xff", 5.0, 9.0)
    written = [
        url_row(LINK.url),
        Row("hosts", host_id("h.example"), rows.encode(host)),
        Row("domains", domain_id("h.example"), rows.encode(domain)),
        Row("robots", rows.robots_key("http://h.example"), rows.encode(robots)),
        Row("queue", LINK.id[:8] + bytes(12) + LINK.id[8:], b""),
    ]
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    ledger.commit(A, Commit(1, Totals(), epochs, {SHARD: written}))
    done = url_row(LINK.url, UrlState.DONE)
    ledger.commit(A, Commit(2, Totals(), epochs, {SHARD: [done, written[4]._replace(value=None)]}))
    ledger.release(A, [SHARD])
    ledger.take(B, [SHARD, OTHER])
    assert restored(ledger, B, SHARD, OTHER) == sorted([done, *written[1:4]])


def test_what_is_due_again_goes_to_the_next_owner_in_order_of_time(ledger: SharedLedger) -> None:
    first, second = DueUrl(LINK.id, 70), DueUrl(LINK.id[:8] + b"k" * 8, 300)
    host, moved = DueHost("h.example", 70), DueHost("h.example", 300)
    visits, counted = HostVisits("h.example", due_at=70), ShardVisits(SHARD, [(1, -2, 3, 40)])
    written = [
        *(Row("due", DUE.key(due), rows.encode(due)) for due in (first, second)),
        Row("due_hosts", DUE_HOSTS.key(host), rows.encode(host)),
        Row("host_visits", HOST_VISITS.key(visits), rows.encode(visits)),
        Row("shard_visits", SHARD_VISITS.key(counted), rows.encode(counted)),
    ]
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    ledger.commit(A, Commit(1, Totals(), epochs, {SHARD: written}))
    # The first one was visited: it is due later than the second now.
    later = DueUrl(LINK.id, 500)
    changed = [
        Row("due", DUE.key(first), None),
        Row("due", DUE.key(later), rows.encode(later)),
        Row("due_hosts", DUE_HOSTS.key(host), None),
        Row("due_hosts", DUE_HOSTS.key(moved), rows.encode(moved)),
    ]
    ledger.commit(A, Commit(2, Totals(), epochs, {SHARD: changed}))
    ledger.release(A, [SHARD])
    ledger.take(B, [SHARD])
    copy = MemoryLedger()
    copy.load_rows(restored(ledger, B, SHARD))
    copy.take_shard(SHARD)
    assert copy.first_records(DUE, LINK.id[:8]) == [second, later]
    assert copy.first_records(DUE_HOSTS, shard_prefix(SHARD)) == [moved]
    assert copy.record(HOST_VISITS, LINK.id[:8]) == visits
    assert copy.record(SHARD_VISITS, shard_prefix(SHARD)) == counted


def test_a_large_shard_is_restored_whole(ledger: SharedLedger) -> None:
    urls = [f"http://h.example/{number}" for number in range(25_000)]
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    ledger.commit(A, Commit(1, Totals(), epochs, {SHARD: [url_row(url) for url in urls]}))
    assert {rows.decode_url(row.value or b"").url for row in restored(ledger, A, SHARD)} == set(urls)


def test_a_commit_that_is_repeated_has_no_effect(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    commit = Commit(1, Totals(pages=1), epochs, {SHARD: [url_row(LINK.url)]}, {SHARD: b"links"})
    ledger.commit(A, commit)
    ledger.commit(A, commit)
    assert len(ledger.receive(A, {}, 1000)[SHARD]) == 1


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_commit_needs_its_predecessor(ledger: SharedLedger, number: int) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    commit = Commit(number, Totals(), epochs, {SHARD: [url_row(LINK.url)]})
    if number:
        with pytest.raises(LeaseLostError, match="commit"):
            ledger.commit(A, commit)
    else:
        ledger.commit(A, commit)
    assert restored(ledger, A, SHARD) == []


def test_a_commit_to_a_shard_of_another_epoch_changes_nothing(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    old = ledger.take(A, [SHARD])
    ledger.release(A, [SHARD])
    ledger.take(A, [SHARD])
    with pytest.raises(LeaseLostError, match=str(SHARD)):
        ledger.commit(A, Commit(1, Totals(), old, {SHARD: [url_row(LINK.url)]}, {OTHER: b"x"}))
    assert restored(ledger, A, SHARD) == []
    ledger.take(A, [OTHER])
    assert ledger.receive(A, {}, 1000) == {}


def test_the_first_page_with_a_content_is_known_to_all(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    content, other = b"h" * 16, b"i" * 16
    assert ledger.commit(A, Commit(1, Totals(), contents={content: b"first"})).contents == {}
    known = ledger.commit(B, Commit(1, Totals(), contents={content: b"second", other: b"x"}))
    assert known.contents == {content: b"first"}


def test_totals_and_archives_are_as_committed(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.renew(A, NodeStatus(in_flight=3))
    ends = [Row("archives", b"one.warc.gz", (500).to_bytes(8, "big"))]
    ledger.commit(A, Commit(1, Totals(pages=7, outcomes={"ok": 7}), archives=ends))
    assert ledger.nodes()[A].is_live
    ledger.leave(A)
    view = ledger.nodes()[A]
    assert (view.status.in_flight, view.totals.pages, view.totals.outcomes) == (3, 7, {"ok": 7})
    assert not view.is_live
    assert ledger.archive_ends("a") == {"one.warc.gz": 500}
    assert ledger.archive_ends("b") == {}


# -- messages -------------------------------------------------------------------------------------


def test_links_wait_for_the_owner_until_it_has_committed_what_follows(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    ledger.commit(A, Commit(1, Totals(), links={SHARD: b"one"}))
    ledger.commit(A, Commit(2, Totals(), links={SHARD: b"two", OTHER: b"other"}))
    assert ledger.receive(B, {}, 1000) == {}
    epochs = ledger.take(B, [SHARD])
    messages = ledger.receive(B, {}, 1000)[SHARD]
    assert [message.links for message in messages] == [b"one", b"two"]
    assert [message.links for message in ledger.receive(B, {SHARD: [messages[0].id]}, 1000)[SHARD]] == [b"two"]
    assert ledger.receive(B, {SHARD: [message.id for message in messages]}, 1000) == {}
    assert ledger.receive(B, {SHARD: [b"removed"]}, 1000) == {}, "a commit has moved the inbox"
    ledger.commit(B, Commit(1, Totals(), epochs, read={SHARD: (messages[0].id,)}))
    assert ledger.receive(B, {}, 1000)[SHARD] == messages[1:]


def test_links_of_a_node_that_came_and_left_between_two_looks_arrive(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.take(A, [SHARD])
    ledger.commit(A, Commit(1, Totals(), links={SHARD: b"own"}))
    (own,) = ledger.receive(A, {}, 1000)[SHARD]
    ledger.join(B, "", LEASE_S)
    ledger.commit(B, Commit(1, Totals(), links={SHARD: b"late"}))
    ledger.leave(B)
    assert [message.links for message in ledger.receive(A, {SHARD: [own.id]}, 1000)[SHARD]] == [b"late"]


def test_a_message_that_is_not_the_one_that_was_read_stays(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    ledger.commit(A, Commit(1, Totals(), links={SHARD: b"new"}))
    for ids in ((b"b/1/9",), (ledger.receive(A, {}, 1000)[SHARD][0].id, b"b/1/9")):
        with pytest.raises(LeaseLostError, match="messages"):
            ledger.commit(A, Commit(2, Totals(), epochs, read={SHARD: ids}))
    assert [message.links for message in ledger.receive(A, {}, 1000)[SHARD]] == [b"new"]


def test_a_node_receives_no_more_at_once_than_it_asked_for(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.take(A, [SHARD])
    for number in range(1, 41):
        ledger.commit(A, Commit(number, Totals(), links={SHARD: bytes(100)}))
    read: list[bytes] = []
    while some := ledger.receive(A, {SHARD: read}, 1000).get(SHARD):
        assert len(some) <= 20
        read += [message.id for message in some]
    assert len(set(read)) == 40


# -- budgets and the end --------------------------------------------------------------------------


def test_a_budget_is_never_exceeded_and_returns_with_a_node_that_ends(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger, pages=100).join(node, "", LEASE_S)
    assert ledger.claim(A, "pages", 70) == 70
    assert ledger.claim(B, "pages", 70) == 30
    assert ledger.claim(A, "pages", 20) == 20, "less than before"
    assert ledger.claim(B, "pages", 90) == 80
    ledger.commit(B, Commit(1, Totals(pages=50)))
    assert ledger.claim(B, "pages", 10) == 50, "what is used up stays"
    ledger.leave(B)
    assert ledger.claim(A, "pages", 100) == 50


def idle(number: int, why: str = "exhausted", version: int = 1) -> NodeStatus:
    return NodeStatus(commit=number, idle=why, record_version=version)


def test_the_crawl_ends_when_all_nodes_are_idle(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    ledger.renew(A, idle(0))
    assert ledger.try_end(A) == "", "b has not reported"
    ledger.renew(B, idle(0, "parked"))
    assert ledger.try_end(A) == "parked"
    assert ledger.renew(B, idle(0)).ended == "parked"
    record = ledger.record()
    assert record is not None
    assert (record.ended, record.version, ledger.record_version()) == ("parked", 2, 2)
    assert ledger.try_end(B) == "parked"


def test_the_crawl_does_not_end_while_a_shard_has_no_owner(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.take(A, range(1, SHARD_COUNT))
    ledger.renew(A, idle(0))
    assert ledger.try_end(A) == ""


def test_the_crawl_does_not_end_while_a_link_waits(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, range(SHARD_COUNT))
    ledger.commit(A, Commit(1, Totals(), links={SHARD: b"link"}))
    ledger.renew(A, idle(1))
    assert ledger.try_end(A) == ""
    read = {SHARD: (ledger.receive(A, {}, 1000)[SHARD][0].id,)}
    ledger.commit(A, Commit(2, Totals(), {SHARD: epochs[SHARD]}, read=read))
    assert ledger.try_end(A) == "", "its report is older than its last commit"
    ledger.renew(A, idle(2))
    assert ledger.try_end(A) == "exhausted"


def test_the_crawl_does_not_end_while_a_node_has_not_read_what_it_took(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    ledger.take(A, range(1, SHARD_COUNT))
    for node in (A, B):
        ledger.renew(node, idle(0))
    ledger.take(B, [0])
    assert ledger.try_end(A) == ""
    ledger.renew(B, idle(0))
    assert ledger.try_end(A) == "exhausted"


def test_the_crawl_does_not_end_while_a_node_knows_an_older_record(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    record = ledger.record()
    assert record is not None
    record.version = 2
    assert ledger.change_record(record)
    ledger.renew(A, idle(0, version=1))
    assert ledger.try_end(A) == ""
    ledger.renew(A, idle(0, version=2))
    assert ledger.try_end(A) == "exhausted"


def test_the_crawl_does_not_end_while_a_node_with_a_first_pass_knows_fewer_domains(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger).join(node, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    ledger.commit(A, Commit(1, Totals(unique_domains=3)))
    ledger.renew(B, replace(idle(0), domains=2))
    assert ledger.renew(A, replace(idle(1), domains=3)).domains == 3
    assert ledger.try_end(A) == ""
    assert ledger.renew(B, replace(idle(0, "target_domains"), domains=3)).domains == 3
    assert ledger.try_end(A) == "target_domains"


def test_the_crawl_does_not_end_before_its_budget_is_used_up(ledger: SharedLedger) -> None:
    for node in (A, B):
        started(ledger, pages=10).join(node, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    ledger.claim(B, "pages", 4)
    ledger.claim(A, "pages", 6)
    ledger.commit(A, Commit(1, Totals(pages=6)))
    ledger.renew(A, idle(1, "max_pages"))
    ledger.renew(B, idle(0))
    assert ledger.try_end(A) == "", "b has claimed what it does not use"
    ledger.claim(B, "pages", 0)
    ledger.claim(A, "pages", 10)
    ledger.commit(A, Commit(2, Totals(pages=10)))
    ledger.renew(A, idle(2, "max_pages"))
    assert ledger.try_end(A) == "max_pages"


def test_after_the_end_a_record_is_changed_only_to_reopen_the_crawl(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    ledger.take(A, range(SHARD_COUNT))
    ledger.renew(A, idle(0))
    assert ledger.try_end(A) == "exhausted"
    record = ledger.record()
    assert record is not None
    record.version += 1
    assert not ledger.change_record(record)
    record.ended, record.requests = "", [OperatorRequest(1.0, [SHARD], hosts=["h.example"])]
    assert ledger.change_record(record)
    assert ledger.record() == record
    assert ledger.renew(A, NodeStatus()).ended == ""


# -- Redis ----------------------------------------------------------------------------------------


def test_a_lease_ends_by_itself(tmp_path: Path) -> None:
    program = engines.valkey()
    now = 1000.0
    memory = started(MemorySharedLedger(lambda: now))
    memory.join(A, "", 10.0)
    now = 1010.1
    with pytest.raises(LeaseLostError):
        memory.renew(A, NodeStatus())
    with running(program, tmp_path) as server:
        ledger = started(RedisSharedLedger(server.client(), "short"))
        ledger.join(A, "", 0.0)
        ledger.join(B, "", LEASE_S)
        with pytest.raises(LeaseLostError):
            ledger.renew(A, NodeStatus())
        ledger.close()


def test_a_commit_has_no_more_pages_than_were_claimed(ledger: SharedLedger) -> None:
    assert started(ledger, pages=100).join(A, "", LEASE_S).claimed == 0
    ledger.claim(A, "pages", 5)
    assert ledger.renew(A, NodeStatus()).claimed == 5
    with pytest.raises(LeaseLostError, match="claim"):
        ledger.commit(A, Commit(1, Totals(pages=6)))
    ledger.commit(A, Commit(1, Totals(pages=5)))


# -- signatures -----------------------------------------------------------------------------------


def signed(*words: str) -> bytes:
    return minhash(" ".join(words))


TEXT = [f"word{number}" for number in range(400)]
P, Q, R = (bytes([number]) * 16 for number in (1, 2, 3))


def test_a_page_that_is_nearly_like_one_of_another_node_is_found(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    first, like_it, other = signed(*TEXT), signed(*TEXT[:-4], "end"), signed(*reversed(TEXT))
    assert ledger.commit(A, Commit(1, Totals(), signatures={P: first})).similar == {}
    known = ledger.commit(B, Commit(1, Totals(), signatures={Q: like_it, R: other}))
    assert known.similar.keys() == {Q}
    assert known.similar[Q].url_id == P
    assert known.similar[Q].similarity == equal_lanes(first, like_it) / LANES >= 0.9


def test_a_page_that_repeats_another_is_not_what_others_repeat(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    first, second, third = signed(*TEXT), signed(*TEXT[:-4]), signed(*TEXT[:-4], "x")
    ledger.commit(A, Commit(1, Totals(), signatures={P: first}))
    ledger.commit(A, Commit(2, Totals(), signatures={Q: second}))
    known = ledger.commit(B, Commit(1, Totals(), signatures={R: third}))
    assert known.similar[R].url_id == P


def test_two_pages_of_one_commit_are_compared_too(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    known = ledger.commit(A, Commit(1, Totals(), signatures={P: signed(*TEXT), Q: signed(*TEXT[:-4])}))
    assert known.similar.keys() == {Q}


def test_a_commit_that_is_repeated_returns_the_same(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    ledger.commit(A, Commit(1, Totals(), contents={b"c" * 16: P}, signatures={P: signed(*TEXT)}))
    again = Commit(1, Totals(), contents={b"c" * 16: Q}, signatures={Q: signed(*TEXT)})
    known = ledger.commit(B, again)
    assert (len(known.contents), len(known.similar)) == (1, 1)
    assert ledger.commit(B, again) == known


# -- readers --------------------------------------------------------------------------------------


def test_readers_see_what_is_committed_whoever_owns_it(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    row = url_row(LINK.url)
    host = Row("hosts", host_id("h.example"), rows.encode(HostRecord("h.example", "h.example")))
    robots = RobotsRecord("http://h.example", 200, "ok", b"User-agent: *\n" * 20, 1.0, 2.0)
    robots_row = Row("robots", rows.robots_key(robots.origin), rows.encode(robots))
    ledger.commit(A, Commit(1, Totals(), epochs=epochs, rows={SHARD: [host, robots_row, row]}))
    ledger.leave(A)
    assert ledger.look_up([link_to("http://h.example/other").id, LINK.id]) == [None, row.value]
    assert ledger.look_up([]) == []
    found = [each for some in ledger.scan([OTHER, SHARD], ["hosts", "urls", "robots"]) for each in some]
    assert sorted(found) == sorted([host, robots_row, row])
    assert list(ledger.scan([OTHER], SHARDED)) == []


def test_a_shard_has_an_owner_with_an_epoch_until_it_is_released(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    assert ledger.ownership(SHARD) is None
    epochs = ledger.take(A, [SHARD])
    assert ledger.ownership(SHARD) == Ownership(A, epochs[SHARD], is_live=True)
    ledger.leave(A)
    assert ledger.ownership(SHARD) == Ownership(A, epochs[SHARD], is_live=False)
    ledger.join(B, "", LEASE_S)
    again = ledger.take(B, [SHARD])
    assert ledger.ownership(SHARD) == Ownership(B, again[SHARD], is_live=True)
    ledger.release(B, [SHARD])
    assert ledger.ownership(SHARD) is None


# -- what extends the scope -----------------------------------------------------------------------


def test_what_extends_the_scope_is_in_the_record_with_the_commit(ledger: SharedLedger) -> None:
    seeds = [SeedRecord("http://s.example/", 1, scope="host"), SeedRecord("http://t.example/", 2)]
    ledger.start(CrawlRecord(TERMS, b"settings", scope=["http://a.example/"], seeds=seeds))
    ledger.join(A, "", LEASE_S)
    commit = Commit(1, Totals(pages=3), added=Additions(["http://b.example/"], {1: ["http://c.example/"]}))
    for _ in range(2):  # the answer was lost
        ledger.commit(A, commit)
    record = ledger.record()
    assert record is not None
    assert (record.version, record.scope) == (2, ["http://a.example/", "http://b.example/"])
    assert [seed.joined for seed in record.seeds] == [["http://c.example/"], []]
    assert record.settings == b"settings"
    assert ledger.record_version() == 2
    assert ledger.nodes()[A].totals.pages == 3
    assert ledger.change_record(replace(record, version=3, is_paused=True))
    ledger.commit(A, Commit(2, Totals(pages=4), added=Additions(["http://d.example/"])))
    assert ledger.record() == replace(record, version=4, is_paused=True, scope=[*record.scope, "http://d.example/"])


def test_a_commit_that_is_refused_extends_nothing(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    with pytest.raises(LeaseLostError):
        ledger.commit(A, Commit(2, Totals(), added=Additions(["http://b.example/"])))
    assert ledger.record_version() == 1


def test_commits_of_several_nodes_all_extend_the_scope(ledger: SharedLedger) -> None:
    two_nodes(ledger)

    def commits(node: NodeId) -> None:
        for number in range(1, 21):
            ledger.commit(node, Commit(number, Totals(), added=Additions([f"http://{node.name}{number}.example/"])))

    with ThreadPoolExecutor() as threads:
        list(threads.map(commits, (A, B)))
    record = ledger.record()
    assert record is not None
    assert len(set(record.scope)) == 40


# -- addresses ------------------------------------------------------------------------------------

NO_PACE, PACE = AddressRules(pool=5, slice_s=0.0), AddressRules(pool=5, slice_s=30.0)
ADDRESS = "127.0.0.9"


def asked(
    ledger: SharedLedger, node: NodeId, wanted: int, in_use: int = 0, rules: AddressRules = NO_PACE
) -> AddressGrant:
    return ledger.reserve(node, rules, {ADDRESS: AddressAsk(in_use, wanted)})[ADDRESS]


def two_nodes(ledger: SharedLedger) -> SharedLedger:
    started(ledger)
    ledger.join(A, "", LEASE_S)
    ledger.join(B, "", LEASE_S)
    return ledger


def test_permits_of_all_nodes_together_are_limited(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    assert asked(ledger, A, wanted=3).permits == 3
    assert asked(ledger, B, wanted=4).permits == 2
    assert asked(ledger, A, wanted=1).permits == 1
    assert asked(ledger, B, wanted=4).permits == 4


def test_permits_that_are_in_use_are_not_given_to_others(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    assert asked(ledger, A, wanted=5).permits == 5
    assert asked(ledger, A, wanted=1, in_use=4).permits == 1, "it may begin no more"
    assert asked(ledger, B, wanted=5).permits == 1
    assert asked(ledger, A, wanted=0).permits == 0
    assert asked(ledger, B, wanted=5).permits == 5


def test_other_addresses_have_their_own_permits(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    asks = {"10.0.0.1": AddressAsk(0, 5), "10.0.0.2": AddressAsk(0, 2)}
    assert {name: grant.permits for name, grant in ledger.reserve(A, NO_PACE, asks).items()} == {
        "10.0.0.1": 5,
        "10.0.0.2": 2,
    }
    assert ledger.reserve(B, NO_PACE, {"10.0.0.1": AddressAsk(0, 1)})["10.0.0.1"].permits == 0


def test_an_address_with_a_pace_belongs_to_one_node_at_a_time(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    assert asked(ledger, A, wanted=1, rules=PACE).seconds == 30.0
    assert asked(ledger, A, wanted=1, rules=PACE).seconds == 30.0, "prolonged: nobody waits"
    assert asked(ledger, B, wanted=1, rules=PACE).seconds == 0.0
    assert 0.0 < asked(ledger, A, wanted=1, rules=PACE).seconds <= 30.0


def test_a_node_whose_lease_has_ended_reserves_nothing(ledger: SharedLedger) -> None:
    two_nodes(ledger)
    ledger.leave(A)
    with pytest.raises(LeaseLostError):
        asked(ledger, A, wanted=1)


# -- what `gossamer migrate` reads and writes -----------------------------------------------------


def all_pages(ledger: SharedLedger) -> set[Row]:
    return {row for part in range(PAGE_PARTS) for some in ledger.pages(part) for row in some}


def test_contents_and_signatures_are_read_as_they_were_committed(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    page, signature = LINK.id, minhash(" ".join(f"word{n}" for n in range(200)))
    ledger.commit(A, Commit(1, Totals(), contents={b"c" * 16: page}, signatures={page: signature}))
    assert all_pages(ledger) == {Row("contents", b"c" * 16, page), Row("signatures", page, signature)}


def test_signatures_are_added_even_if_they_are_like_others_and_pages_are_compared_with_them(
    ledger: SharedLedger,
) -> None:
    started(ledger).join(A, "", LEASE_S)
    signature = minhash(" ".join(f"word{n}" for n in range(200)))
    pages = [Row("signatures", bytes([number]) * 16, signature) for number in range(3)]
    others = [Row("signatures", b"s" * 16, b"a shorter one"), Row("contents", b"c" * 16, b"p" * 16)]
    for _ in range(2):
        ledger.add_pages([*pages, *others])
    ledger.add_pages([Row("contents", b"c" * 16, b"q" * 16)])
    assert all_pages(ledger) == {*pages, *others}, "what is there stays"
    known = ledger.commit(A, Commit(1, Totals(), contents={b"c" * 16: LINK.id}, signatures={LINK.id: signature}))
    assert known.contents == {b"c" * 16: b"p" * 16}
    assert known.similar[LINK.id].url_id in {page.key for page in pages}


def test_letters_are_read_without_being_received(ledger: SharedLedger) -> None:
    started(ledger).join(A, "", LEASE_S)
    for number in range(1, 31):
        ledger.commit(A, Commit(number, Totals(), links={SHARD: b"to one %d" % number, OTHER: b"to other"}))
    assert list(ledger.messages([SHARD])) == [(SHARD, b"to one %d" % number) for number in range(1, 31)]
    assert len(list(ledger.messages(range(SHARD_COUNT)))) == 60
    assert list(ledger.messages([(SHARD + 7) % SHARD_COUNT])) == []
    ledger.take(A, [SHARD])
    assert len(ledger.receive(A, {}, 1 << 20)[SHARD]) == 30


def test_a_commit_that_the_append_only_file_lost_in_part_does_not_come_back(tmp_path: Path) -> None:
    program = engines.valkey()
    with running(program, tmp_path / "redis") as server:
        ledger = started(RedisSharedLedger(server.client(), "crawl"))
        ledger.join(A, "", LEASE_S)
        rows = [url_row(f"http://h{number}.example/") for number in range(50)]
        shards = sorted({shard_of(row.key) for row in rows})
        epochs = ledger.take(A, shards)
        ledger.commit(A, Commit(1, Totals(), epochs, {shard_of(rows[0].key): [rows[0]]}))
        ledger.commit(A, Commit(2, Totals(), epochs, {shard_of(row.key): [row] for row in rows[1:]}))
        server.stop()
        file = max(server.folder.rglob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        with file.open("r+b") as log:
            log.truncate(file.stat().st_size - 3000)
        server.start()
        ledger.renew(A, NodeStatus())
        assert len(restored(ledger, A, *shards)) == 1
        ledger.commit(A, Commit(2, Totals(), epochs, {shard_of(rows[1].key): [rows[1]]}))
        client = server.client()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            client.ping()
        server.stop()
        server.start()
        assert len(restored(ledger, A, *shards)) == 2
        ledger.close()
