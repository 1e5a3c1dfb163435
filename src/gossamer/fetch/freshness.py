"""How long does an answer stay as it is, according to its server? Cache-Control, Expires and Age.

RFC 9111 4.2.1: `s-maxage` before `max-age` before `Expires` minus `Date`, all of it minus `Age`. A server that forbids
storing (`no-store`), or demands to be asked each time (`no-cache`), does not say how long. What cannot be read says
nothing either, and nobody is believed for more than 30 days. Of a header that is repeated the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gossamer.fetch.retry_after import http_date

MAX_FRESH_S: Final = 30 * 86_400.0
_MAX_VALUE_CHARS: Final = 1000
_MAX_DATE_CHARS: Final = 64
_AGES = r'(?i)(?:^|[\s,;])(s-maxage|max-age|no-cache|no-store)(?:\s*=\s*"?([0-9]{1,18})(?![0-9A-Za-z.]))?'


def fresh_s(named: Mapping[str, str], now: float) -> float:
    """Return the seconds from an answer's arrival on for which it is said to stay the same; 0 if that is not said."""
    stated = 0.0
    if "cache-control" in named:
        found = {
            name.lower(): number
            for name, number in reversed(re.findall(_AGES, named["cache-control"][:_MAX_VALUE_CHARS]))
        }
        if "no-cache" in found or "no-store" in found:
            return 0.0
        if "s-maxage" in found or "max-age" in found:  # RFC 9111 5.3: then Expires does not count
            return _left(float(found.get("s-maxage") or found.get("max-age") or 0), named)
    if "expires" in named:
        expires, date = (_date(named.get(name, "")) for name in ("expires", "date"))
        stated = expires - (date or now) if expires else 0.0
    return _left(stated, named)


def _left(stated: float, named: Mapping[str, str]) -> float:
    age = named.get("age", "").strip()
    passed = float(age) if age.isascii() and age.isdecimal() and len(age) <= 18 else 0.0
    return min(max(stated - passed, 0.0), MAX_FRESH_S)


def _date(text: str) -> float:
    return http_date(text) if 0 < len(text) <= _MAX_DATE_CHARS else 0.0
