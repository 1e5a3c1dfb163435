"""What a crawl on Kafka and Cassandra needs before it starts: a keyspace with tables, and a topic."""

from __future__ import annotations

import os
from importlib.resources import files

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from gossamer.backends.clients.kafka import ANSWER_S
from gossamer.backends.kafka.address import CrawlAddress, place_of
from gossamer.backends.kafka.database import Keyspace, require_version
from gossamer.backends.kafka.layout import Layout, check_layout
from gossamer.backends.kafka.rows import schema_of_plain_tables
from gossamer.backends.kafka.topic import MAX_MESSAGE_BYTES, Topic
from gossamer.model.errors import UsageError
from gossamer.ports.setup import DEFAULT_PARTITIONS, SetupOptions


def create_tables(session: Session, keyspace: str) -> None:
    """Create the tables that are not there."""
    session.set_keyspace(keyspace)
    text = files(__package__).joinpath("schema.cql").read_text("utf-8")
    lines = "\n".join(line.partition("--")[0] for line in text.splitlines())
    statements = [each.strip() for each in lines.split(";") if each.strip()]
    for each in (*statements, *schema_of_plain_tables()):
        session.execute(_quorum(each), timeout=60.0)


def _quorum(text: str) -> SimpleStatement:
    return SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM)


def create_topic(topic: Topic, layout: Layout, replication: int) -> bool:
    """Create the topic of a crawl; return whether there was none."""
    config = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
    config |= {"max.message.bytes": str(MAX_MESSAGE_BYTES), "min.insync.replicas": str(max(1, replication - 1))}
    wanted = NewTopic(topic.name, layout.partitions, replication, config=config)
    with topic.errors:
        (made,) = topic.admin().create_topics([wanted], operation_timeout=ANSWER_S).values()
        try:
            made.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
    topic.await_partitions(layout.partitions)
    return True


def create(place: CrawlAddress, layout: Layout, replication: int) -> None:
    """Create what a crawl needs, with this many copies of everything."""
    _create(place, SetupOptions(replication, layout.partitions, layout.buckets))


def init(url: str, options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    return _create(place_of(url, os.environ), options)


def _create(place: CrawlAddress, options: SetupOptions) -> list[str]:
    layout = Layout(options.partitions or DEFAULT_PARTITIONS, options.buckets or 1)
    check_layout(layout, place.shown)
    database = Keyspace(place, is_bare=True)
    topic = Topic(place)
    try:
        with database.errors:
            session = database.session()
            lines = [_check_version(place, session), _create_keyspace(place, session, options)]
            create_tables(session, place.keyspace)
        lines.append(_create_topic(place, topic, layout, options))
        count = topic.partition_count()
        if options.partitions not in (None, count):
            raise UsageError(
                f"topic {place.topic}: has {count} partitions, which cannot change; expected --partitions {count}"
            )
        with database.errors:
            buckets = _plan_buckets(place, session, options, count)
        return [*lines, f"rows of {place.name}: buckets per partition of the topic: {buckets}"]
    finally:
        database.close()
        topic.close()


def _check_version(place: CrawlAddress, session: Session) -> str:
    ((version,),) = session.execute("SELECT release_version FROM system.local")
    require_version(version, f"ledger {place.name}")
    return f"Cassandra {version} at {place.cassandra.text}"


def _create_keyspace(place: CrawlAddress, session: Session, options: SetupOptions) -> str:
    """Create the keyspace, unless it is there; return a line about it."""
    servers = len(session.cluster.metadata.all_hosts())
    copies = options.copies(servers)
    if place.keyspace.lower() in session.cluster.metadata.keyspaces:
        return f"keyspace {place.keyspace}: was there"
    if copies > servers:
        raise UsageError(f"--replication {copies}: Cassandra has {servers} servers; expected at most as many copies")
    strategy = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
    session.execute(_quorum(f"CREATE KEYSPACE IF NOT EXISTS {place.keyspace} WITH replication = {strategy}"))
    return f"keyspace {place.keyspace}: created, copies of everything: {copies}"


def _create_topic(place: CrawlAddress, topic: Topic, layout: Layout, options: SetupOptions) -> str:
    with topic.errors:
        brokers = len(topic.admin().list_topics(timeout=ANSWER_S).brokers)
    copies = options.copies(brokers)
    if copies > brokers:
        raise UsageError(f"--replication {copies}: Kafka has {brokers} brokers; expected at most as many copies")
    if create_topic(topic, layout, copies):
        told = f"partitions: {layout.partitions}, copies of everything: {copies}"
        return f"topic {place.topic}: created, {told}"
    return f"topic {place.topic}: was there, partitions: {topic.partition_count()}"


def _plan_buckets(place: CrawlAddress, session: Session, options: SetupOptions, partitions: int) -> int:
    """Record into how many buckets the rows of a crawl are divided, unless it has started; return how many."""
    started = session.execute("SELECT buckets FROM crawls WHERE crawl = %s", (place.name,)).one()
    planned = session.execute("SELECT buckets FROM layouts WHERE crawl = %s", (place.name,)).one()
    if started is not None and options.buckets not in (None, started[0]):
        raise UsageError(
            f"ledger {place.name}: the crawl has started with {started[0]} buckets, which cannot change; "
            f"expected --buckets {started[0]}"
        )
    buckets = int(started[0] if started else options.buckets or (planned[0] if planned else 1))
    text = "INSERT INTO layouts (crawl, partitions, buckets) VALUES (%s, %s, %s)"
    session.execute(_quorum(text), (place.name, partitions, buckets))
    return buckets
