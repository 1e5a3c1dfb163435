"""Dates of pages.

Dates are returned in ISO 8601: `2024-05-01`, or `2024-05-01T12:30:00Z` if there is a time of
day (a time without an offset counts as UTC). A date before the web existed, or after the page
was fetched, is an error and is ignored.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

FIRST_YEAR = 1990
MAX_CHARS = 64
_SLACK = timedelta(days=2)  # clocks and zones differ
_UTC = re.compile(r"(?<=\d) ?(?:UTC|GMT)$")
_DATE = re.compile(r"(\d{4})[-/.]?(\d{2})[-/.]?(\d{2})")


def iso_date(text: str, fetched_at: float) -> str:
    """Return a date of a page or header in ISO 8601; empty if it is none, or absurd."""
    text = text[: MAX_CHARS * 2].strip()[:MAX_CHARS]
    found = _parsed(text)
    if found is None:
        return ""
    try:
        if not isinstance(found, datetime):
            moment = datetime(found.year, found.month, found.day, tzinfo=UTC)
            return found.isoformat() if _is_sane(moment, fetched_at) else ""
        moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z" if _is_sane(moment, fetched_at) else ""
    except (OverflowError, ValueError):
        return ""


def _parsed(text: str) -> datetime | date | None:
    """Return the time that a text denotes; a day if there is no time of day."""
    if not text.isascii():
        return None
    day = _DATE.fullmatch(text)
    try:
        if day is not None:
            return date(int(day[1]), int(day[2]), int(day[3]))
        if _DATE.match(text):
            return datetime.fromisoformat(_UTC.sub("Z", text.replace("/", "-")))
        from email.utils import parsedate_to_datetime  # 5 ms: most dates are of the other forms

        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _is_sane(moment: datetime, fetched_at: float) -> bool:
    latest = datetime.fromtimestamp(fetched_at, UTC) + _SLACK if fetched_at else datetime.max.replace(tzinfo=UTC)
    return moment.year >= FIRST_YEAR and moment <= latest
