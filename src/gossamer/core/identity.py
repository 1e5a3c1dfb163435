"""Which bytes identify a host, a domain and a URL, and which shard do they belong to?

    host id    8 bytes    12 bits of the hash of the registrable domain, then 52 bits of the hash of the host name
    domain id  8 bytes    the same, made of the domain's own name
    URL id    16 bytes    its host's id, then the hash of its key

The first 12 bits are the *shard*: the unit that has one owner in a cluster. They come from the
registrable domain, so that budgets, fairness and pace of a domain never need another node; and
they come first, so that a shard is a key range in every sorted store. The number of shards never
changes: that would move every row. The rules of a crawl for regions decide in which range of shards a domain is
(`core/regions`); `divide` sets them, once per process and before any id is made.

Two hosts of one shard share an id if 52 bits of their hashes are equal. xxh3 is not a cryptographic
hash, so such a name can be constructed. A host's row contains its name: `Admission` compares it and
refuses the second name, so colliding hosts are detected and never merged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Protocol

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from gossamer.core.domains import registrable_domain
from gossamer.records import HostId, UrlId

SHARD_BITS = 12
SHARD_COUNT = 1 << SHARD_BITS
AFTER_ALL = b"\xff" * 33  # longer than every key
SHARD_PREFIX_BYTES = 2  # 12 bits and 4 zeros
_NAME_BITS = 64 - SHARD_BITS
_NAME_MASK = (1 << _NAME_BITS) - 1
_PREFIX_SHIFT = 8 * SHARD_PREFIX_BYTES - SHARD_BITS


class Division(Protocol):
    """Decides which shards a domain may be in: see `core/regions`."""

    def shard_of(self, domain: str, digest: int) -> int:
        """Return the shard of a registrable domain, whose hash has 64 bits."""
        ...


_division: Division | None = None


def divide(division: Division | None) -> None:
    """Set how the crawl that this process works on divides its shards between regions; None: it has none.

    Ids are made of names in a hundred places, so this belongs to the process and not to an object: a process works on
    one crawl at a time. Whatever opens a crawl sets it first: `settings.regions.use_regions`.
    """
    global _division  # noqa: PLW0603 - see above
    if division is not _division:
        _division = division
        host_id.cache_clear()


def shard_of_domain(domain: str) -> int:
    """Return the shard of a registrable domain."""
    digest = xxh3_64_intdigest(domain.encode())
    return digest >> _NAME_BITS if _division is None else _division.shard_of(domain, digest)


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


def forget_host_ids() -> None:
    """Make the ids of hosts anew: a domain has another home."""
    host_id.cache_clear()


def id_in_shard(shard: int, name: str) -> bytes:
    """Return the id that a host or domain has in a shard, whether it belongs there or not."""
    return _id_of(shard, name.rstrip("."))


def _id_of(shard: int, name: str) -> bytes:
    return (shard << _NAME_BITS | xxh3_64_intdigest(name.encode()) & _NAME_MASK).to_bytes(8, "big")


@lru_cache(maxsize=100_000)
def host_id(host: str) -> HostId:
    """Return the identity of a host. 0.1 µs if it is cached, else 2 µs."""
    name = host.rstrip(".")
    return _id_of(shard_of_domain(registrable_domain(name)), name)


def domain_id(domain: str) -> bytes:
    """Return the identity of a registrable domain."""
    return _id_of(shard_of_domain(domain), domain)


def url_id_from(host: HostId, key: str) -> UrlId:
    """Return the identity of a URL from its host's and its key."""
    return host + xxh3_64_digest(key.encode())
