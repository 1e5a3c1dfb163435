"""What can the operator do about an outcome? A short hint, if an option would change it."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.records import Outcome

_ADVICE: Mapping[str, str] = {
    Outcome.TLS_ERROR: "--ca-file FILE adds a certificate authority, 'gossamer doctor' lists those that are trusted; "
    "--insecure HOST does not check a host of your own",
    Outcome.BLOCKED_ADDRESS: "--allow-network CIDR allows private and loopback addresses",
}


def advice_on(outcome: str) -> str:
    """Return what would change an outcome, or the empty string."""
    return _ADVICE.get(outcome, "")
