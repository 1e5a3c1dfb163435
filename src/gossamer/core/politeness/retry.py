"""Is a failed fetch tried again, and when? A table by outcome (RFC 9110 and common practice).

A wait grows by `factor` with each attempt, up to a day. What is not in the table is final.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from gossamer.model.records import Outcome

MAX_RETRY_AFTER_S = 24 * 3600.0
DEFAULT_RETRIES = 3
_MAX_EXPONENT = 20  # beyond it every wait is a day


class RetryRule(Struct, frozen=True):
    """How many attempts after the first failure at most, and how the wait grows."""

    attempts: float = math.inf
    is_limited: bool = True  # by `--retries`
    factor: float = 4.0


RETRY: Mapping[Outcome, RetryRule] = {
    Outcome.HEAD_REFUSED: RetryRule(attempts=1, is_limited=False),  # the second request is a GET
    Outcome.SERVER_ERROR: RetryRule(),
    Outcome.RATE_LIMITED: RetryRule(),
    Outcome.CONNECT_FAILED: RetryRule(),
    Outcome.DISCONNECTED: RetryRule(),
    Outcome.DNS_FAILED: RetryRule(),
    Outcome.TIMEOUT: RetryRule(attempts=1),
    Outcome.CONNECT_TIMEOUT: RetryRule(attempts=1),
    Outcome.WORKER_LOST: RetryRule(is_limited=False, factor=1.0),  # our fault, not the host's
}

# Failures that may be the host's fault rather than the page's: those of five URLs in a row park it.
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


# Failures before anything of the URL was sent: each is the host's.
UNREACHED = frozenset({Outcome.CONNECT_FAILED, Outcome.CONNECT_TIMEOUT, Outcome.DNS_FAILED, Outcome.TLS_ERROR})


def attempts_after(outcome: Outcome, retries: int) -> float:
    """Return how many attempts follow a first one with this outcome; `retries` is the limit of the crawl."""
    rule = RETRY.get(outcome)
    if rule is None:
        return 0
    return min(rule.attempts, retries) if rule.is_limited else rule.attempts


def wait_before_retry(outcome: Outcome, failures: int, first_wait_s: float, retries: int) -> float | None:
    """Return the seconds to wait after the given total number of failures, or None if there is no further attempt."""
    if failures > attempts_after(outcome, retries):
        return None
    return min(MAX_RETRY_AFTER_S, first_wait_s * RETRY[outcome].factor ** min(failures - 1, _MAX_EXPONENT))
