"""The warnings of a crawl for its report: each text once, with times; of each rule a few, and how many more.

Rules are our own words, so the memory is bounded whatever the web does.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from gossamer.model.events import Event
from gossamer.telemetry.text import REPORT_HINT, plural

_MAX_TEXTS = 5  # per rule
_MAX_CHARS = 200


class _Repeated(Struct):
    text: str
    first_at: float
    last_at: float
    count: int = 1


class WarningTally:
    """The warnings so far."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, _Repeated]] = {}  # by rule
        self._more: dict[str, _Repeated] = {}  # by rule, those beyond the texts above

    def add(self, event: Event) -> None:
        """Add a warning."""
        text = event.reason.removesuffix(REPORT_HINT)[:_MAX_CHARS]
        texts = self._texts.setdefault(event.rule, {})
        known = texts.get(text)
        if known is None and len(texts) >= _MAX_TEXTS:
            known = self._more.setdefault(event.rule, _Repeated("", event.ts, event.ts, 0))
        if known is None:
            texts[text] = _Repeated(text, event.ts, event.ts)
        else:
            known.count += 1
            known.last_at = event.ts

    def lines(self) -> list[str]:
        """Return the warnings by time, each with its time."""
        found = [(one.first_at, _line(one)) for texts in self._texts.values() for one in texts.values()]
        found += [(more.first_at, _rest(rule, more)) for rule, more in self._more.items()]
        return [line for _, line in sorted(found)]


def _line(one: _Repeated) -> str:
    line = f"{_moment(one.first_at)} UTC: {one.text}"
    return line if one.count == 1 else f"{line} ({one.count:,} times, last at {_until(one)})"


def _rest(rule: str, more: _Repeated) -> str:
    return f"{_moment(more.first_at)} UTC: {plural(more.count, 'more warning')} ({rule}), last at {_until(more)}"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _until(one: _Repeated) -> str:
    """Return the time of the last one; the date only if it is another day."""
    first = _moment(one.first_at)
    last = _moment(one.last_at)
    return last[11:] if first[:10] == last[:10] else last
