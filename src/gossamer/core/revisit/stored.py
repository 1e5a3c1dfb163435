"""What the ledger stores in order to fetch URLs again, beside the state in a URL's own row.

The due index has two levels, so that it is read like the queue, by host, and one host with very many URLs does not
hold up the others of its shard: `due` has the URLs of a host by time, `due_hosts` the hosts of a shard by the time at
which the first of their URLs is due. Times are whole seconds, rounded up: nothing is fetched early.
"""

from __future__ import annotations

from msgspec import Struct, field

from gossamer.core.revisit.hints import HintKind, HintRecord
from gossamer.core.revisit.priors import Pool
from gossamer.core.url.identity import host_id, shard_of, shard_prefix
from gossamer.model.records import UrlId


class DueUrl(Struct, array_like=True, gc=False):
    id: UrlId
    at: int


class DueHost(Struct, array_like=True, gc=False):
    """A host, and when the first of its URLs is due; while they are in memory, when to look at it again."""

    host: str
    at: int
    is_loaded: bool = False  # its URLs are in the memory of a process


class HostVisits(Struct, array_like=True):
    """What was learned about a host's pages by visiting them again."""

    host: str
    due_at: int = 0  # of its entry in `due_hosts`; 0: it has none
    pool: Pool = field(default_factory=Pool)
    hints: list[HintRecord] = field(default_factory=lambda: [HintRecord() for _ in HintKind])
    held_until: int = 0  # 0, or no visit before this: its domain has had its share


class ShardVisits(Struct, array_like=True):
    """The pages of a shard that are fetched again, counted by what is believed of their rates."""

    shard: int
    cells: list[tuple[int, int, int, int]] = []  # class, two numbers of a cell, pages
    pool: Pool = field(default_factory=Pool)
    is_enrolled: bool = False  # what was fetched before pages were fetched again has been scheduled
    apart: list[tuple[int, int, int, int]] = []  # likewise, of domains that are held


def due_key(url_id: UrlId, at: int) -> bytes:
    """Return the key of a URL that is due: those of a host are adjacent, in order of time."""
    return url_id[:8] + at.to_bytes(5) + url_id[8:]


def due_host_key(host: str, at: int) -> bytes:
    """Return the key of a host with URLs that are due: those of a shard are adjacent, in order of time."""
    own = host_id(host)
    return shard_prefix(shard_of(own)) + at.to_bytes(5) + own
