"""Does a run make the same requests in the same order as any other run with its seeds? And if not, why?

With one connection and no delay the order follows from seeds and answers alone (docs/operating.md). What is in
memory depends on counts, never on time or on the memory in use; but the counts depend on the ceiling.
"""

from __future__ import annotations

from msgspec import Struct

from gossamer.settings.budget import MAX_HOSTS, MAX_PATTERNS, Budget, shown
from gossamer.settings.model import Settings


def is_repeatable(settings: Settings) -> bool:
    """Return whether the order of requests must be the same in every run."""
    delays = (settings.politeness_ms, settings.domain_politeness_ms, settings.address_politeness_ms)
    is_paced = any(delays) or any(rule.delay for rule in settings.pace)
    return settings.connections == 1 and settings.workers == 1 and not is_paced


class Repeatability(Struct, frozen=True):
    """What is promised about the order of requests."""

    is_promised: bool = False
    ceiling: str = ""  # if the order depends on it
    max_hosts: int = 0
    ranks_domains: bool = False  # beside the crawl

    @classmethod
    def of(cls, settings: Settings, budget: Budget) -> Repeatability:
        """Return what follows from settings."""
        has_all = budget.hosts >= MAX_HOSTS and budget.patterns >= MAX_PATTERNS
        return cls(
            is_repeatable(settings), "" if has_all else shown(budget.whole), budget.hosts, bool(settings.rank_every)
        )

    def caveat(self, *, is_rereading: bool) -> str:
        """Return why the order may differ between runs, in one line; empty if it does not, or is not promised."""
        if not self.is_promised:
            return ""
        if is_rereading:
            return (
                "the order of requests may differ between runs: links of stored pages are read again while others "
                "are fetched"
            )
        if self.ranks_domains:
            return "the order of requests may differ between runs: domains are ranked beside the crawl (--rank-every)"
        if self.ceiling:
            return (
                f"the order of requests may differ from runs with another ceiling: {self.ceiling} of memory has room "
                f"for {self.max_hosts} hosts at a time (--memory {self.ceiling} gives the same order elsewhere)"
            )
        return ""
