"""Which of some URLs are dead letters? Nearly all rows of a commit are queued links, which are none.

The letters of a host are read once, all together, and remembered; most hosts have none, and cost nothing from then on.
If a host has very many, it is asked for each URL. What this process writes is remembered, too. On many nodes a host may
have had another owner in between, so what was read counts for a while only; a letter that is missed then is found by
`verify`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeAlias

from msgspec import Struct

from gossamer.backends.cassandra.connect import Ring
from gossamer.backends.cassandra.writing import bucket_of, host_part
from gossamer.model.records import UrlId

MAX_READ = 1000  # letters of a host that are remembered
MAX_HOSTS = 50_000
MAX_REMEMBERED = 200_000  # letters of all hosts
VALID_S = 10.0  # on many nodes
_IDS_AT_ONCE = 100
_OF_HOST = """
    SELECT url_id, host, node FROM $keyspace.dead_letter_ids WHERE host_id = ? AND bucket IN ? LIMIT 1001
"""
_OF_IDS = """
    SELECT url_id, host, node FROM $keyspace.dead_letter_ids WHERE host_id = ? AND bucket = ? AND url_id IN ?
"""


class LetterPlace(Struct, frozen=True):
    """Where a dead letter is, and who wrote it."""

    url_id: UrlId
    host: str
    node: str


class _Host(Struct):
    """What is known about a host; None: it has too many letters to remember."""

    letters: dict[UrlId, LetterPlace] | None
    read_at: float


_ByHost: TypeAlias = Mapping[bytes, Sequence[UrlId]]


class KnownLetters:
    """The dead letters that were read or written. Used by one thread at a time."""

    def __init__(self, ring: Ring, buckets: int, now: Callable[[], float] = monotonic) -> None:
        self._ring = ring
        self._buckets = buckets
        self._now = now
        self._hosts: dict[bytes, _Host] = {}  # the one that was read first comes first
        self._count = 0  # letters of all of them
        self.is_shared = False  # by several nodes

    def among(self, ids: Iterable[UrlId]) -> list[LetterPlace]:
        """Return those of some URLs that are dead letters."""
        by_host: defaultdict[bytes, list[UrlId]] = defaultdict(list)
        for url_id in ids:
            by_host[host_part(url_id)].append(url_id)
        self._read([host for host in by_host if not self._is_known(host)])
        found: list[LetterPlace] = []
        many: dict[bytes, list[UrlId]] = {}
        for host, some in by_host.items():
            letters = self._hosts[host].letters
            if letters is None:
                many[host] = some
            elif letters:
                found += [letters[url_id] for url_id in some if url_id in letters]
        found += self._asked(many)
        self._shrink()
        return found

    def add(self, letters: Iterable[LetterPlace]) -> None:
        """Remember letters that are about to be written."""
        for letter in letters:
            known = self._hosts.get(host_part(letter.url_id))
            if known is not None and known.letters is not None:
                self._count += letter.url_id not in known.letters
                known.letters[letter.url_id] = letter

    def remove(self, ids: Iterable[UrlId]) -> None:
        """Forget letters that were removed."""
        for url_id in ids:
            known = self._hosts.get(host_part(url_id))
            if known is not None and known.letters is not None:
                self._count -= known.letters.pop(url_id, None) is not None

    def _is_known(self, host: bytes) -> bool:
        known = self._hosts.get(host)
        return known is not None and not (self.is_shared and self._now() - known.read_at > VALID_S)

    def _read(self, hosts: Sequence[bytes]) -> None:
        if not hosts:
            return
        read_at = self._now()
        statement = self._ring.prepare(_OF_HOST)
        buckets = list(range(self._buckets))
        rows = self._ring.run_all([(statement, (host, buckets)) for host in hosts])
        found: defaultdict[bytes, list[Any]] = defaultdict(list)
        for row in rows:
            found[host_part(row.url_id)].append(row)
        for host in hosts:
            self._drop(host)
            some = found.get(host, ())
            letters = {row.url_id: LetterPlace(row.url_id, row.host, row.node) for row in some}
            self._hosts[host] = _Host(letters if len(letters) <= MAX_READ else None, read_at)
            self._count += len(letters) if len(letters) <= MAX_READ else 0

    def _asked(self, many: _ByHost) -> list[LetterPlace]:
        """Return which of some URLs are letters, of hosts that have too many to remember."""
        by_partition: defaultdict[tuple[bytes, int], list[UrlId]] = defaultdict(list)
        for host, ids in many.items():
            for url_id in ids:
                by_partition[host, bucket_of(url_id, self._buckets)].append(url_id)
        if not by_partition:
            return []
        statement = self._ring.prepare(_OF_IDS)
        rows = self._ring.run_all([
            (statement, (*partition, some[start : start + _IDS_AT_ONCE]))
            for partition, some in by_partition.items()
            for start in range(0, len(some), _IDS_AT_ONCE)
        ])  # fmt: skip
        return [LetterPlace(row.url_id, row.host, row.node) for row in rows]

    def _shrink(self) -> None:
        while len(self._hosts) > MAX_HOSTS or self._count > MAX_REMEMBERED:
            self._drop(next(iter(self._hosts)))

    def _drop(self, host: bytes) -> None:
        known = self._hosts.pop(host, None)
        if known is not None and known.letters is not None:
            self._count -= len(known.letters)
