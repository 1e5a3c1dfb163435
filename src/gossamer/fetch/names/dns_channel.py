"""Asks the DNS by c-ares, from the event loop.

A query always ends, by its deadline. c-ares is imported, in 6 ms, and reads its configuration with the first name that
is looked up: a crawl of addresses needs neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

import pycares
from msgspec import Struct

from gossamer.model.errors import UsageError
from gossamer.model.records import Outcome

_TICK_S: Final = 0.1  # how often c-ares checks its deadlines while it waits
_FLUSH_EVERY: Final = 500
_UNUSED_SERVER: Final = "127.0.0.1:9"  # the discard port; never queried
_NO_SUCH_NAME: Final = frozenset((pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_EBADNAME))


class DnsAnswer(Struct, frozen=True):
    """The end of a query. There are no addresses if the name has none of that kind, and unless the outcome is OK."""

    addresses: tuple[str, ...] = ()
    ttl_s: float = 0.0
    outcome: Outcome = Outcome.OK
    error: str = ""


OnAnswer: TypeAlias = Callable[[DnsAnswer], None]


class DnsChannel:
    """Sends queries, one at a time for a name and kind.

    `on_answer` is called exactly once per query, from within c-ares or `ask`, so it must not ask.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, server: str | None, deadline_s: float, tries: int) -> None:
        self._loop = loop
        self._readers: set[int] = set()
        self._writers: set[int] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._queries = 0
        self._waiting: dict[tuple[str, int], OnAnswer] = {}
        try:
            self._channel = pycares.Channel(
                flags=pycares.ARES_FLAG_STAYOPEN | pycares.ARES_FLAG_EDNS | pycares.ARES_FLAG_NOSEARCH,
                # c-ares doubles the wait with every try: 1/3 + 2/3 of the deadline for two.
                timeout=deadline_s / (2**tries - 1),
                tries=tries,
                servers=None if server is None else [server],
                sock_state_cb=self._on_socket,
            )
        except pycares.AresError as error:
            raise UsageError(f"--dns {server}: {error}; write HOST:PORT") from error
        self._servers = self._channel.servers

    def close(self) -> None:
        """End all queries; those who wait get DNS_FAILED."""
        if self._ticking is not None:
            self._ticking.cancel()
        self._channel.cancel()
        for fd in self._readers:
            self._loop.remove_reader(fd)
        for fd in self._writers:
            self._loop.remove_writer(fd)
        self._channel.close()

    def ask(self, host: str, kind: int, on_answer: OnAnswer) -> None:
        """Send a query for the addresses of a name: A or AAAA."""
        key = host, kind
        self._waiting[key] = on_answer
        self._queries += 1
        if self._queries % _FLUSH_EVERY == 0:
            self._flush()
        try:
            self._channel.query(host, kind, callback=partial(self._on_answer, key))
        except (pycares.AresError, UnicodeError, ValueError) as error:
            # For some bad names c-ares has called the callback as well.
            self._end(key, DnsAnswer(outcome=Outcome.DNS_NOT_FOUND, error=f"{host[:100]}: {error}"))
        if self._ticking is None:
            self._ticking = self._loop.call_later(_TICK_S, self._tick)

    def _flush(self) -> None:
        """Empty c-ares's own cache: it is unbounded, takes 1.2 KB per name and cannot be turned off from Python.

        c-ares does so whenever its list of servers changes.
        """
        self._channel.servers = [*self._servers, _UNUSED_SERVER]
        self._channel.servers = self._servers

    def _on_answer(self, key: tuple[str, int], result: pycares.DNSResult | None, status: int | None) -> None:
        host, kind = key
        if result is not None and (records := [record for record in result.answer if record.type == kind]):
            ttl = min(record.ttl for record in result.answer)
            answer = DnsAnswer(tuple(dict.fromkeys(_addresses(records))), ttl)
        elif status is None or status == pycares.errno.ARES_ENODATA:
            answer = DnsAnswer()
        else:
            outcome = Outcome.DNS_NOT_FOUND if status in _NO_SUCH_NAME else Outcome.DNS_FAILED
            answer = DnsAnswer(outcome=outcome, error=f"{host}: {_reason(status)}")
        self._end(key, answer)

    def _end(self, key: tuple[str, int], answer: DnsAnswer) -> None:
        on_answer = self._waiting.pop(key, None)
        if on_answer is not None:
            on_answer(answer)

    def _on_socket(self, fd: int, readable: bool, writable: bool) -> None:
        """c-ares reports what it waits for on a socket; neither means that it is about to be closed."""
        if readable and fd not in self._readers:
            self._readers.add(fd)
            self._loop.add_reader(fd, self._on_ready, fd, pycares.ARES_SOCKET_BAD)
        elif not readable and fd in self._readers:
            self._readers.discard(fd)
            self._loop.remove_reader(fd)
        if writable and fd not in self._writers:
            self._writers.add(fd)
            self._loop.add_writer(fd, self._on_ready, pycares.ARES_SOCKET_BAD, fd)
        elif not writable and fd in self._writers:
            self._writers.discard(fd)
            self._loop.remove_writer(fd)

    def _on_ready(self, readable: int, writable: int) -> None:
        self._channel.process_fd(readable, writable)

    def _tick(self) -> None:
        self._ticking = None
        self._on_ready(pycares.ARES_SOCKET_BAD, pycares.ARES_SOCKET_BAD)
        if self._waiting:
            self._ticking = self._loop.call_later(_TICK_S, self._tick)


def _reason(status: int) -> str:
    reason = pycares.errno.strerror(status)
    return reason if isinstance(reason, str) else reason.decode()


def _addresses(records: list[pycares.DNSRecord]) -> Iterator[str]:
    for record in records:
        if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData):
            yield record.data.addr
