"""Which bytes identify a host, a domain and a URL, and which shard do they belong to?

    host id    8 bytes    12 bits of the hash of the registrable domain, then 52 bits of the hash of the host name
    domain id  8 bytes    the same, made of the domain's own name
    URL id    16 bytes    its host's id, then the hash of its key

The first 12 bits are the *shard*: the unit that has one owner in a cluster. They come from the
registrable domain, so that budgets, fairness and pace of a domain never need another node; and
they come first, so that a shard is a key range in every sorted store. The number of shards never
changes: that would move every row. The rules of a crawl for regions decide in which range of shards a domain is
(`core/cluster/regions`).

The hash is BLAKE2b with a secret key of the crawl, so nobody outside can make a name whose id is another's. Crawls that
were begun by an earlier version have ids by xxh3, which has no key: there, such names can be made in seconds. So in no
crawl does an id alone decide that two names are the same (docs/decisions/056-identity-cannot-be-forged.md):

- A host or domain whose id another one has gets its next *candidate*, which depends on the key; its row has the number
  (`probe`), and `Identity.assign` records it in memory.
- A URL whose id another one has gets its next candidate, too. Its row is found by comparing the URL in each row
  (`id_in`); only a ledger in which this ever happened (`Candidates.are_used`) is searched for more than the first.

`current` is the identity of the crawl that this task or thread works on. Opening a ledger sets it (`use`): for the task
that opens it and all that it starts, and for threads that belong to no task. A program may so run several crawls at
once; what reads two of them asks each ledger for ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from hashlib import blake2b
from itertools import groupby
from typing import Protocol

from xxhash import xxh3_64_digest

from gossamer.core.url.domains import registrable_domain
from gossamer.model.records import HostId, UrlId
from gossamer.model.state import IdentityRecord

SHARD_BITS = 12
SHARD_COUNT = 1 << SHARD_BITS
AFTER_ALL = b"\xff" * 33  # longer than every key
SHARD_PREFIX_BYTES = 2  # 12 bits and 4 zeros
KEY_BYTES = 16
MAX_CANDIDATES = 64  # of a name: with 64 bits a second one is rare, and a third one unheard of
_NAME_BITS = 64 - SHARD_BITS
_NAME_MASK = (1 << _NAME_BITS) - 1
_PREFIX_SHIFT = 8 * SHARD_PREFIX_BYTES - SHARD_BITS
_CACHED_HOSTS = 100_000


class Division(Protocol):
    """Decides which shards a domain may be in: see `core/cluster/regions`."""

    def shard_of(self, domain: str, digest: int) -> int:
        """Return the shard of a registrable domain, whose hash has 64 bits."""
        ...


class Identity:
    """Makes the ids of one crawl."""

    def __init__(
        self, record: IdentityRecord | None = None, division: Division | None = None, *, mask: int = (1 << 64) - 1
    ) -> None:
        self.record = record or IdentityRecord()
        self.division = division
        self._mask = mask.to_bytes(8, "big")  # which bits of a hash count: fewer in tests, so that ids collide
        self._is_narrow = mask != (1 << 64) - 1
        self._bases = [_base(self.record.key, 0)]  # what all hashes begin with, by candidate
        self.first_digest: Callable[[bytes], bytes] = self._first_digest()
        self.hosts: dict[str, HostId] = {}  # a cache
        self._assigned: dict[tuple[str, bool], int] = {}  # hosts and domains with another than the first candidate

    @property
    def may_collide(self) -> bool:
        """Whether somebody may have made a name whose first candidate is another's."""
        return self.record.is_unkeyed or self._is_narrow

    @property
    def has_assigned(self) -> bool:
        """Whether a host or domain has another than its first candidate."""
        return bool(self._assigned)

    # -- hashes -----------------------------------------------------------------------------------

    def _first_digest(self) -> Callable[[bytes], bytes]:
        """Return what makes the first candidate of something: 8 bytes, in 0.2 µs."""
        if self._is_narrow:
            return self.digest
        if self.record.is_unkeyed:
            return xxh3_64_digest
        copy = self._bases[0].copy

        def first_digest(data: bytes) -> bytes:
            keyed = copy()
            keyed.update(data)
            return keyed.digest()

        return first_digest

    def digest(self, data: bytes, candidate: int = 0) -> bytes:
        """Return the 8 bytes by which something is identified."""
        if not candidate and self.record.is_unkeyed:
            found = xxh3_64_digest(data)
        else:
            while candidate >= len(self._bases):
                self._bases.append(_base(self.record.key, len(self._bases)))
            keyed = self._bases[candidate].copy()
            keyed.update(data)
            found = keyed.digest()
        return bytes(a & b for a, b in zip(found, self._mask, strict=True)) if self._is_narrow else found

    def shard_of_domain(self, domain: str) -> int:
        digest = int.from_bytes(self.digest(domain.encode()), "big")
        return digest >> _NAME_BITS if self.division is None else self.division.shard_of(domain, digest)

    # -- hosts and domains ------------------------------------------------------------------------

    def host_id(self, host: str) -> HostId:
        """Return the id of a host. 0.1 µs if it is cached, else 3 µs."""
        known = self.hosts.get(host)
        if known is None:
            known = self.host_candidate(host, self._assigned.get((host.rstrip("."), False), 0))
            if len(self.hosts) >= _CACHED_HOSTS:
                self.hosts.clear()
            self.hosts[host] = known
        return known

    def domain_id(self, domain: str) -> bytes:
        return self._id_of(self.shard_of_domain(domain), domain, self._assigned.get((domain, True), 0))

    def host_candidate(self, host: str, number: int) -> HostId:
        """Return the id that a host has if others have those before."""
        name = host.rstrip(".")
        return self._id_of(self.shard_of_domain(registrable_domain(name)), name, number)

    def domain_candidate(self, domain: str, number: int) -> bytes:
        return self._id_of(self.shard_of_domain(domain), domain, number)

    def id_in_shard(self, shard: int, name: str, probe: int = 0) -> bytes:
        """Return the id that a host or domain has in a shard, whether it belongs there or not."""
        return self._id_of(shard, name.rstrip("."), probe)

    def assign(self, name: str, number: int, *, is_domain: bool = False) -> None:
        """Record that a host or domain has another than its first candidate."""
        if number:
            self._assigned[name.rstrip("."), is_domain] = number
            self.hosts.pop(name, None)

    def probe_of(self, name: str, *, is_domain: bool = False) -> int:
        """Return the number of the candidate that a host or domain has."""
        return self._assigned.get((name.rstrip("."), is_domain), 0)

    def forget_hosts(self) -> None:
        """Forget cached ids: a domain has another home."""
        self.hosts.clear()

    def _id_of(self, shard: int, name: str, number: int) -> bytes:
        digest = int.from_bytes(self.digest(name.encode(), number), "big")
        return (shard << _NAME_BITS | digest & _NAME_MASK).to_bytes(8, "big")

    # -- URLs -------------------------------------------------------------------------------------

    def url_candidate(self, host: HostId, key: str, number: int) -> UrlId:
        """Return the id that a URL has if others have those before."""
        return host + self.digest(key.encode(), number)


