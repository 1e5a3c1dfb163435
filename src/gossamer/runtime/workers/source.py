"""The workers of a crawl on this machine: how one is opened, and what a dead one left.

A single worker shares the hub's process and event loop; with more, each has its own process.
The addresses that the seeds allow are passed to a worker when it is opened, not before: they
are known once the crawl folder has been read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gossamer.fetch.names.guard import AddressPolicy
from gossamer.model.exchanges import Volume
from gossamer.model.records import Result
from gossamer.runtime.recovery.recovery import Recovery
from gossamer.runtime.workers.channel import Channel, HubListener, LocalChannel, ProcessChannel
from gossamer.runtime.workers.factory import FirstCopy, WorkerConfig


class WorkerLedger(Struct, frozen=True):
    """Where workers look up whether a content is stored already: by a call, or in a ledger that they open."""

    first_copy: FirstCopy
    folder: Path


class LocalWorkers:
    """Opens workers; see `runtime.workers.pool.WorkerSource`."""

    def __init__(
        self, count: int, config: WorkerConfig, policy: AddressPolicy, ledger: WorkerLedger, recovery: Recovery
    ) -> None:
        self._count = count
        self._config = config
        self._policy = policy
        self._ledger = ledger
        self._recovery = recovery
        self._channels: list[LocalChannel | ProcessChannel] = []
        policy.on_opened = self._open_address

    def _open_address(self, address: str) -> None:
        """Allow the workers that run an address that is named later."""
        for channel in self._channels:
            if channel.is_running:
                channel.open_address(address)

    def open_channel(self, number: int, listener: HubListener) -> Channel:
        rules = replace(self._config.rules, number=number)
        config = replace(self._config, rules=rules, allowed_addresses=self._policy.opened)
        channel: LocalChannel | ProcessChannel
        if self._count <= 1:
            channel = LocalChannel(config, self._ledger.first_copy, listener)
        else:
            is_replacement = number >= self._count
            channel = ProcessChannel(config, str(self._ledger.folder), listener, is_replacement=is_replacement)
        self._channels.append(channel)
        return channel

    def rescue(self, number: int) -> Iterable[Result]:
        """Return what a dead worker had archived but not reported; its files are closed afterwards."""
        return self._recovery.rescue(number)

    def volume(self) -> Volume:
        """Return what all workers have compressed, those that have ended included."""
        return sum((channel.volume() for channel in self._channels), Volume())

    def take_stall_s(self) -> float:
        """Return the longest time that the loop of a worker process was blocked, since the last call."""
        return max((channel.take_stall_s() for channel in self._channels), default=0.0)

    def running(self) -> int:
        return sum(channel.is_running for channel in self._channels)

    def pids(self) -> list[int]:
        """Return the ids of the worker processes, including those that have ended."""
        return [channel.pid for channel in self._channels if channel.pid]
