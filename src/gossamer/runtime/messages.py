"""What hub and worker processes say to each other: length-prefixed MessagePack frames.

A frame is four bytes of length (big-endian) and one message. Orders and results travel
in lists, so that a busy moment costs one frame, not one a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from gossamer.records import Order, Result
from gossamer.runtime.worker_factory import WorkerConfig


class Begin(Struct, tag=True):
    """The first word of the hub."""

    config: WorkerConfig
    ledger: str


class Orders(Struct, tag=True):
    """Do these; and of these done before, no link need be sent again."""

    orders: list[Order]
    decided: list[int] = []


class Sync(Struct, tag=True):
    """Make what is archived durable, and say so."""

    number: int


class Close(Struct, tag=True):
    """Finish, and go."""


class Results(Struct, tag=True):
    """These are done."""

    results: list[Result]


class Sent(Struct, tag=True):
    """A request is on the wire."""

    order_id: int
    at: float


class Synced(Struct, tag=True):
    """What was archived before `Sync` is durable."""

    number: int


class Failed(Struct, tag=True):
    """The worker cannot go on."""

    error: str
    message: str


class Report(Struct, tag=True):
    """The last word of a worker."""

    cpu_seconds: float
    stall_p99_ms: float
    core_wait_p99_ms: float


Message: TypeAlias = Begin | Orders | Sync | Close | Results | Sent | Synced | Failed | Report

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def frame(message: Message) -> bytes:
    """Return a message ready to be written."""
    body = _encode(message)
    return len(body).to_bytes(4, "big") + body


class FrameReader:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes; return the messages that are whole now."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= 4:
            end = at + 4 + int.from_bytes(buffer[at : at + 4], "big")
            if len(buffer) < end:
                break
            yield _decode(memoryview(buffer)[at + 4 : end].tobytes())
            at = end
        del buffer[:at]