def _base(key: bytes, candidate: int) -> blake2b:
    """Return the hash of a candidate's number, which what is identified is added to.

    RFC 7693 has the key in a block of its own. With the first byte after it that block is done, once for all.
    """
    base = blake2b(digest_size=8, key=key)
    base.update(bytes((candidate,)))
    return base


_process = Identity()
_current: ContextVar[Identity | None] = ContextVar("identity", default=None)


def current() -> Identity:
    """Return the identity of the crawl that this task or thread works on."""
    return _current.get() or _process


def use(identity: Identity) -> None:
    """Set the identity: for this task and what it starts from now on, and for threads that belong to no task."""
    global _process  # noqa: PLW0603 - a thread that was started by a library has no context
    _process = identity
    _current.set(identity)


def divide(division: Division | None) -> None:
    """Set how the crawl divides its shards between regions; None: it has none. See `settings.regions.use_regions`."""
    now = current()
    if division is not now.division:
        use(Identity(now.record, division))


def with_record(record: IdentityRecord) -> Identity:
    """Return the current identity if this is its record, or another one, divided in the same way."""
    now = current()
    return now if now.record == record else Identity(record, now.division)


def shard_of(key: bytes) -> int:
    """Return the shard of a host id, domain id, URL id, or any key that begins with a shard prefix."""
    return (key[0] << 4) | (key[1] >> 4)


def shard_prefix(shard: int) -> bytes:
    """Return the first bytes of the keys of a table whose keys do not begin with an id."""
    return (shard << _PREFIX_SHIFT).to_bytes(SHARD_PREFIX_BYTES, "big")


def shard_range(shard: int) -> tuple[bytes, bytes | None]:
    """Return the first key that a shard can have, and the first key after it (None for the last shard)."""
    end = shard_prefix(shard + 1) if shard + 1 < SHARD_COUNT else None
    return shard_prefix(shard), end


def key_ranges(shards: Collection[int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key ranges of shards, each with the first key after it; those of adjacent shards are one."""
    for _, group in groupby(enumerate(sorted(shards)), lambda each: each[1] - each[0]):
        some = [shard for _, shard in group]
        yield shard_range(some[0])[0], shard_range(some[-1])[1] or AFTER_ALL


# -- by the current identity ----------------------------------------------------------------------


def shard_of_domain(domain: str) -> int:
    return current().shard_of_domain(domain)


def forget_host_ids() -> None:
    """Forget cached ids: a domain has another home."""
    current().forget_hosts()


def id_in_shard(shard: int, name: str, probe: int = 0) -> bytes:
    """Return the id that a host or domain has in a shard, whether it belongs there or not."""
    return current().id_in_shard(shard, name, probe)


def host_id(host: str) -> HostId:
    """Return the id of a host."""
    identity = _current.get() or _process
    return identity.hosts.get(host) or identity.host_id(host)


def domain_id(domain: str) -> bytes:
    return current().domain_id(domain)


def digest(text: str) -> bytes:
    """Return the 8 bytes by which a text is identified in keys of the ledger."""
    return current().digest(text.encode())


def url_id_from(host: HostId, key: str) -> UrlId:
    return host + (_current.get() or _process).first_digest(key.encode())


def first_free(candidate: Callable[[int], bytes], name_at: Callable[[bytes], str], name: str) -> int:
    """Return the number of the first candidate that no other name has; `name_at` is empty if nothing has an id."""
    for number in range(MAX_CANDIDATES):
        if name_at(candidate(number)) in ("", name):
            return number
    raise AssertionError(f"{MAX_CANDIDATES} ids of {name} belong to others: the hash is broken")
