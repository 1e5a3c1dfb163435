"""The politeness that settings promise: recorded when a run starts, and checked by the audit."""

from __future__ import annotations

from gossamer.model.events import PacePromise, Promises
from gossamer.settings.model import RobotsUnreachable, Settings


def promises_of(settings: Settings) -> Promises:
    """Return the promises that follow from settings."""
    return Promises(
        delay_s=settings.politeness_ms / 1000,
        host_connections=settings.host_connections,
        domain_delay_s=settings.domain_politeness_ms / 1000,
        address_delay_s=settings.address_politeness_ms / 1000,
        address_connections=settings.address_connections,
        allows_unreachable_robots=settings.robots_unreachable is RobotsUnreachable.ALLOW,
        longest_request_s=3 * settings.timeout,
        own_hosts=settings.own_host,
        shared_connections=_shared_connections(settings),
        pace=tuple(PacePromise(rule.host, rule.delay, rule.connections) for rule in settings.pace),
    )


def _shared_connections(settings: Settings) -> int:
    """Return how many requests may be in flight to a domain while others have work; 0: any number."""
    if settings.domain_share >= 100 or not settings.workers:  # as many workers as the machine has cores
        return 0
    return max(1, settings.connections * settings.workers * settings.domain_share // 100)
