"""How known URLs are fetched again, from the settings."""

from __future__ import annotations

from math import sqrt

from gossamer.core.revisit.classes import CLASS_NAMES, ClassPatterns, feed_rule_within, rules_within
from gossamer.core.revisit.page import DAY_S
from gossamer.core.revisit.schedule import RevisitRules, Schedule
from gossamer.core.url.patterns import pattern_fault
from gossamer.model.errors import UsageError
from gossamer.settings.model import Settings


def check_revisit(settings: Settings) -> None:
    """Raise a clear error if settings for fetching again make no sense."""
    if settings.revisit_min > settings.revisit_max:
        raise UsageError(
            f"revisit-min = {settings.revisit_min:g}: longer than revisit-max = {settings.revisit_max:g}; "
            "expected at most that"
        )
    for text in settings.revisit_class:
        name, sign, pattern = text.partition("=")
        if not sign or name not in CLASS_NAMES or not pattern:
            expected = ", ".join(CLASS_NAMES)
            raise UsageError(f"revisit-class = {text!r}: expected CLASS=RE with one of {expected}, as news=/latest/")
        fault = pattern_fault(pattern)
        if fault:
            raise UsageError(f"revisit-class = {text!r}: {fault}")


def revisit_rules_of(settings: Settings) -> RevisitRules:
    """Return how known URLs are fetched again."""
    shortest = settings.revisit_min / DAY_S
    longest = settings.revisit_max / DAY_S
    split = (text.partition("=") for text in settings.revisit_class)
    return RevisitRules(
        schedule=Schedule(
            rule=settings.revisit_rule,
            classes=rules_within(shortest, longest),
            feeds=feed_rule_within(shortest, longest),
            first_days=sqrt(shortest * longest),
        ),
        patterns=ClassPatterns(tuple((CLASS_NAMES[name], pattern) for name, _, pattern in split)),
        fetches_per_day=float(settings.revisit_per_day),
        known_share=settings.revisit_share,
    )
