"""What can the operator do about an outcome? A few words, where an option would change it."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.records import Outcome

_ADVICE: Mapping[str, str] = {
    Outcome.BLOCKED_ADDRESS: "--allow-network CIDR opens private and loopback addresses",
}


def advice_on(outcome: str) -> str:
    """Return what would change an outcome, or nothing."""
    return _ADVICE.get(outcome, "")
