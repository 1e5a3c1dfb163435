"""Messages between hub and worker processes: length-prefixed MessagePack frames.

A frame is four bytes of length (big-endian) and one message. Tasks and results are sent
in lists, so that a burst costs one frame, not one per page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

import msgspec
from msgspec import Struct

from gossamer.model.exchanges import Volume
from gossamer.model.records import FetchTask, Result
from gossamer.runtime.watch.crash import Crash
from gossamer.runtime.workers.factory import WorkerConfig


class Begin(Struct, tag=True):
    """The first message of the hub."""

    config: WorkerConfig
    ledger: str


class FetchTasks(Struct, tag=True):
    """Carry out these tasks; the links of these earlier ones need not be sent again."""

    tasks: list[FetchTask]
    decided: list[int] = []


class OpenAddress(Struct, tag=True):
    """Allow requests to one more address, which the operator named."""

    address: str


class Sync(Struct, tag=True):
    """Make what is archived durable, and confirm it."""

    number: int


class Close(Struct, tag=True):
    """Finish the files and exit."""


class Results(Struct, tag=True):
    """These tasks have ended."""

    results: list[Result]


class Sent(Struct, tag=True):
    task_id: int
    at: float


class Synced(Struct, tag=True):
    """What was archived before `Sync` is durable."""

    number: int
    volume: Volume
    stall_s: float = 0.0  # the longest since the last one


class Failed(Struct, tag=True):
    """The worker cannot continue."""

    error: str
    message: str


class Crashed(Struct, tag=True):
    """The worker's code raised; if it was on a page, its result is sent as well."""

    crash: Crash


class WorkerReport(Struct, tag=True):
    """The last message of a worker."""

    cpu_seconds: float
    stall_p99_ms: float
    stall_max_ms: float
    core_wait_p99_ms: float


Message: TypeAlias = (
    Begin | FetchTasks | OpenAddress | Sync | Close | Results | Sent | Synced | Failed | Crashed | WorkerReport
)

_encode = msgspec.msgpack.Encoder().encode


@cache  # only a crawl with worker processes needs it
def _decoder() -> msgspec.msgpack.Decoder[Message]:
    return msgspec.msgpack.Decoder(Message)


def frame(message: Message) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(4, "big") + body


class FrameReader:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._decode = _decoder().decode

    def feed(self, data: bytes) -> Iterator[Message]:
        """Add bytes; yield the messages that are complete now."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= 4:
            end = at + 4 + int.from_bytes(buffer[at : at + 4], "big")
            if len(buffer) < end:
                break
            yield self._decode(memoryview(buffer)[at + 4 : end].tobytes())
            at = end
        del buffer[:at]
