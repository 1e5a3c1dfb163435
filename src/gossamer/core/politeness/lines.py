"""Who is next of those that wait at a gate? Registrable domains get the same time there, however they spend it.

By turns alone, a hundred domains whose requests take two seconds would leave a neighbour whose requests take 50 ms one
of them every ten seconds. So a line is a fair queue: a domain enters it with a tag, the line's own time plus the time
that a request of its host is expected to take (`EXPECTED_S` if that is not known), and the lowest tag is next; the
line's time is the tag that was served last. Within a domain hosts are served in order of arrival, so that one with ten
thousand names waits as long as one with a single name. Nobody starves: whoever waits is overtaken by others for as long
as its own request takes. Adding a host and removing the next cost O(log domains).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.core.frontier.workbench import HostSlot

EXPECTED_S = 5.0  # of a host of which nothing is known: more than any that is not slow (`gates.SLOW_S`)
MIN_S = 0.001


class Line:
    """The hosts that wait at a gate."""

    __slots__ = ("_by_domain", "_count", "_entries", "_tags", "_time_s")

    def __init__(self) -> None:
        self._by_domain: dict[str, deque[HostSlot]] = {}
        self._tags: list[tuple[float, int, str]] = []  # a heap: one entry per domain, some of domains that have left
        self._entries = 0
        self._count = 0
        self._time_s = 0.0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[HostSlot]:
        for hosts in self._by_domain.values():
            yield from hosts

    def append(self, host: HostSlot) -> None:
        """Add a host behind the others of its domain."""
        self._count += 1
        name = host.domain.name
        hosts = self._by_domain.get(name)
        if hosts is None:
            self._by_domain[name] = deque((host,))
            self._tag(host)
        else:
            hosts.append(host)

    def _tag(self, host: HostSlot) -> None:
        expected_s = max(MIN_S, host.held_s or host.domain.held_s or EXPECTED_S)
        self._entries += 1
        heappush(self._tags, (self._time_s + expected_s, self._entries, host.domain.name))

    def remove(self, host: HostSlot) -> None:
        """Remove a host that leaves without having been served."""
        name = host.domain.name
        self._by_domain[name].remove(host)
        self._count -= 1
        if not self._by_domain[name]:
            del self._by_domain[name]
            self._tags = [each for each in self._tags if each[2] != name]
            self._tags.sort()

    def popleft(self) -> HostSlot:
        """Remove and return the first host of the domain that is next."""
        return self._pop(*heappop(self._tags))

    def pop_open(self, is_open: Callable[[str], bool]) -> HostSlot | None:
        """Remove and return the next host of a domain to which the gate is open; None if there is none.

        A domain to which it is closed has several requests there, so there are few of them.
        """
        closed: list[tuple[float, int, str]] = []
        host: HostSlot | None = None
        while self._tags:
            entry = heappop(self._tags)
            if is_open(entry[2]):
                host = self._pop(*entry)
                break
            closed.append(entry)
        for entry in closed:
            heappush(self._tags, entry)
        return host

    def _pop(self, tag_s: float, _: int, name: str) -> HostSlot:
        """Remove and return the first host of a domain whose entry was removed."""
        hosts = self._by_domain[name]
        host = hosts.popleft()
        self._count -= 1
        self._time_s = max(self._time_s, tag_s)
        if hosts:
            self._tag(hosts[0])
        else:
            del self._by_domain[name]
        if not self._count:
            self._time_s = 0.0
        return host
