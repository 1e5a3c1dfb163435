"""Creates what a ledger on Kafka and Cassandra needs, with the division that it has, or that is asked for."""

from __future__ import annotations

import os

from cassandra import InvalidRequest

from gossamer.backends.kafka.address import Place, place_of
from gossamer.backends.kafka.database import Database
from gossamer.backends.kafka.layout import Layout
from gossamer.backends.kafka.setup import create
from gossamer.backends.kafka.topic import REQUEST_S, Topic
from gossamer.errors import UsageError
from gossamer.ports.setup import SetupOptions


def init(url: str, options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    place = place_of(url, os.environ)
    brokers, servers, known = _found(place)
    layout = known or Layout()
    for option, wanted, found in (
        ("--partitions", options.partitions, layout.partitions),
        ("--buckets", options.buckets, layout.buckets),
    ):
        if known is not None and wanted not in {None, found}:
            raise UsageError(f"{place.shown}: was created with other numbers; expected {option} {found}")
    copies = options.copies(min(brokers, servers))
    if copies > min(brokers, servers):
        raise UsageError(
            f"--replication {copies}: there are {brokers} brokers of Kafka and {servers} servers of Cassandra; "
            "expected at most as many copies"
        )
    return create(place, Layout(options.partitions or layout.partitions, options.buckets or layout.buckets), copies)


def _found(place: Place) -> tuple[int, int, Layout | None]:
    """Return how many servers there are of either kind, and the division of the crawl if that is decided."""
    database, topic = Database(place), Topic(place)
    try:
        with topic.errors_as_ours():
            brokers = len(topic.admin().list_topics(timeout=REQUEST_S).brokers)
        with database.errors_as_ours():
            session = database.bare_session()
            servers = len(session.cluster.metadata.all_hosts())
            try:
                # The keyspace is a name of letters, digits and _: see `place_of`.
                query = f"SELECT partitions, buckets FROM {place.keyspace}.layouts WHERE crawl = %s"  # noqa: S608
                rows = list(session.execute(query, (place.name,)))
            except InvalidRequest:  # there is no such keyspace or table yet
                rows = []
        return brokers, servers, Layout(*rows[0]) if rows else None
    finally:
        database.close()
        topic.close()
