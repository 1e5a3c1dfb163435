"""Why is a crawl on many machines over, when all its nodes have nothing to do?"""

from __future__ import annotations

from collections.abc import Collection

_ORDERED = ("target_domains", "max_pages", "parked", "budgets", "held")


def why_over(reasons: Collection[str], pages: int, budget: int | None) -> str:
    """Return why, from what the nodes report; empty if it is not over.

    With pages of a budget left, it is not: others will return what they claimed and cannot use.
    """
    if "max_pages" in reasons and budget is not None and pages < budget:
        return ""
    return next((each for each in _ORDERED if each in reasons), "exhausted")
