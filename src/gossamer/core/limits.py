"""Numbers that bound the frontier."""

from __future__ import annotations

from msgspec import Struct


class FrontierLimits(Struct, frozen=True):
    """Numbers that bound the frontier. None: no limit."""

    connections: int = 256
    max_pages: int | None = None
    max_pages_per_host: int | None = None
    max_pages_per_domain: int | None = None
    address_connections: int = 20
    domain_connections: int = 0
    address_delay_s: float = 0.0
    domain_delay_s: float = 0.0
    retry_wait_s: float = 2.0
    max_depth: int = 10
    max_hosts_in_memory: int = 50_000
    max_urls_in_memory: int = 400_000
    max_idle_hosts: int = 10_000  # that have nothing to do, kept for what is found next
    is_unreachable_robots_allowed: bool = False
