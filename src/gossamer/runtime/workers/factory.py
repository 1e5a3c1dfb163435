"""How a worker is built, in the hub's process or in its own.

`WorkerConfig` is sent to a worker process as one message; `open_worker` builds the worker
from it in either case.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.cluster.regions import RegionRule
from gossamer.fetch.access import AccessRules, AccessTable
from gossamer.fetch.http import Fetcher
from gossamer.fetch.identity import Identity
from gossamer.fetch.limits import FetchLimits, max_idle_connections, raise_file_limit
from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.records import ContentRecord
from gossamer.reading.archive_access import archive_files
from gossamer.runtime.recovery.stored_copy import StoredCopies
from gossamer.runtime.session.clock import TimeLine
from gossamer.runtime.stores.sinks import SinkConfig, open_sinks
from gossamer.runtime.watch.crash import crash_of
from gossamer.runtime.workers.answers import WorkerRules
from gossamer.runtime.workers.marks import Marks, new_marks
from gossamer.runtime.workers.worker import Listener, Worker

FirstCopy = Callable[[bytes], ContentRecord | None]


class WorkerConfig(Struct, frozen=True):
    rules: WorkerRules
    limits: FetchLimits
    identity: Identity
    allowed_networks: tuple[str, ...]
    allowed_addresses: tuple[str, ...]
    time_line: TimeLine
    sinks: SinkConfig
    ca_file: str
    copies: int  # contents in the cache of a worker process
    regions: tuple[RegionRule, ...] = ()  # which a worker process needs to identify links
    access: AccessRules = AccessRules()


@asynccontextmanager
async def open_worker(
    config: WorkerConfig, first_copy: FirstCopy, listener: Listener, marks: Marks | None = None
) -> AsyncIterator[Worker]:
    """Build a worker; on exit its requests are ended and its archive files finished."""
    marks = new_marks() if marks is None else marks
    policy = AddressPolicy(config.allowed_networks, config.allowed_addresses)
    max_idle = min(config.limits.max_idle_connections, max_idle_connections(raise_file_limit()))
    fetcher = Fetcher(
        replace(config.limits, max_idle_connections=max_idle),
        config.identity,
        policy,
        config.time_line.now,
        ca_file=config.ca_file,
        access=AccessTable(config.access) if config.access else None,
        on_crash=lambda url, error: listener.on_crash(crash_of(url, error)),
        marks=marks,
    )
    files = archive_files(Path(config.sinks.out) / "archive", config.sinks.stores)
    copies = StoredCopies(files, config.limits.max_bytes)
    async with fetcher:
        sinks = open_sinks(config.sinks, config.rules.number)
        worker = Worker(config.rules, fetcher, sinks, first_copy, listener, stored_copy=copies, marks=marks)
        try:
            yield worker
        finally:
            await worker.close()
