"""What the engine needs from the outside, as contracts. One suite a port proves every backend the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gossamer.records import (
    ArchiveSpan,
    Change,
    ChangeKind,
    ContentRecord,
    DomainRecord,
    HostId,
    HostRecord,
    QueuedUrl,
    RobotsRecord,
    Similar,
    UrlId,
    UrlRecord,
)


class Ledger(Protocol):
    """The crawl's memory: seen URLs, queues, hosts, catalog.

    Changes are visible to every later read at once, and durable after the next `commit`:
    all changes up to a commit become durable together or not at all. One process writes.
    Lists keep the order of their arguments. Nothing here waits for a disk but `commit`.
    """

    def admit(self, urls: Sequence[QueuedUrl]) -> list[QueuedUrl]:
        """Queue the URLs whose id was never admitted before; return them. A repeat within the list counts once."""
        ...

    def is_seen(self, url_id: UrlId) -> bool:
        """Tell whether a URL was ever admitted."""
        ...

    def requeue(self, url: QueuedUrl, record: UrlRecord | None = None) -> None:
        """Put a URL (back) into its host's queue at its priority and seq, replacing what stood there."""
        ...

    def finish(self, url: QueuedUrl, record: UrlRecord) -> None:
        """Take a URL out of its queue; `record` is what the catalog says of it from now on."""
        ...

    def read_queue(self, host_id: HostId, after: tuple[int, int] | None, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host beyond a priority and seq, in order. None: from the first."""
        ...

    def last(self, host_id: HostId, count: int) -> list[QueuedUrl]:
        """Return up to `count` queued URLs of a host from the end of its queue, last first."""
        ...

    def kill_queue(self, host_id: HostId, outcome: str, error: str, now: float) -> int:
        """Move all that is queued at a host to the dead letters; return how many."""
        ...

    def look_up(self, url_id: UrlId) -> UrlRecord | None:
        """Return the catalog's row of a URL."""
        ...

    def host(self, name: str) -> HostRecord | None:
        """Return what is known of a host."""
        ...

    def domain(self, name: str) -> DomainRecord | None:
        """Return what is known of a registrable domain."""
        ...

    def robots(self, host_id: HostId) -> list[RobotsRecord]:
        """Return robots.txt of each origin of a host."""
        ...

    def put_host(self, record: HostRecord) -> None:
        """Keep a host. The record is read when it is written: a later change before the commit counts."""
        ...

    def put_domain(self, record: DomainRecord) -> None:
        """Keep a registrable domain."""
        ...

    def put_robots(self, record: RobotsRecord) -> None:
        """Keep robots.txt of an origin."""
        ...

    def swap_out(self, name: str, until: float) -> None:
        """Let a host sleep until a time; it has one such time at most."""
        ...

    def swap_in_due(self, now: float, count: int) -> list[str]:
        """Return up to `count` sleeping hosts whose time has come, soonest first; they sleep no more."""
        ...

    def swapped_out(self) -> tuple[int, float]:
        """Return how many hosts sleep, and when the first is due (infinity where none)."""
        ...

    def first_with_content(self, content_hash: bytes) -> ContentRecord | None:
        """Return the first page that had this content."""
        ...

    def put_content(self, content_hash: bytes, page: ContentRecord) -> ContentRecord | None:
        """Name the first page that has this content; return the one that is known already, which stays, or None."""
        ...

    def note_change(self, url_id: UrlId, kind: ChangeKind) -> None:
        """Append to the change feed. Numbers start at 1 and grow by 1 over all runs."""
        ...

    def changes(self, after: int, count: int) -> list[Change]:
        """Return up to `count` entries of the change feed beyond a number, in order."""
        ...

    def last_change(self) -> int:
        """Return the number of the last entry of the change feed; 0 where there is none."""
        ...

    def use_signatures(self, edition: str) -> None:
        """Compare pages by signatures of this edition from now on; those of any other are never compared.

        Comes before the two below. The same edition as before goes on with what was kept.
        """
        ...

    def most_similar(self, signature: bytes) -> Similar | None:
        """Return the page whose kept signature is most like this one, of equals the first; None where none is near."""
        ...

    def put_signature(self, url_id: UrlId, signature: bytes) -> None:
        """Keep the signature of a page that repeats no other."""
        ...

    def put_archive_end(self, file: str, end: int) -> None:
        """Note how far an archive file belongs to what is committed."""
        ...

    def archive_ends(self) -> dict[str, int]:
        """Return the committed length of every archive file."""
        ...

    def get_meta(self, name: str) -> bytes | None:
        """Return a named value."""
        ...

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a named value."""
        ...

    def hosts(self) -> Iterator[HostRecord]:
        """Return all hosts, in no particular order."""
        ...

    def domains(self) -> Iterator[DomainRecord]:
        """Return all registrable domains, in no particular order."""
        ...

    def urls(self, host_id: HostId | None = None) -> Iterator[tuple[UrlId, UrlRecord]]:
        """Return the committed catalog, or a host's part of it, in order of id."""
        ...

    def commit(self) -> None:
        """Make all changes so far durable."""
        ...

    def close(self) -> None:
        """Commit and let go."""
        ...


class ArchiveLike(Protocol):
    """Where records go: see `gossamer.archive.writer`."""

    def sync(self) -> None:
        """Make what was written durable."""
        ...


__all__ = ["ArchiveLike", "ArchiveSpan", "Ledger"]
