"""Creates the topic of a feed: compacted by key, for documents of any size."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from gossamer.backends.clients.kafka import ANSWER_S
from gossamer.backends.kafka_feed.topic import KafkaTopic
from gossamer.model.errors import StoreUnavailableError, UsageError
from gossamer.ports.setup import DEFAULT_PARTITIONS, SetupOptions

MAX_MESSAGE_BYTES = 16 << 20  # a document has 1,000,000 characters of text, 10,000 links and 500 headings at most


def init(url: str, options: SetupOptions) -> list[str]:
    """See `gossamer.ports.setup.Setup`."""
    try:
        with closing(KafkaTopic(url)) as topic, topic.errors:
            return _created(topic, options)
    except StoreUnavailableError as error:
        raise UsageError(str(error)) from error


def _created(topic: KafkaTopic, options: SetupOptions) -> list[str]:
    admin = topic.admin()
    brokers = len(topic.metadata(admin).brokers)
    copies = options.copies(brokers)
    if copies > brokers:
        raise UsageError(f"--replication {copies}: there are {brokers} brokers; expected at most as many copies")
    has_made = _create(admin, topic.topic, options.partitions or DEFAULT_PARTITIONS, copies)
    topic.check()
    found = topic.metadata(admin).topics[topic.topic]
    partitions = len(found.partitions)
    copies = len(found.partitions[0].replicas)
    if not has_made:
        _check_same(topic, options, partitions, copies)
    state = "created" if has_made else "was there"
    line = f"topic {topic.topic} at {topic.name}: {state}, {partitions} partitions, {copies} copies of everything"
    return [line, *_caveats(admin, topic.topic)]


def _create(admin: AdminClient, name: str, partitions: int, copies: int) -> bool:
    config = {
        "cleanup.policy": "compact",
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        "min.insync.replicas": str(max(1, copies - 1)),
    }
    (made,) = admin.create_topics(
        [NewTopic(name, partitions, copies, config=config)], operation_timeout=ANSWER_S, request_timeout=ANSWER_S
    ).values()
    try:
        made.result(ANSWER_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def _check_same(topic: KafkaTopic, options: SetupOptions, partitions: int, copies: int) -> None:
    """Refuse what was asked for and cannot be had."""
    for option, wanted, found in (
        ("--partitions", options.partitions, partitions),
        ("--replication", options.replication, copies),
    ):
        if wanted not in {None, found}:
            raise UsageError(
                f"feed {topic.name}: the topic was there, with {partitions} partitions and {copies} copies of "
                f"everything; expected {option} {found}, or another topic"
            )


def _caveats(admin: AdminClient, name: str) -> list[str]:
    """Return what the operator should know about the settings of a topic, if they can be read."""
    try:
        (answer,) = admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name)], request_timeout=ANSWER_S
        ).values()
        config = {key: entry.value for key, entry in answer.result(ANSWER_S).items()}
    except KafkaException:
        return []
    lines = []
    if "compact" not in config["cleanup.policy"]:
        lines.append(
            f"cleanup.policy is {config['cleanup.policy']}: Kafka removes documents by age; compact keeps them"
        )
    if int(config["max.message.bytes"]) < MAX_MESSAGE_BYTES:
        lines.append(
            f"max.message.bytes is {config['max.message.bytes']}: larger documents are sent without their text"
        )
    return lines
