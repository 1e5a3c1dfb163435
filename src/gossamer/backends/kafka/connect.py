"""From a ledger URL to a connected ledger: `kafka://b1:9092,b2/NAME?cassandra=h1:9042,h2/KEYSPACE`."""

from __future__ import annotations

import os
from collections.abc import Callable

from gossamer.backends.kafka.address import place_of
from gossamer.backends.kafka.database import Keyspace, require_version
from gossamer.backends.kafka.shared_ledger import KafkaSharedLedger
from gossamer.backends.kafka.topic import Topic
from gossamer.ports.shared_ledger import SharedLedger


def connect(url: str, warn: Callable[[str], None]) -> SharedLedger:
    """Return the ledger behind a URL; raises `LedgerUnavailableError` if no server can be reached."""
    place = place_of(url, os.environ)
    database = Keyspace(place)
    topic = Topic(place)
    if caveat := check_servers(database):
        topic.partition_count()  # raises if the crawl cannot be used anyway
        warn(caveat)
    return KafkaSharedLedger(database, topic)


def check_servers(database: Keyspace) -> str:
    """Raise if Cassandra is too old; return what the operator should know, or an empty string."""
    ((version,),) = database.read("SELECT release_version FROM system.local")
    require_version(version, database.label)
    copies = database.replication()
    if copies > 1:
        return ""
    found = database.read("SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'")
    if found and found[0][0] == "periodic":
        return (
            f"{database.label}: Cassandra has one copy of everything, and writes its log to the disk now and then: the "
            "last seconds are lost if its machine fails; use three copies, or commitlog_sync: batch"
        )
    return ""
