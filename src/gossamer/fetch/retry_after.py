"""Parses Retry-After.

RFC 9110 10.2.3: a number of seconds or an HTTP date. What is not a wait in the future
(garbage, zero, a date in the past) is -1, "not given": the caller's backoff decides.
A wait is at most a day.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

NOT_GIVEN: Final = -1.0
LONGEST_WAIT_S: Final = 86_400.0
_LONGEST_VALUE: Final = 64  # an HTTP date has 29 characters


def retry_after_s(value: str, now: float) -> float:
    """Return the seconds to wait from `now` (a date on the wall clock), at most a day, or -1."""
    text = value.strip()
    if not text or len(text) > _LONGEST_VALUE:
        return NOT_GIVEN
    # Some servers send "120.5"; "nan", "inf" and "1_0" must not pass as numbers.
    is_number = text.isascii() and text.replace(".", "", 1).isdecimal()
    wait = float(text) if is_number else http_date(text) - now
    return min(wait, LONGEST_WAIT_S) if wait > 0 else NOT_GIVEN


def http_date(text: str) -> float:
    """Return an HTTP date in seconds, or 0 if it is none."""
    from email.utils import parsedate_to_datetime  # 5 ms: dates are rare

    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
