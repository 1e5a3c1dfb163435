"""The topic that carries links to the owners of their shards.

A message has the links of one commit for one range of shards: its key names the commit, its value is MessagePack of
(shard, links, whether more of them follow in another message). Messages are sent before the commit is made; a reader
passes them on when it is, and drops them if it never will be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, TypeAlias

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec, TopicMetadata  # type: ignore[attr-defined]

from gossamer.backends.clients.errors import DriverErrors, Rule
from gossamer.backends.clients.kafka import ANSWER_S, DRIVER_ERRORS, REFUSED, UNKNOWN, client_options, said
from gossamer.backends.kafka.address import KAFKA_PASSWORD, CrawlAddress
from gossamer.backends.kafka.layout import Layout
from gossamer.model.errors import GossamerError, LedgerUnavailableError, UsageError

Part: TypeAlias = tuple[int, bytes, bool]  # shard, links, whether they go on in the next message
MAX_MESSAGE_BYTES = 16 << 20  # that the topic takes
PART_BYTES = 768 << 10  # of links in one message
_AT_ONCE = 500
_KEY = re.compile(rb"[^/]+/[^/]+/[0-9]{1,18}")  # name, incarnation, number of the commit
_encode = msgspec.msgpack.Encoder().encode
_parts = msgspec.msgpack.Decoder(list[Part]).decode
_NEEDED = (AclOperation.READ, AclOperation.WRITE)
_ERRORS = (
    Rule(
        UsageError,
        "{label}: Kafka refuses the user: {text}; give one who may read and write {topic}, with the password in the "
        f"URL or in {KAFKA_PASSWORD}",
        codes=REFUSED,
    ),
    Rule(UsageError, "{label}: there is no topic {topic}; make it: gossamer init-cluster '{url}'", codes=UNKNOWN),
    Rule(
        GossamerError,
        "{label}: topic {topic} has lost messages that were not read ({text}); restore it",
        codes=(KafkaError._AUTO_OFFSET_RESET,),
    ),
    Rule(
        UsageError,
        "{label}: {text}; expected options of librdkafka, as &security.protocol=SASL_SSL",
        codes=(KafkaError._INVALID_ARG,),
    ),
    Rule(LedgerUnavailableError, "{label}: Kafka at {brokers} cannot be used now: {text}", (KafkaException,)),
    Rule(LedgerUnavailableError, "{label}: Kafka cannot be used now: {text}"),
)


class Topic:
    """The links of a crawl. Connects with the first call. Thread-safe."""

    def __init__(self, place: CrawlAddress) -> None:
        self.name = place.topic
        self._place = place
        values = {"topic": self.name, "brokers": place.kafka.text, "url": place.shown}
        self.errors = DriverErrors(DRIVER_ERRORS, _ERRORS, said, label=f"ledger {place.name}", **values)
        self._lock = Lock()
        self._producer: Producer | None = None
        self._admin: AdminClient | None = None
        self._refusal: KafkaError | None = None  # of a login, which the calls that wait for it do not report

    def options(self) -> dict[str, Any]:
        """Return what every client of the brokers needs."""
        servers = self._place.kafka
        options = client_options(servers.text, servers.user, servers.password)
        return {**options, "error_cb": self._on_error, **self._place.kafka_options}

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in REFUSED:
            self._refusal = error

    def admin(self) -> AdminClient:
        """Return a client for questions about the topic."""
        with self._lock:
            if self._admin is None:
                self._admin = AdminClient(self.options())
            return self._admin

    # -- sending ----------------------------------------------------------------------------------

    def send(self, key: bytes, links: Mapping[int, bytes], layout: Layout) -> None:
        """Send the links of a commit; returns when the brokers have them."""
        if not links:
            return
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                failures.append(error)

        with self.errors:
            producer = self._sender()
            for partition, value in _messages(links, layout):
                producer.produce(self.name, value, key, partition, on_delivery=on_delivery)
            if producer.flush(ANSWER_S):
                producer.purge()
                producer.flush(1.0)
                raise LedgerUnavailableError(
                    f"ledger {self._place.name}: Kafka at {self._place.kafka.text} cannot be used now: it has not "
                    f"confirmed messages within {ANSWER_S:g} s"
                )
            if failures:
                raise KafkaException(failures[0])

    def _sender(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = Producer({
                    **self.options(),
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 2,
                    "compression.type": "zstd",
                    "message.max.bytes": MAX_MESSAGE_BYTES,
                    "message.timeout.ms": 1000 * int(ANSWER_S) - 1000,
                })  # fmt: skip
            return self._producer

    # -- reading ----------------------------------------------------------------------------------

    def consumer(self) -> Consumer:
        """Return a client that reads partitions from given offsets on."""
        with self.errors:
            return Consumer({
                **self.options(),
                "group.id": f"gossamer.{self._place.name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "fetch.message.max.bytes": MAX_MESSAGE_BYTES,
                "queued.max.messages.kbytes": 8192,
            })  # fmt: skip

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset after the last message of each partition."""
        with self.errors:
            wanted = {TopicPartition(self.name, number): OffsetSpec.latest() for number in partitions}
            if not wanted:
                return {}
            found = self.admin().list_offsets(wanted, request_timeout=ANSWER_S)
            return {each.partition: future.result(ANSWER_S).offset for each, future in found.items()}

    def partition_count(self) -> int:
        """Return how many partitions the topic has; raises if there is none."""
        with self.errors:
            found = self._metadata()
            if found.error is not None:
                raise KafkaException(found.error)
            return len(found.partitions)

    def check_rights(self) -> None:
        """Raise UsageError if the user may not read and write the topic: else the first commit would find out."""
        with self.errors:
            asked = self.admin().describe_topics(
                TopicCollection([self.name]), include_authorized_operations=True, request_timeout=ANSWER_S
            )
            allowed = asked[self.name].result(ANSWER_S).authorized_operations
        missing = [each.name.lower() for each in _NEEDED if each not in allowed] if allowed else []
        if missing:  # brokers that check no rights name none
            raise UsageError(
                f"ledger {self._place.name}: Kafka does not let the user {' and '.join(missing)} {self.name}; "
                "expected a user with the rights Describe, Read and Write"
            )

    def _metadata(self) -> TopicMetadata:
        self._refusal = None
        try:
            return self.admin().list_topics(self.name, timeout=ANSWER_S).topics[self.name]
        except KafkaException as error:
            self.admin().poll(0)  # reports why
            raise KafkaException(self._refusal or error.args[0]) from error

    def await_partitions(self, count: int) -> None:
        """Wait until all brokers know a topic that was just created."""
        until = time.monotonic() + ANSWER_S
        while time.monotonic() < until:
            with self.errors:
                found = self._metadata()
            if found.error is None and sum(each.leader >= 0 for each in found.partitions.values()) == count:
                return
            time.sleep(0.05)
        raise LedgerUnavailableError(f"topic {self.name}: was created, but has no leaders after {ANSWER_S:g} s")

    def close(self) -> None:
        with self._lock:
            if self._producer is not None:
                self._producer.flush(1.0)
            self._producer = self._admin = None


