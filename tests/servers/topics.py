"""Topics for documents, and a reader that keeps the last message of each key, as an indexer does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import count
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from tests.servers.kafka import KafkaServer

Documents: TypeAlias = dict[str, dict[str, Any] | None]
READ_S = 30.0
_names = count()


def new_topic(server: KafkaServer, partitions: int = 3, config: Mapping[str, str] | None = None) -> str:
    """Create a topic, and return its URL."""
    name = f"pages-{os.getpid()}-{next(_names)}"
    wanted = NewTopic(name, partitions, 1, config={"cleanup.policy": "compact", **(config or {})})
    admin = server.admin()  # which must live until the answer is there
    (made,) = admin.create_topics([wanted]).values()
    made.result(READ_S)
    return f"kafka://{server.address}/{name}"


def messages_in(url: str) -> list[tuple[str, dict[str, Any] | None]]:
    """Return all messages of a topic, in the order of their partitions."""
    brokers, _, name = url.removeprefix("kafka://").partition("/")
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader", "enable.partition.eof": True})
    try:
        partitions = consumer.list_topics(name, READ_S).topics[name].partitions
        consumer.assign([TopicPartition(name, number, 0) for number in partitions])
        found: list[tuple[str, dict[str, Any] | None]] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(READ_S)
            assert message is not None, "the broker does not answer"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
                continue
            key, value = message.key(), message.value()
            assert key is not None
            found.append((bytes(key).decode(), None if value is None else json.loads(value)))
        return found
    finally:
        consumer.close()


def read_topic(url: str) -> Documents:
    """Return the last message of each key: a document, or None if the page is gone."""
    return dict(messages_in(url))
