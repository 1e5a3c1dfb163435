"""The plain rule: changed five times in a row, sooner; unchanged three times, later.

It needs no estimate, no budget and no price, and adapts slowly: the choice `steps` of
`RevisitRule`, and the fallback for a page
of which nothing is known but its interval.
"""

from __future__ import annotations

from gossamer.core.revisit.classes import ClassRule

CHANGED_IN_A_ROW = 5
UNCHANGED_IN_A_ROW = 3
SOONER = 0.5
LATER = 2.0


def plain_interval(rule: ClassRule, interval_days: float, streak: int) -> float:
    """Return the next interval after one; `streak` counts changes in a row, or below zero visits without one.

    Every fifth change in a row halves the interval, every third visit in a row without one doubles it. An interval of
    zero (a page that was not visited twice yet) becomes that of its class.
    """
    if interval_days <= 0:
        return rule.plain_days
    if streak > 0 and streak % CHANGED_IN_A_ROW == 0:
        interval_days *= SOONER
    elif streak < 0 and -streak % UNCHANGED_IN_A_ROW == 0:
        interval_days *= LATER
    return min(max(interval_days, rule.shortest_days), rule.longest_days)


def counted_streak(streak: int, has_changed: bool) -> int:
    """Return the streak after a visit; it fits into a byte, and goes on from where the rule repeats."""
    if has_changed:
        return streak + 1 if 0 < streak < 120 else (116 if streak >= 120 else 1)
    return streak - 1 if -120 < streak < 0 else (-118 if streak <= -120 else -1)
