"""When may a host be contacted that other crawls of this process contact, too?

Each crawl keeps its own delays. Here it learns of the requests of the others: a host is left alone for the longer of
the two delays, and has no more requests in flight than the crawl that asks may have. They take turns: a crawl that
had the last one lets another one that waits go first, until `GRACE_S` after it may.

Times are on one line for all crawls: each has its own clock, and `offset_s` is what that is ahead of the line. Nothing
here reads a clock. For crawls of one event loop: between `free_at` and `begin` nothing else may happen. About 1 µs per
request, and only where a program may run several crawls. Memory: what is older than `KEPT_S` is forgotten now and then.
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.politeness.arrival import MAX_TRANSIT_S
from gossamer.core.politeness.pace import MAX_DELAY_S

POLL_S = 0.1  # while another crawl's request is in flight: its end is not known before
GRACE_S = 0.5
KEPT_S = MAX_DELAY_S
MAX_HOSTS = 10_000  # of a crawl, before old ones are forgotten


class Contact(Struct):
    """What a crawl has to do with a host."""

    asked_at: float = 0.0  # the last request: the latest time at which the host can have had it
    next_at: float = 0.0  # no request of this crawl before this
    in_flight: int = 0
    begun_at: float = float("-inf")  # its last turn
    is_waiting: bool = False  # for its turn, because of others
    waits_until: float = 0.0


class HostContacts:
    """The hosts that the crawls of a process have contacted, by crawl; the first are those of crawls that are over."""

    def __init__(self) -> None:
        self.crawls: list[dict[str, Contact]] = [{}]


class CrawlContacts:
    """The same for one of the crawls, by its own clock."""

    def __init__(self, shared: HostContacts, offset_s: float) -> None:
        self._shared = shared
        self._offset_s = offset_s
        self._own: dict[str, Contact] = {}
        self._has_joined = False  # one that never begins leaves nothing behind

    def free_at(self, host: str, delay_s: float, connections: int, now: float) -> float:
        """Return when this crawl may contact a host, as far as the others are concerned; at most `now`: at once."""
        at = now - self._offset_s
        own = self._own.get(host)
        free_at = at
        for other in self._shared.crawls:
            contact = other.get(host)
            if other is self._own or contact is None:
                continue
            free_at = max(free_at, contact.next_at, contact.asked_at + delay_s)
            if contact.in_flight >= connections:
                free_at = max(free_at, at + POLL_S)
            if contact.is_waiting and own is not None and own.begun_at > contact.begun_at:
                free_at = max(free_at, contact.waits_until + GRACE_S)
        if free_at > at:
            own = self._own_contact(host, at)
            own.is_waiting = True
            own.waits_until = free_at
        return free_at + self._offset_s

    def begin(self, host: str, next_at: float, now: float) -> None:
        """Record a request that is made now; the host may not be asked again by this crawl before `next_at`."""
        contact = self._own_contact(host, now - self._offset_s)
        contact.in_flight += 1
        contact.begun_at = now - self._offset_s
        contact.is_waiting = False
        self._record(contact, now + MAX_TRANSIT_S, next_at)

    def end(self, host: str, asked_at: float, next_at: float) -> None:
        """Record that a request has ended; the host had it at `asked_at` at the latest."""
        contact = self._own.get(host)
        if contact is not None:
            contact.in_flight -= 1
            self._record(contact, asked_at, next_at)

    def close(self) -> None:
        """Record that the crawl is over: none of its requests is out any more. The delays last."""
        self._shared.crawls = [each for each in self._shared.crawls if each is not self._own]
        over = self._shared.crawls[0]
        for host, contact in self._own.items():
            last = over.get(host, contact)
            over[host] = Contact(max(last.asked_at, contact.asked_at), max(last.next_at, contact.next_at))
        if len(over) > MAX_HOSTS:
            _forget(over, max(contact.asked_at for contact in over.values()) - KEPT_S)
        self._own = {}

    def _record(self, contact: Contact, asked_at: float, next_at: float) -> None:
        contact.asked_at = asked_at - self._offset_s
        contact.next_at = next_at - self._offset_s

    def _own_contact(self, host: str, at: float) -> Contact:
        if not self._has_joined:
            self._has_joined = True
            self._shared.crawls.append(self._own)
        contact = self._own.get(host)
        if contact is None:
            if len(self._own) >= MAX_HOSTS:
                _forget(self._own, at - KEPT_S)
            contact = self._own[host] = Contact()
        return contact


def _forget(contacts: dict[str, Contact], before: float) -> None:
    for name in [name for name, each in contacts.items() if not each.in_flight and each.asked_at < before]:
        del contacts[name]
