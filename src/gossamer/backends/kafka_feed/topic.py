"""A topic of documents: `kafka://[user:password@]broker:port,…/topic[?options]`. Options are those of librdkafka.

The producer is idempotent and waits for all replicas that are in sync (`acks=all`). If a call fails, the producer is
dropped with whatever it has not sent, and the next call makes another; the caller sends everything again.

How large a message may be is a setting of the topic (`max.message.bytes`), which is read from the broker. It is
compared with the size before compression, so that the same documents are cut whatever they are sent with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ResourceType,
)

from gossamer.backends.clients.errors import DriverErrors, Rule, Said
from gossamer.backends.clients.kafka import ANSWER_S, DRIVER_ERRORS, REFUSED, UNKNOWN, client_options, said
from gossamer.model.errors import GossamerError, StoreUnavailableError, UsageError
from gossamer.ports.document_topic import FeedMessage

DEFAULT_PORT = 9092
DEFAULT_MAX_BYTES = 1_048_588  # of a topic, unless it or its broker says otherwise
_MAX_CLIENT_BYTES = 1_000_000_000  # that librdkafka allows
_Failure: TypeAlias = tuple[FeedMessage, KafkaError]
_AWAY = frozenset(
    {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT}
)
_ERRORS = (
    Rule(
        UsageError,
        "{label}: there is no topic {topic}; create it with 'gossamer init-cluster {url}', or with "
        "kafka-topics --create",
        codes=UNKNOWN,
    ),
    Rule(
        UsageError,
        "{label}: refused ({text}); expected a user who may describe the topic and write to it, and the password in "
        "the URL or in GOSSAMER_KAFKA_PASSWORD",
        codes=REFUSED,
    ),
    Rule(
        UsageError,
        "{label}: {text}; expected options of librdkafka, as ?security.protocol=SASL_SSL",
        codes=(KafkaError._INVALID_ARG,),
    ),
    Rule(
        StoreUnavailableError,
        "{label}: the broker cannot write its log ({text}); is its disk full?",
        codes=(KafkaError.KAFKA_STORAGE_ERROR,),
    ),
    Rule(StoreUnavailableError, "{label}: no broker answers ({text})", codes=_AWAY),
    Rule(StoreUnavailableError, "{label}: no broker answers", (TimeoutError,)),
    Rule(StoreUnavailableError, "{label}: Kafka cannot be used now: {text}"),
)


class KafkaTopic:
    """See `gossamer.ports.document_topic.DocumentTopic`."""

    def __init__(self, url: str) -> None:
        self.name = re.sub(r"//[^/]*@", "//", url).partition("?")[0]
        self._label = f"feed {self.name}"
        place, _, self.topic = url.partition("?")[0].removeprefix("kafka://").rpartition("/")
        self.options = {**_options(url, place), "error_cb": self._on_error}
        self.errors = DriverErrors(
            DRIVER_ERRORS, _ERRORS, self._said, label=self._label, topic=self.topic, url=self.name
        )
        self._refusal: KafkaError | None = None  # of a login, which the calls that wait for it do not report
        self._producer: Producer | None = None

    # -- at the start -----------------------------------------------------------------------------

    def check(self) -> None:
        try:
            with self.errors:
                admin = self.admin()
                found = self.metadata(admin).topics[self.topic]
                if found.error is not None:
                    raise KafkaException(found.error)
                self._check_rights(admin)
        except StoreUnavailableError as error:
            raise UsageError(str(error)) from error

    def _check_rights(self, admin: AdminClient) -> None:
        asked = admin.describe_topics(
            TopicCollection([self.topic]), include_authorized_operations=True, request_timeout=ANSWER_S
        )
        allowed = asked[self.topic].result(ANSWER_S).authorized_operations
        if allowed and AclOperation.WRITE not in allowed:  # none are named by brokers that do not check rights
            raise UsageError(f"{self._label}: no right to write to this topic; expected a user with the right Write")

    def admin(self) -> AdminClient:
        """Return a client for questions about topics."""
        with self.errors:
            return AdminClient(self.options)

    def metadata(self, admin: AdminClient) -> ClusterMetadata:
        """Return what the brokers know of the topic."""
        self._refusal = None
        try:
            return admin.list_topics(self.topic, timeout=ANSWER_S)
        except KafkaException:
            admin.poll(0)  # reports why
            raise

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in REFUSED:
            self._refusal = error

    def max_bytes(self) -> int:
        """Return how large a message may be."""
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        admin = self.admin()  # which must live until the answer is there
        try:
            (answer,) = admin.describe_configs([resource], request_timeout=ANSWER_S).values()
            return int(answer.result(ANSWER_S)["max.message.bytes"].value)
        except KafkaException as error:
            if error.args[0].code() in REFUSED:  # not everybody who may write may read the settings
                return DEFAULT_MAX_BYTES
            raise

    # -- sending ----------------------------------------------------------------------------------

    def send(self, messages: Sequence[FeedMessage]) -> list[str]:
        last = {message.url: message for message in messages}
        try:
            with self.errors:
                too_large = self._produced(list(last.values()))
                return [message.url for message in too_large if self._sent_shortened(message)]
        except (GossamerError, KafkaException) as error:
            self._drop()
            raise error if isinstance(error, StoreUnavailableError) else StoreUnavailableError(str(error)) from error

    def _sent_shortened(self, message: FeedMessage) -> bool:
        """Send a message again, alone: it may have been refused for what was sent with it; then shortened."""
        if not self._produced([message]):
            return False
        short = message.shortened() if message.shortened is not None else None
        if short is None or self._produced([FeedMessage(message.url, short)]):
            raise StoreUnavailableError(
                f"{self._label}: {message.url}: also without its text its document is larger than a message may be; "
                "raise max.message.bytes of the topic"
            )
        return True

    def _produced(self, messages: Sequence[FeedMessage]) -> list[FeedMessage]:
        """Send messages, and wait for the brokers; return those that were too large. Raises for any other reason."""
        failures: list[_Failure] = []
        producer = self._connected()
        for message in messages:
            self._produce(producer, message, failures)
        if producer.flush(ANSWER_S):
            raise StoreUnavailableError(f"{self._label}: not confirmed within {ANSWER_S:g} s")
        for _, error in failures:
            if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise KafkaException(error)
        return [message for message, _ in failures]

    def _produce(self, producer: Producer, message: FeedMessage, failures: list[_Failure]) -> None:
        def on_delivery(error: KafkaError | None, _sent: object) -> None:
            if error is not None:
                failures.append((message, error))

        key = message.url.encode()
        while True:
            try:
                producer.produce(self.topic, message.value, key, on_delivery=on_delivery)
                return
            except BufferError:  # many large documents: wait until some are confirmed
                producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                failures.append((message, error.args[0]))
                return

    def _connected(self) -> Producer:
        if self._producer is None:
            self._producer = Producer({
                **self.options,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "compression.type": "zstd",
                "message.max.bytes": min(max(self.max_bytes(), 1000), _MAX_CLIENT_BYTES),
                "message.timeout.ms": int(1000 * ANSWER_S) - 1000,
            })  # fmt: skip
        return self._producer

    def _drop(self) -> None:
        producer = self._producer
        self._producer = None
        if producer is not None:
            producer.purge()
            producer.flush(1.0)

    def close(self) -> None:
        self._drop()

    def _said(self, error: BaseException) -> Said | None:
        found = said(error)
        if found is None or self._refusal is None or found.code not in _AWAY:
            return found
        return said(KafkaException(self._refusal))


def _options(url: str, place: str) -> dict[str, Any]:
    """Return what every client of the brokers needs."""
    login, _, brokers = place.rpartition("@")
    user, _, password = login.partition(":")
    options = client_options(
        ",".join(_with_port(broker) for broker in brokers.split(",")), unquote(user), unquote(password)
    )
    return options | dict(parse_qsl(url.partition("?")[2]))


def _with_port(broker: str) -> str:
    return broker if re.search(r":[0-9]+$", broker) else f"{broker}:{DEFAULT_PORT}"
