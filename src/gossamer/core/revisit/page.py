"""What is stored of a page to decide when it is visited again, and how a visit changes it: 16 bytes per URL.

| bytes | field |
|---|---|
| 2 + 2 | shape and days of the belief about its rate, as logarithms in steps of 0.02 % and 0.03 % |
| 4 | when it was visited last, seconds of the epoch, until 2106 |
| 4 | the interval it waits, in seconds |
| 1 | its streak: changes in a row, or visits without one |
| 1 | class, whether the operator has set that, whether it was visited twice, is a seed, counts apart |
| 1 | changes that brought links, misses in a row |
| 1 | not used yet |

The two numbers of the belief are sufficient for all that was seen (see `rate`), so no history is needed. An estimate
that counts visits and changes would need as much, and one that is a most likely value alone could not tell a page
that was visited once from one that was visited fifty times.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from math import exp, log

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.revisit.classes import PageClass, class_of, counted_links
from gossamer.core.revisit.gone import Absence
from gossamer.core.revisit.plain_rule import counted_streak
from gossamer.core.revisit.rate import (
    MAX_DAYS,
    MAX_SHAPE,
    MIN_DAYS,
    MIN_SHAPE,
    Rate,
    changed,
    changed_at,
    first_seen,
    unchanged,
)

PACKED_BYTES = 16
MAX_MISSES = 15
DAY_S = 86_400.0
_LAYOUT = struct.Struct("<HHIIbBBx")
_STEPS = 65_535
_SHAPE_LOGS = (log(MIN_SHAPE), log(MAX_SHAPE + 1))
_DAYS_LOGS = (log(MIN_DAYS), log(10 * MAX_DAYS))
_MAX_U32 = 0xFFFFFFFF


class VisitFound(StrEnum):
    """What a visit found. A redirect is changed if its target is another one."""

    CHANGED = "changed"
    SAME = "same"
    MISSING = "missing"
    GONE = "gone"
    FAILED = "failed"  # no answer, or 5xx: it says nothing about the page

    @property
    def word(self) -> str:
        """What everything shows: a page is gone with 404 and with 410, though only the latter is final at once."""
        return "gone" if self is VisitFound.MISSING else self.value


class Visit(Struct, frozen=True, gc=False):
    at: float
    found: VisitFound
    brought_links: bool = False  # a change with links to pages that were not known
    modified_at: float = 0.0  # the time of the change, if the server gives it
    modified_trust: float = 0.0  # of that host's times, see `hints`
    host_rank: float = 0.0


class PageState(Struct, frozen=True, gc=False):
    """What is known of a page."""

    rate: Rate
    visited_at: float
    interval_days: float = 0.0
    streak: int = 0
    page_class: PageClass = PageClass.STATIC
    is_class_set: bool = False
    is_learned: bool = False  # False: the belief is only the prior
    is_seed: bool = False
    links: int = 0
    misses: int = 0
    is_apart: bool = False  # its domain is held, see `domain_shares`: it is in a census of its own

    def packed(self) -> bytes:
        bits = self.page_class | self.is_class_set << 2 | self.is_learned << 3 | self.is_seed << 4 | self.is_apart << 5
        return _LAYOUT.pack(
            _code(self.rate.shape, _SHAPE_LOGS),
            _code(self.rate.days, _DAYS_LOGS),
            min(max(int(self.visited_at), 0), _MAX_U32),
            min(max(round(self.interval_days * DAY_S), 0), _MAX_U32),
            self.streak,
            bits,
            self.links << 4 | min(self.misses, MAX_MISSES),
        )


def unpacked(stored: bytes) -> PageState:
    shape, days, visited_at, interval_s, streak, bits, counts = _LAYOUT.unpack(stored)
    return PageState(
        rate=Rate(_value(shape, _SHAPE_LOGS), _value(days, _DAYS_LOGS)),
        visited_at=float(visited_at),
        interval_days=interval_s / DAY_S,
        streak=streak,
        page_class=PageClass(bits & 3),
        is_class_set=bool(bits & 4),
        is_learned=bool(bits & 8),
        is_seed=bool(bits & 16),
        links=counts >> 4,
        misses=counts & 15,
        is_apart=bool(bits & 32),
    )


def first_state(visit: Visit, prior: Rate, *, set_class: PageClass | None = None, is_seed: bool = False) -> PageState:
    """Return what is known of a page after its first visit; a time of its last change counts as far as it is trusted.

    If a time of change counts, the prior stays; otherwise it is replaced at the second visit, see `after_visit`.
    """
    is_given = 0 < visit.modified_at <= visit.at and visit.modified_trust > 0
    age_days = (visit.at - visit.modified_at) / DAY_S
    return PageState(
        rate=first_seen(prior, age_days, visit.modified_trust) if is_given else prior,
        visited_at=visit.at,
        page_class=PageClass.STATIC if set_class is None else set_class,
        is_class_set=set_class is not None,
        is_learned=is_given,
        is_seed=is_seed,
    )


def after_visit(state: PageState, visit: Visit, prior: Rate) -> PageState:
    """Return what is known after a visit.

    `prior` is what is expected of pages like it now; it replaces the one of a page that was not visited again yet, so
    that what was learned from its host's other pages meanwhile counts.
    """
    if visit.found is VisitFound.FAILED:
        return state
    if visit.found in (VisitFound.MISSING, VisitFound.GONE):
        return replace(state, misses=min(state.misses + 1, MAX_MISSES), visited_at=visit.at)
    has_changed = visit.found is VisitFound.CHANGED
    elapsed = max(visit.at - state.visited_at, 0.0) / DAY_S
    rate = state.rate if state.is_learned else prior
    if not has_changed:
        rate = unchanged(rate, elapsed)
    elif state.visited_at < visit.modified_at <= visit.at and visit.modified_trust > 0:
        rate = changed_at(rate, elapsed, (visit.at - visit.modified_at) / DAY_S, visit.modified_trust)
    else:
        rate = changed(rate, elapsed)
    links = counted_links(state.links, visit.brought_links) if has_changed else state.links
    streak = counted_streak(state.streak, has_changed)
    page_class = state.page_class
    if not state.is_class_set:
        page_class = class_of(page_class, rate, streak, links, visit.host_rank)
    return PageState(
        rate,
        visit.at,
        state.interval_days,
        streak,
        page_class,
        state.is_class_set,
        True,
        state.is_seed,
        links,
        0,
    )


def absence_of(found: VisitFound) -> Absence | None:
    return {VisitFound.MISSING: Absence.MISSING, VisitFound.GONE: Absence.GONE}.get(found)


def _code(value: float, logs: tuple[float, float]) -> int:
    low, high = logs
    return min(max(round((log(value) - low) / (high - low) * _STEPS), 0), _STEPS)


def _value(code: int, logs: tuple[float, float]) -> float:
    low, high = logs
    return exp(low + code / _STEPS * (high - low))
