"""Kafka for tests: one broker that is its own controller."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.servers import engines
from tests.servers.java import START_S, JavaServer, running, shared
from tests.servers.redis import free_port
from tests.servers.redis_cluster import wait_for

MEMORY = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaServer(JavaServer):
    """A broker with its data in a folder."""

    engine = "kafka"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def create(self) -> None:
        """Write the configuration and create the broker's files."""
        self.folder.mkdir(parents=True)
        broker, controller = (f"127.0.0.1:{port}" for port in self.ports)
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": self.folder / "logs",
            "num.partitions": 4,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "group.consumer.min.session.timeout.ms": 1000,
            "group.consumer.min.heartbeat.interval.ms": 300,
            "log.cleaner.dedupe.buffer.size": 16 << 20,
            "auto.create.topics.enable": "false",
            **self.settings,
        }
        self._config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        cluster_id = (
            "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        )  # not one that begins with a hyphen
        words = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._config)]
        subprocess.run(["java", *MEMORY, "-cp", self._class_path, *words], check=True, capture_output=True)

    @property
    def _config(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _class_path(self) -> str:
        return f"{engines.program(self.engine)}/*"

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self.run([*MEMORY, "-cp", self._class_path, "kafka.Kafka", str(self._config)])
        wait_for(self._answers, START_S)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log_tail
        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except KafkaException:
            return False


def running_kafka(folder: Path, settings: Mapping[str, object] | None = None) -> AbstractContextManager[KafkaServer]:
    """Run a broker of one's own."""
    return running(KafkaServer, folder, settings)


def shared_kafka() -> KafkaServer:
    """Return the broker of this test run."""
    return shared(KafkaServer)


@contextmanager
def guarded_kafka(folder: Path) -> Iterator[tuple[KafkaServer, str]]:
    """Run a broker with a second listener that wants a login (`me`, `right-one`), and the address of that."""
    ports, port = (free_port(), free_port()), free_port()
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_me="right-one" user_admin="x";'
    server = KafkaServer(folder, ports, {
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]},LOGIN://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},LOGIN://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": users,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    })  # fmt: skip
    server.create()
    try:
        server.start()
        yield server, f"127.0.0.1:{port}"
    finally:
        server.stop()


def allow(server: KafkaServer, topic: str, operation: AclOperation) -> None:
    """Give the user `me` a right at a topic."""
    binding = AclBinding(
        *(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:me", "*"),
        *(operation, AclPermissionType.ALLOW),
    )
    admin = server.admin()  # which must live until the answer is there
    (made,) = admin.create_acls([binding]).values()
    made.result(30)
