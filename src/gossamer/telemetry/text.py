"""Formats numbers and texts from the web for people: short, and safe on a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def count(number: float) -> str:
    """Return a number with thousands separators."""
    return f"{number:,.0f}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f} %"


def size(number: float) -> str:
    """Return bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def duration(seconds: float) -> str:
    """Return a time span in the units that fit."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days {hours % 24} h"


def printable(text: str, max_chars: int = 200) -> str:
    """Return a text from the web that is safe on a terminal: control characters are shown, not sent."""
    text = _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
