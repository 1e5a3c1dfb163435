"""What can the operator do about an outcome? A short hint, if an option would change it."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.model.records import Outcome

_ADVICE: Mapping[str, str] = {
    Outcome.TLS_ERROR: "--ca-file FILE adds a certificate authority, 'gossamer doctor' lists those that are trusted; "
    "--insecure HOST does not check a host of your own",
    Outcome.BLOCKED_ADDRESS: "--allow-network CIDR allows private and loopback addresses",
}


_LOGIN = "a [[request]] table in --config FILE has auth, headers or cookies for a host"


def advice_on(outcome: str, status: int = 0) -> str:
    """Return what would change an outcome, or an answer with this status; or the empty string."""
    return _LOGIN if status == 401 else _ADVICE.get(outcome, "")