class Reader:
    """Reads partitions of the topic, from the offsets that are set."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._consumer: Consumer | None = None
        self._assigned: dict[int, int] = {}  # partition -> next offset

    def read(self, offsets: Mapping[int, int], max_bytes: int) -> Iterator[tuple[int, int, bytes, list[Part]]]:
        """Yield messages from these offsets on that were there before the call: partition, offset, key, parts."""
        ends = self._topic.ends(offsets)
        left = {number for number, end in ends.items() if offsets[number] < end}
        if not left:
            return
        with self._topic.errors:
            consumer = self._seek(offsets)
            until = time.monotonic() + ANSWER_S
            size = 0
            while left and size < max_bytes:
                found = consumer.consume(_AT_ONCE, 0.1)
                if not found and time.monotonic() > until:
                    raise LedgerUnavailableError(f"{self._topic.name}: Kafka has sent nothing for {ANSWER_S:g} s")
                for message in found:
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    number, offset, key, value = _fields(message)
                    self._assigned[number] = offset + 1
                    size += len(value)
                    until = time.monotonic() + ANSWER_S
                    yield number, offset, key, _parts_of(key, value)
                    if offset + 1 >= ends.get(number, 0):
                        left.discard(number)

    def _seek(self, offsets: Mapping[int, int]) -> Consumer:
        """Go on where the caller is; anew if that is not where the consumer is."""
        if self._consumer is None:
            self._consumer = self._topic.consumer()
        if self._assigned != offsets:
            self._assigned = dict(offsets)
            self._consumer.assign([
                TopicPartition(self._topic.name, number, offset) for number, offset in offsets.items()
            ])  # fmt: skip
        return self._consumer

    def tell(self, offsets: Mapping[int, int]) -> None:
        """Tell Kafka what is done with, for its own tools; nothing here depends on it."""
        if self._consumer is not None and offsets:
            places = [TopicPartition(self._topic.name, number, offset) for number, offset in offsets.items()]
            self._consumer.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        """End the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _parts_of(key: bytes, value: bytes) -> list[Part]:
    """Return what a message has for shards: nothing if it is not one of ours, whose bytes Kafka's checksums protect."""
    if not _KEY.fullmatch(key):
        return []
    try:
        return _parts(value)
    except msgspec.MsgspecError:
        return []


def _fields(message: KafkaMessage) -> tuple[int, int, bytes, bytes]:
    number = message.partition()
    offset = message.offset()
    key = message.key()
    value = message.value()
    assert number is not None
    assert offset is not None
    return number, offset, bytes(key or b""), bytes(value or b"")


def _messages(links: Mapping[int, bytes], layout: Layout) -> Iterator[tuple[int, bytes]]:
    """Yield messages: partition and value."""
    ranges: dict[int, list[Part]] = {}
    for shard, text in links.items():
        places = range(0, max(1, len(text)), PART_BYTES)
        some = [(shard, text[start : start + PART_BYTES], start + PART_BYTES < len(text)) for start in places]
        ranges.setdefault(layout.range_of(shard), []).extend(some)
    for number, parts in ranges.items():
        begun: list[Part] = []
        size = 0
        for part in parts:
            if begun and size + len(part[1]) > PART_BYTES:
                yield number, _encode(begun)
                begun = []
                size = 0
            begun.append(part)
            size += len(part[1])
        yield number, _encode(begun)
