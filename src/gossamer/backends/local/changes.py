"""What has changed since the last commit, so that reads see it before the disk has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gossamer.records import ContentRecord, DomainRecord, HostId, HostRecord, UrlId


@dataclass(slots=True)
class Changes:
    """One commit's worth of changes, by table. In `queue` and `sleeping` None removes an entry."""

    urls: dict[UrlId, bytes] = field(default_factory=dict)
    queue: dict[HostId, dict[bytes, bytes | None]] = field(default_factory=dict)
    hosts: dict[HostId, HostRecord] = field(default_factory=dict)
    domains: dict[str, DomainRecord] = field(default_factory=dict)
    robots: dict[HostId, dict[bytes, bytes]] = field(default_factory=dict)
    sleeping: dict[bytes, bytes | None] = field(default_factory=dict)
    contents: dict[bytes, ContentRecord] = field(default_factory=dict)
    archives: dict[str, int] = field(default_factory=dict)
    meta: dict[str, bytes] = field(default_factory=dict)
    encoded_hosts: list[tuple[bytes, bytes]] = field(default_factory=list)
    encoded_domains: list[tuple[bytes, bytes]] = field(default_factory=list)
