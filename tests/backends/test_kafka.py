"""The ledger on real servers, Kafka and Cassandra: commits that are interrupted, late writers, long messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import msgspec
import pytest
from confluent_kafka import Producer

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.commits import plan_of
from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.shared_ledger import KafkaSharedLedger
from gossamer.backends.kafka.topic import Topic
from gossamer.core.cluster.record_additions import Additions
from gossamer.core.ledger import rows
from gossamer.core.ledger.rows import SHARDED
from gossamer.core.url.identity import SHARD_COUNT, host_id, shard_of, shard_prefix
from gossamer.foundation import failpoints
from gossamer.model.errors import LeaseLostError
from gossamer.model.figures import Totals
from gossamer.model.records import HostRecord, UrlState
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore, NodeId
from tests.contracts.test_shared_ledger import LINK, OTHER, SHARD, TERMS, TEXT, P, Q, signed, url_row
from tests.servers import engines
from tests.servers.kafka_cassandra import KafkaAndCassandra, shared_both

LEASE_S = 60.0
A, B = NodeId("a", "1"), NodeId("b", "1")
_names = count()
CONTENT = b"c" * 16
ENDS = [Row("archives", b"one.warc.gz", (500).to_bytes(8, "big"))]


@pytest.fixture(scope="module", params=[engines.param("kafka", "cassandra")])
def both() -> KafkaAndCassandra:
    return shared_both()


@pytest.fixture
def url(both: KafkaAndCassandra) -> str:
    return both.prepared(f"parts{next(_names)}-{os.getpid()}")


@pytest.fixture
def ledger(url: str) -> Iterator[KafkaSharedLedger]:
    made = opened(url)
    made.start(CrawlRecord(TERMS, b""))
    yield made
    made.close()


def opened(url: str) -> KafkaSharedLedger:
    place = place_of(url, {})
    return KafkaSharedLedger(Keyspace(place), Topic(place))


def restored(ledger: KafkaSharedLedger, node: NodeId, *shards: int) -> list[Row]:
    return sorted(row for some in ledger.restore(node, shards, SHARDED) for row in some)


def first_commit(epochs: dict[int, int]) -> Commit:
    return Commit(
        1, Totals(pages=1), epochs, {SHARD: [url_row(LINK.url)]}, {OTHER: b"links"},
        contents={CONTENT: LINK.id}, signatures={P: signed(*TEXT)}, archives=ENDS,
        added=Additions(("http://new.example/",)),
    )  # fmt: skip


@pytest.fixture
def interrupted(request: pytest.FixtureRequest) -> Iterator[str]:
    """A place in a commit at which the node dies, the first time."""
    failpoints.arm(f"{request.param}:raise:1")
    yield request.param
    failpoints.arm("")


NOT_MADE, MADE = failpoints.LEDGER_POINTS[:2], failpoints.LEDGER_POINTS[2:]


def die_in_commit(ledger: KafkaSharedLedger) -> Commit:
    ledger.join(A, "", LEASE_S)
    commit = first_commit(ledger.take(A, [SHARD]))
    with pytest.raises(RuntimeError, match="failpoint"):
        ledger.commit(A, commit)
    return commit


@pytest.mark.parametrize("interrupted", NOT_MADE, indirect=True)
def test_a_commit_whose_node_died_before_it_was_decided_was_never_made(url: str, interrupted: str) -> None:
    first = opened(url)
    first.start(CrawlRecord(TERMS, b""))
    die_in_commit(first)
    first.leave(A)
    ledger = opened(url)
    ledger.join(B, "", LEASE_S)
    ledger.take(B, range(SHARD_COUNT))
    assert restored(ledger, B, SHARD) == []
    assert ledger.receive(B, {}, 1000) == {}, "its links are void"
    assert ledger.nodes()[A].totals.pages == 0
    assert ledger.archive_ends("a") == {}
    assert ledger.record() == CrawlRecord(TERMS, b"")
    assert ledger.commit(B, Commit(1, Totals(), contents={CONTENT: Q})) == KnownBefore()
    ledger.renew(B, NodeStatus(commit=1, idle="exhausted", record_version=1))
    assert ledger.try_end(B) == "exhausted", "and do not keep the crawl from its end"
    for each in (first, ledger):
        each.close()


@pytest.mark.parametrize("interrupted", MADE, indirect=True)
def test_a_commit_whose_node_died_after_it_was_decided_is_completed_by_the_next_owner(
    url: str, interrupted: str
) -> None:
    first = opened(url)
    first.start(CrawlRecord(TERMS, b""))
    die_in_commit(first)
    first.close()
    ledger = opened(url)
    ledger.join(B, "", LEASE_S)
    assert ledger.take(B, [SHARD, OTHER]).keys() == {OTHER}, "a is alive"
    ledger.leave(A)
    ledger.take(B, [SHARD])
    assert restored(ledger, B, SHARD) == [url_row(LINK.url)]
    assert [message.links for message in ledger.receive(B, {}, 1000)[OTHER]] == [b"links"]
    assert ledger.nodes()[A].totals.pages == 1
    assert ledger.archive_ends("a") == {"one.warc.gz": 500}
    record = ledger.record()
    assert record is not None
    assert record.scope == ["http://new.example/"]
    known = ledger.commit(B, Commit(1, Totals(), contents={CONTENT: Q}, signatures={Q: signed(*TEXT)}))
    assert known.contents == {CONTENT: LINK.id}
    assert known.similar.keys() == {Q}
    ledger.close()


@pytest.mark.parametrize("interrupted", failpoints.LEDGER_POINTS, indirect=True)
def test_a_commit_that_failed_is_made_once_when_it_is_repeated(ledger: KafkaSharedLedger, interrupted: str) -> None:
    commit = die_in_commit(ledger)
    assert ledger.commit(A, commit) == KnownBefore()
    assert restored(ledger, A, SHARD) == [url_row(LINK.url)]
    assert ledger.nodes()[A].totals.pages == 1
    ledger.take(A, [OTHER])
    links = [message.links for message in ledger.receive(A, {}, 1000)[OTHER]]
    assert links == [b"links"] * (1 if interrupted in MADE else 2), "links that are sent again do no harm"


def test_what_an_old_owner_writes_late_changes_nothing(url: str, ledger: KafkaSharedLedger) -> None:
    old = opened(url)
    old.join(A, "", LEASE_S)
    epochs = old.take(A, [SHARD])
    queued = Row("queue", LINK.id[:8] + bytes(12) + LINK.id[8:], b"")
    first = Commit(1, Totals(), epochs, {SHARD: [url_row(LINK.url), queued]})
    old.commit(A, first)
    ledger.join(B, "", LEASE_S)
    ledger.leave(A)
    taken = ledger.take(B, [SHARD])
    done = url_row(LINK.url, UrlState.DONE)
    ledger.commit(B, Commit(1, Totals(), taken, {SHARD: [done, queued._replace(value=None)]}))
    old._commits.apply(A, plan_of(first, {}, 1))  # a write that was on its way all the time
    assert restored(ledger, B, SHARD) == [done]
    with pytest.raises(LeaseLostError):
        old.commit(A, Commit(2, Totals(), epochs, {SHARD: [url_row(LINK.url)]}))
    old.close()


def test_messages_of_others_in_the_topic_do_no_harm(
    url: str, ledger: KafkaSharedLedger, both: KafkaAndCassandra
) -> None:
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, range(SHARD_COUNT))
    place = place_of(url, {})
    producer = Producer({"bootstrap.servers": both.kafka.address})
    foreign = msgspec.msgpack.encode([(SHARD, b"links of an earlier crawl", False)])
    for key, value in ((b"x/1/1", b"\xffjunk"), (b"\xff", b"junk"), (None, None), (b"earlier/1/7", foreign)):
        producer.produce(place.topic, value, key, SHARD // (SHARD_COUNT // both.partitions))
    assert producer.flush(10) == 0
    ledger.commit(A, Commit(1, Totals(), links={SHARD: b"ours"}))
    (message,) = ledger.receive(A, {}, 1000)[SHARD]
    assert message.links == b"ours"
    ledger.commit(A, Commit(2, Totals(), {SHARD: epochs[SHARD]}, read={SHARD: [message.id]}))
    ledger.receive(A, {}, 1000)
    ledger.renew(A, NodeStatus(commit=2, idle="exhausted", record_version=1))
    assert ledger.try_end(A) == "exhausted"


def test_links_of_any_length_arrive(ledger: KafkaSharedLedger) -> None:
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD, OTHER])
    long = os.urandom(3_000_000)
    ledger.commit(A, Commit(1, Totals(), links={SHARD: long, OTHER: b"short"}))
    found = ledger.receive(A, {}, 10_000_000)
    assert [message.links for message in found[SHARD]] == [long]
    assert [message.links for message in found[OTHER]] == [b"short"]
    read = {shard: [message.id for message in messages] for shard, messages in found.items()}
    ledger.commit(A, Commit(2, Totals(), epochs, read=read))
    assert ledger.receive(A, {}, 1000) == {}


def test_the_next_owner_reads_only_what_the_last_one_has_not(url: str, ledger: KafkaSharedLedger) -> None:
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    for number in range(1, 4):
        ledger.commit(A, Commit(number, Totals(), links={SHARD: b"%d" % number}))
    messages = ledger.receive(A, {}, 1000)[SHARD]
    ledger.commit(A, Commit(4, Totals(), epochs, read={SHARD: [messages[0].id, messages[1].id]}))
    next_one = opened(url)
    next_one.join(B, "", LEASE_S)
    ledger.release(A, [SHARD])
    next_one.take(B, [SHARD])
    assert [message.links for message in next_one.receive(B, {}, 1000)[SHARD]] == [b"3"]
    next_one.close()


def test_a_queue_of_which_most_is_removed_is_restored(ledger: KafkaSharedLedger) -> None:
    """Cassandra refuses a request that has to pass over thousands of removed rows."""
    ledger.join(A, "", LEASE_S)
    shards = range(16)
    epochs = ledger.take(A, shards)
    keys = [shard_prefix(shard) + bytes(24) + number.to_bytes(2, "big") for shard in shards for number in range(250)]
    added = {shard: [Row("queue", key, b"") for key in keys if shard_of(key) == shard] for shard in shards}
    ledger.commit(A, Commit(1, Totals(), epochs, added))
    left = {some[-1] for some in added.values()}
    removed = {shard: [row._replace(value=None) for row in some[:-1]] for shard, some in added.items()}
    ledger.commit(A, Commit(2, Totals(), epochs, removed))
    assert set(restored(ledger, A, *shards)) == left


def test_nodes_take_shards_by_ranges(ledger: KafkaSharedLedger, both: KafkaAndCassandra) -> None:
    assert ledger.join(A, "", LEASE_S).shards_per_range == SHARD_COUNT // both.partitions


def test_rows_can_be_read_by_a_person(ledger: KafkaSharedLedger, url: str, both: KafkaAndCassandra) -> None:
    ledger.join(A, "", LEASE_S)
    epochs = ledger.take(A, [SHARD])
    host = Row("hosts", host_id("h.example"), rows.encode(HostRecord("h.example", "h.example", queued=3)))
    ledger.commit(A, Commit(1, Totals(), epochs, {SHARD: [host]}))
    with both.cassandra.cluster() as cluster:
        query = "SELECT record FROM crawls.hosts WHERE crawl = %s AND name = 'h.example' ALLOW FILTERING"
        ((record,),) = cluster.connect().execute(query, [place_of(url, {}).name])
    assert '"queued":3' in record
