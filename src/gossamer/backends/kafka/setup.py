"""What a crawl on Kafka and Cassandra needs before it starts: a keyspace with tables, and a topic."""

from __future__ import annotations

from importlib.resources import files

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from gossamer.backends.kafka.address import Place
from gossamer.backends.kafka.database import Database
from gossamer.backends.kafka.layout import Layout, check_layout
from gossamer.backends.kafka.rows import schema_of_plain_tables
from gossamer.backends.kafka.topic import MAX_MESSAGE_BYTES, REQUEST_S, Topic


def create_tables(session: Session, keyspace: str, replication: int) -> bool:
    """Create a keyspace with the tables; return whether there was none."""
    is_new = keyspace.lower() not in session.cluster.metadata.keyspaces
    if is_new:
        strategy = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}"
        session.execute(_quorum(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {strategy}"))
    session.set_keyspace(keyspace)
    text = files(__package__).joinpath("schema.cql").read_text("utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    statements = [each.strip() for each in lines.split(";") if each.strip()]
    for each in (*statements, *schema_of_plain_tables()):
        session.execute(_quorum(each), timeout=60.0)
    return is_new


def _quorum(text: str) -> SimpleStatement:
    return SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM)


def create_topic(topic: Topic, layout: Layout, replication: int) -> bool:
    """Create the topic of a crawl; return whether there was none."""
    config = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
    config |= {"max.message.bytes": str(MAX_MESSAGE_BYTES), "min.insync.replicas": str(max(1, replication - 1))}
    wanted = NewTopic(topic.name, layout.partitions, replication, config=config)
    with topic.errors_as_ours():
        (made,) = topic.admin().create_topics([wanted], operation_timeout=REQUEST_S).values()
        try:
            made.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
    return True


def create(place: Place, layout: Layout, replication: int) -> list[str]:
    """Create what a crawl needs; return lines that say what was made and what was there."""
    check_layout(layout, place.shown)
    database, topic = Database(place), Topic(place)
    try:
        with database.errors_as_ours():
            session = database.bare_session()
            has_made_keyspace = create_tables(session, place.keyspace, replication)
            plan = "INSERT INTO layouts (crawl, partitions, buckets) VALUES (%s, %s, %s)"
            session.execute(_quorum(plan), (place.name, layout.partitions, layout.buckets))
        has_made_topic = create_topic(topic, layout, replication)
        count = layout.partitions if has_made_topic else topic.partition_count()
    finally:
        database.close()
        topic.close()
    return [
        f"keyspace {place.keyspace}: {'made' if has_made_keyspace else 'was there'}; its tables are there",
        f"topic {place.topic}: {'made' if has_made_topic else 'was there'}, {count} partitions",
    ]
