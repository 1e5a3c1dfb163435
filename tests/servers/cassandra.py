"""Cassandra for tests: a ring of one server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable

from tests.servers import engines
from tests.servers.java import START_S, JavaServer, running, shared
from tests.servers.redis import free_port
from tests.servers.redis_cluster import wait_for

WITH_LOGIN = {  # of cassandra, with the password cassandra
    "authenticator": "PasswordAuthenticator",
    "authorizer": "CassandraAuthorizer",
    "permissions_validity": "0ms",
}
# Nothing is acknowledged before it is on the disk: so a server that is killed alone loses nothing, either.
SYNCED = {"commitlog_sync": "batch", "commitlog_sync_period": None}
_EXPORTS = (
    *("java.base/jdk.internal.misc", "java.management.rmi/com.sun.jmx.remote.internal.rmi"),
    *("java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.sql/java.sql"),
    *("java.base/java.lang.ref", "jdk.unsupported/sun.misc"),
)
_OPENED = (
    *("java.base/java.lang.module", "java.base/jdk.internal.loader", "java.base/jdk.internal.ref"),
    *("java.base/jdk.internal.reflect", "java.base/jdk.internal.math", "java.base/jdk.internal.module"),
    *("java.base/jdk.internal.util.jar", "jdk.management/com.sun.management.internal", "java.base/sun.nio.ch"),
    *("java.base/java.io", "java.base/java.lang", "java.base/java.lang.reflect", "java.base/java.util"),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/java.nio"),
)
_FLAGS = (
    *("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.ring_delay_ms=500"),
    *("-Dcassandra.superuser_setup_delay_ms=0", "-Djdk.attach.allowAttachSelf=true"),
    *("-Dio.netty.tryReflectionSetAccessible=true", "-Dcassandra.jmx.local.port=0"),
)
_LOGBACK = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %-5level %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
"""


class CassandraServer(JavaServer):
    """A server with its data in a folder."""

    engine = "cassandra"

    def cluster(self, **options: Any) -> Cluster:
        if "authenticator" in self.settings:
            options = {"auth_provider": PlainTextAuthProvider("cassandra", "cassandra"), **options}
        return Cluster(["127.0.0.1"], port=self.ports[0], **options)

    def create(self) -> None:
        """Write the configuration."""
        self.folder.mkdir(parents=True)
        port, storage_port = self.ports
        lines: dict[str, object] = {
            "cluster_name": "tests",
            "num_tokens": 1,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "commitlog_sync": "periodic",
            "commitlog_sync_period": "1000ms",
            "commitlog_segment_size": "8MiB",
            "commitlog_disk_access_mode": "legacy",
            "commitlog_directory": self.folder / "commitlog",
            "data_file_directories": f"[{self.folder / 'data'}]",
            "hints_directory": self.folder / "hints",
            "saved_caches_directory": self.folder / "saved_caches",
            "cdc_raw_directory": self.folder / "cdc_raw",
            "seed_provider": "[{class_name: org.apache.cassandra.locator.SimpleSeedProvider, "
            f"parameters: [{{seeds: '127.0.0.1:{storage_port}'}}]}}]",
            "listen_address": "127.0.0.1",
            "rpc_address": "127.0.0.1",
            "native_transport_port": port,
            "storage_port": storage_port,
            "ssl_storage_port": free_port(),
            "endpoint_snitch": "SimpleSnitch",
            "memtable_heap_space": "64MiB",
            "memtable_offheap_space": "64MiB",
            "file_cache_size": "32MiB",
            "concurrent_compactors": 1,
            "auto_snapshot": "false",
            "tombstone_warn_threshold": 1000,
            "tombstone_failure_threshold": 2000,  # a fiftieth of what is usual, so that tests reach it
            **self.settings,
        }
        self._config.write_text("".join(f"{name}: {value}\n" for name, value in lines.items() if value is not None))
        (self.folder / "logback.xml").write_text(_LOGBACK)

    @property
    def _config(self) -> Path:
        return self.folder / "cassandra.yaml"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        jars = engines.program(self.engine)
        words = [*_FLAGS, f"-javaagent:{next(jars.glob('jamm-*.jar'))}"]
        for option, modules in (("--add-exports", _EXPORTS), ("--add-opens", _OPENED)):
            words += [f"{option}={module}=ALL-UNNAMED" for module in modules]
        words += [f"-Dlogback.configurationFile=file://{self.folder}/logback.xml"]
        words += [f"-Dcassandra.config=file://{self._config}", f"-Dcassandra.storagedir={self.folder}"]
        self.run([*words, "-cp", f"{jars}/*", "org.apache.cassandra.service.CassandraDaemon"])
        wait_for(self._answers, START_S)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log_tail
        cluster = self.cluster(connect_timeout=2)
        try:
            cluster.connect()
        except NoHostAvailable as error:
            return "requires authentication" in str(error)
        finally:
            cluster.shutdown()
        return True


def running_cassandra(
    folder: Path, settings: Mapping[str, object] | None = None
) -> AbstractContextManager[CassandraServer]:
    """Run a server of one's own."""
    return running(CassandraServer, folder, settings)


def shared_cassandra() -> CassandraServer:
    """Return the server of this test run."""
    return shared(CassandraServer)
