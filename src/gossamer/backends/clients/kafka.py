"""What do clients of Kafka say of an error, and what does each of them need?"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from gossamer.backends.clients.errors import Said, one_line

DRIVER_ERRORS = (KafkaException, BufferError, TimeoutError, SystemError)
ANSWER_S = 10.0
UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
REFUSED = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION,
})  # fmt: skip


def said(error: BaseException) -> Said | None:
    """Return what a client says; None: it is not of a client."""
    if isinstance(error, SystemError):  # how the client reports what ends a producer, from within its callbacks
        error = error.__cause__ or error
        if not isinstance(error, KafkaException):
            return None
    if isinstance(error, KafkaException):
        return Said(error.args[0].str(), (error,), error.args[0].code())
    return one_line(error)


def client_options(brokers: str, user: str, password: str) -> dict[str, Any]:
    """Return what every client of the brokers needs."""
    options: dict[str, Any] = {
        "bootstrap.servers": brokers,
        "client.id": "gossamer",
        "log_level": 0,
        "socket.timeout.ms": int(1000 * ANSWER_S),
    }
    if user:
        options |= {"sasl.username": user, "sasl.password": password}
        options |= {"sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT"}
    return options
