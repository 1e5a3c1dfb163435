"""Is a failed fetch tried again, and when? A table by outcome (RFC 9110 and common practice).

A wait grows by `factor` with each attempt. What is not in the table is final.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gossamer.model.records import Outcome

MAX_RETRY_AFTER_S = 24 * 3600.0


class RetryRule(Struct, frozen=True):
    """How many attempts after the first failure, and how the wait grows."""

    attempts: int
    factor: float = 4.0


RETRY: Mapping[Outcome, RetryRule] = {
    Outcome.HEAD_REFUSED: RetryRule(attempts=1),  # the second request is a GET
    Outcome.SERVER_ERROR: RetryRule(attempts=3),
    Outcome.RATE_LIMITED: RetryRule(attempts=3),
    Outcome.CONNECT_FAILED: RetryRule(attempts=3),
    Outcome.DISCONNECTED: RetryRule(attempts=3),
    Outcome.DNS_FAILED: RetryRule(attempts=3),
    Outcome.TIMEOUT: RetryRule(attempts=1),
    Outcome.CONNECT_TIMEOUT: RetryRule(attempts=1),
    # Our fault, not the host's: practically unlimited.
    Outcome.WORKER_LOST: RetryRule(attempts=1_000_000, factor=1.0),
}

# Failures of the host rather than of the page: five in a row park it.
HOST_FAILURES = frozenset(
    {
        Outcome.SERVER_ERROR,
        Outcome.CONNECT_FAILED,
        Outcome.CONNECT_TIMEOUT,
        Outcome.TIMEOUT,
        Outcome.DISCONNECTED,
        Outcome.DNS_FAILED,
        Outcome.TLS_ERROR,
        Outcome.PROTOCOL_ERROR,
        Outcome.HEADER_TOO_LARGE,
    }
)


def wait_before_retry(outcome: Outcome, failures: int, first_wait_s: float) -> float | None:
    """Return the seconds to wait after the given total number of failures, or None if there is no further attempt."""
    rule = RETRY.get(outcome)
    if rule is None or failures > rule.attempts:
        return None
    return first_wait_s * rule.factor ** (failures - 1)
