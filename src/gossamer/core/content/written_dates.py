"""When was that? Dates of feeds, sitemaps and servers: RFC 822, ISO 8601, and what their authors think these are.

Seen in the wild and understood: years of two digits, seconds or the whole time missing, weekdays that are wrong or in
other languages, full and foreign names of months, `24:00`, leap seconds, am and pm, zones by name, with and without a
colon, twice; ISO with blanks, slashes, dots or single digits; `5/23/2024`; seconds and milliseconds of the epoch. Not
understood: everything else, days that do not exist, and times before 1990 or more than two days ahead. The answer is
then 0: a wrong date would do more harm than none. A time without a zone counts as UTC. About 5 µs per date.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

MAX_CHARS = 80
FIRST_YEAR = 1990
_SLACK_S = 2 * 86_400.0  # clocks and zones differ

_NAMES = (
    "jan january januar janvier janv enero ene gennaio gen janeiro januari",
    "feb february februar février fevrier fév fev févr febrero febbraio fevereiro februari",
    "mar march märz mrz mär mars marzo março marco maart mrt",
    "apr april avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho",
    "aug august août aout aoû agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october oktober okt octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dezember dez décembre decembre déc diciembre dic dicembre dezembro",
)
_MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
MONTH_NAMES = frozenset(_MONTHS)
_ZONE_HOURS = {
    "z": 0.0, "ut": 0.0, "utc": 0.0, "gmt": 0.0, "wet": 0.0, "west": 1.0, "bst": 1.0, "cet": 1.0, "mez": 1.0,
    "cest": 2.0, "mesz": 2.0, "eet": 2.0, "eest": 3.0, "msk": 3.0, "ist": 5.5, "jst": 9.0, "kst": 9.0, "aest": 10.0,
    "aedt": 11.0, "est": -5.0, "edt": -4.0, "cst": -6.0, "cdt": -5.0, "mst": -7.0, "mdt": -6.0, "pst": -8.0,
    "pdt": -7.0,
}  # fmt: skip
_ISO = re.compile(r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})(?!\d)")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?=T|$)")
_DAY_MONTH_YEAR = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.)?[\s\-/]{0,3}([^\W\d_]{3,10})\.?[\s\-/,]{0,3}(\d{4}|\d\d)(?!\d)"
)
_MONTH_DAY_YEAR = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,10})\.?\s{0,3}(\d{1,2})(?:st|nd|rd|th)?,?\s{1,3}(\d{4})(?!\d)")
_MONTH_DAY_TIME_YEAR = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{3,10})\s{1,3}(\d{1,2})\s{1,3}\d{1,2}:\d\d(?::\d\d)?\s(?:\w{1,5}\s)?(\d{4})(?!\d)"
)
_NUMBERS = re.compile(r"(?<!\d)(\d{1,2})([/.])(\d{1,2})\2(\d{4})(?!\d)")
_TIME = re.compile(r"(?<![\d+\-])(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s?([ap]\.?m\b)?", re.IGNORECASE)
_COMPACT_TIME = re.compile(r"(?<=\dT)(\d\d)(\d\d)(\d\d)?(?!\d)()")
_OFFSET = re.compile(r"([+\-])(\d\d?):?(\d\d)?\b")
_ZONE_NAME = re.compile(r"[A-Za-z]{1,5}(?![A-Za-z])")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{12,13}")


def written_time(text: str, now: float) -> float:
    """Return the seconds of the epoch that a date denotes; 0 if it is none, or absurd."""
    text = " ".join(text[: 4 * MAX_CHARS].split())[:MAX_CHARS]
    if _EPOCH.fullmatch(text):
        number = float(text)
        return _sane(number / 1000 if number > 1e11 else number, now)
    found = _day(text)
    if found is None:
        return 0.0
    (year, month, day), rest = found
    try:
        moment = datetime(year, month, day, tzinfo=UTC)
        return _sane((moment + _time_of_day(text, rest)).timestamp(), now)
    except (ValueError, OverflowError):
        return 0.0


def _sane(seconds: float, now: float) -> float:
    first = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
    return seconds if first <= seconds and (not now or seconds <= now + _SLACK_S) else 0.0


def _day(text: str) -> tuple[tuple[int, int, int], int] | None:
    """Return year, month and day, and where the text goes on behind them."""
    iso = _COMPACT.match(text) or _ISO.match(text)
    if iso is not None:
        parts = iso.groups()
        return (int(parts[0]), int(parts[-2]), int(parts[-1])), iso.end()
    for pattern, task in (
        (_DAY_MONTH_YEAR, (3, 2, 1)),
        (_MONTH_DAY_YEAR, (3, 1, 2)),
        (_MONTH_DAY_TIME_YEAR, (3, 1, 2)),
    ):
        for found in pattern.finditer(text):
            month = _MONTHS.get(found[task[1]].lower())
            if month is not None:
                return (_full_year(found[task[0]]), month, int(found[task[2]])), found.end(task[2])
    numbers = _NUMBERS.search(text)
    if numbers is None:
        return None
    one = int(numbers[1])
    other = int(numbers[3])
    year = int(numbers[4])
    # 5/23/2024 is American, 23.5.2024 is not; 5/6/2024 is read as the former.
    is_day_first = numbers[2] == "." or one > 12
    return ((year, other, one) if is_day_first else (year, one, other)), numbers.end()


def _full_year(text: str) -> int:
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 70 else 1900)


def _time_of_day(text: str, behind_day: int) -> timedelta:
    """Return the time of day in UTC, as the time since midnight; nothing if there is none."""
    found = _COMPACT_TIME.search(text) or _TIME.search(text, behind_day) or _TIME.search(text)
    if found is None:
        return timedelta()
    hour = int(found[1])  # a leap second is the one before
    minute = int(found[2])
    second = min(int(found[3] or 0), 59)
    half = (found[4] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if hour > 24 or minute > 59 or (hour == 24 and (minute or second)):
        raise ValueError(text)
    return timedelta(hours=hour, minutes=minute, seconds=second) - _zone(text[found.end() :])


def _zone(text: str) -> timedelta:
    """Return how far the first zone in a text is ahead of UTC."""
    text = text.strip()
    # "GMT+0200" is an offset, and "+0100 CET" too: the offset counts.
    offset = _OFFSET.search(text)
    if offset is not None:
        hours = int(offset[2])
        minutes = int(offset[3] or 0)
        if hours > 14 or minutes > 59:
            raise ValueError(text)
        ahead = timedelta(hours=hours, minutes=minutes)
        return ahead if offset[1] == "+" else -ahead
    name = _ZONE_NAME.match(text)
    return timedelta(hours=_ZONE_HOURS.get(name[0].lower(), 0.0) if name else 0.0)
