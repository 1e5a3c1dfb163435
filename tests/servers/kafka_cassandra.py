"""Kafka and Cassandra together, for crawls whose ledger is on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.setup import create
from tests.servers.cassandra import CassandraServer, running_cassandra, shared_cassandra
from tests.servers.kafka import KafkaServer, running_kafka, shared_kafka

KEYSPACE = "crawls"


class KafkaAndCassandra:
    """Both servers."""

    def __init__(self, kafka: KafkaServer, cassandra: CassandraServer, partitions: int = 16) -> None:
        self.kafka = kafka
        self.cassandra = cassandra
        self.partitions = partitions

    def url_of(self, name: str) -> str:
        """Return the URL of a crawl."""
        return f"kafka://{self.kafka.address}/{name}?cassandra={self.cassandra.address}/{KEYSPACE}"

    def prepared(self, name: str) -> str:
        """Make what a crawl needs; return its URL."""
        url = self.url_of(name)
        create(place_of(url, {}), Layout(self.partitions), replication=1)
        return url


def shared_both() -> KafkaAndCassandra:
    """Return the servers of this test run."""
    return KafkaAndCassandra(shared_kafka(), shared_cassandra())


@contextmanager
def running_both(folder: Path) -> Iterator[KafkaAndCassandra]:
    """Run servers of one's own."""
    with running_kafka(folder / "kafka") as kafka, running_cassandra(folder / "cassandra") as cassandra:
        yield KafkaAndCassandra(kafka, cassandra)
