"""In what order are URLs fetched? By priority and arrival within a host, by standing between hosts.

A priority is an integer computed once, when the URL is admitted; lower is sooner. A standing
is computed whenever a host becomes ready. Pages come before documents and media in every
order, within a host and between hosts: the priority of those is demoted by more than anything
else can add, and so is the standing of a host that has nothing else left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from gossamer.core.links.scope import DEMOTED_EXTENSIONS, SKIPPED_EXTENSIONS, extension_of
from gossamer.model.records import UrlId

Standing: TypeAlias = tuple[int, int, int]

DEMOTION = 1 << 24  # more than any depth, score or chance
YOUNG_DOMAIN_PAGES = 10
# Skipped extensions occur all the same: as seeds, and if the scope accepts them.
_LATE_EXTENSIONS = DEMOTED_EXTENSIONS | SKIPPED_EXTENSIONS


class QueueOrder(StrEnum):
    BREADTH = "breadth"
    SCORE = "score"
    RANDOM = "random"
    TIERS = "tiers"


class Ordering(Struct, frozen=True):
    """One queue order: the priority of a URL, the standing of a ready host, and the lane it waits in."""

    priority: Callable[[str, UrlId, int], int]  # url, id, depth
    standing: Callable[[int, int, int], Standing]  # pages of the domain, priority and seq of the host's first URL
    lane_weights: tuple[int, ...] = (1,)

    def lane(self, host_rank: float) -> int:
        """Return the lane of a host by its rank from 0 to 1; lane 0 is for the highest."""
        lanes = len(self.lane_weights)
        return min(lanes - 1, int((1.0 - host_rank) * lanes))


def _demotion(url: str) -> int:
    return DEMOTION if extension_of(url) in _LATE_EXTENSIONS else 0


def _priority_by_depth(url: str, _id: UrlId, depth: int) -> int:
    return depth + _demotion(url)


def _breadth_standing(domain_pages: int, priority: int, seq: int) -> Standing:
    return (domain_pages if priority < DEMOTION else domain_pages + DEMOTION), priority, seq


def score(url: str, depth: int) -> int:
    """Return the score of a URL from 0 to 100 before the bonus for young domains."""
    return max(0, 100 - _lost_points(url, depth))


def _lost_points(url: str, depth: int) -> int:
    lost = 10 * depth
    if extension_of(url) in _LATE_EXTENSIONS:
        lost += 20
    query = url.partition("?")[2]
    if len(query) > 50:
        lost += 10
    if len(url) > 100:
        lost += 5
    return lost


def _priority_by_score(url: str, _id: UrlId, depth: int) -> int:
    # Not clamped yet: the bonus is added first.
    return _lost_points(url, depth) + _demotion(url)


def _score_standing(domain_pages: int, priority: int, seq: int) -> Standing:
    bonus = 5 if domain_pages < YOUNG_DOMAIN_PAGES else 0
    demotion = 0 if priority < DEMOTION else DEMOTION
    return demotion + max(0, min(100, priority - demotion - bonus)), seq, 0


def _arrival_standing(_domain_pages: int, priority: int, seq: int) -> Standing:
    return priority, seq, 0


def ordering(name: QueueOrder, seed: int = 0) -> Ordering:
    """Return the order of that name; `seed` decides the random one."""

    def priority_by_chance(url: str, _url_id: UrlId, _depth: int) -> int:
        # Not of the id, which is another in every crawl. Only who owns the host may want another order.
        return (xxh3_64_intdigest(url.encode(), seed) >> 40) + _demotion(url)

    orders: Mapping[QueueOrder, Ordering] = {
        QueueOrder.BREADTH: Ordering(_priority_by_depth, _breadth_standing),
        QueueOrder.SCORE: Ordering(_priority_by_score, _score_standing),
        QueueOrder.RANDOM: Ordering(priority_by_chance, _arrival_standing),
        # Six turns for the best third of the hosts, three for the middle, one for the rest: none starves.
        QueueOrder.TIERS: Ordering(_priority_by_depth, _arrival_standing, lane_weights=(6, 3, 1)),
    }
    return orders[name]
