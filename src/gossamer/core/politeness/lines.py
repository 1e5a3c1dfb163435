"""Who is next of those that wait at a gate? Registrable domains take turns, whatever number of hosts each has there.

A line of one domain after the other, each with its hosts in order of arrival: who was served goes to the end. So a
domain with ten thousand names waits as long as one with a single name. Adding a host and removing the next cost O(1).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.core.frontier.workbench import HostSlot


class Line:
    """The hosts that wait at a gate."""

    __slots__ = ("_by_domain", "_count")

    def __init__(self) -> None:
        self._by_domain: OrderedDict[str, deque[HostSlot]] = OrderedDict()  # whose turn it is first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[HostSlot]:
        for hosts in self._by_domain.values():
            yield from hosts

    def append(self, host: HostSlot) -> None:
        """Add a host behind the others of its domain."""
        self._count += 1
        hosts = self._by_domain.get(host.domain.name)
        if hosts is None:
            self._by_domain[host.domain.name] = deque((host,))
        else:
            hosts.append(host)

    def remove(self, host: HostSlot) -> None:
        """Remove a host that leaves without having been served."""
        name = host.domain.name
        self._by_domain[name].remove(host)
        self._count -= 1
        if not self._by_domain[name]:
            del self._by_domain[name]

    def popleft(self) -> HostSlot:
        """Remove and return the first host of the domain whose turn it is."""
        return self._pop(next(iter(self._by_domain)))

    def pop_open(self, is_open: Callable[[str], bool]) -> HostSlot | None:
        """Remove and return the next host of a domain to which the gate is open; None if there is none.

        A domain to which it is closed has several requests there, so there are few of them.
        """
        for name in self._by_domain:
            if is_open(name):
                return self._pop(name)
        return None

    def _pop(self, name: str) -> HostSlot:
        hosts = self._by_domain[name]
        host = hosts.popleft()
        self._count -= 1
        if hosts:
            self._by_domain.move_to_end(name)
        else:
            del self._by_domain[name]
        return host
