"""Selects pages by conditions such as `host=example.org` or `status>=400`.

A condition is FIELD OPERATOR VALUE; all of them must be true. Values after `=` and `!=` may be
a list with commas, of which one must match. Everything is read from the row of the catalog
except the language, which is detected from the page itself.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase

from msgspec import Struct

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of
from gossamer.model.errors import UsageError
from gossamer.model.records import UrlRecord

Test = Callable[[UrlRecord], bool]

_CONDITION = re.compile(r"\s*([A-Za-z_]+)\s*(>=|<=|!=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_PATTERN = re.compile(r"[*?]")
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TEXTS: dict[str, Callable[[UrlRecord], str]] = {
    "host": lambda row: host_of(row.url),
    "domain": lambda row: registrable_domain(host_of(row.url)),
    "type": lambda row: row.content_type,
}
_NUMBERS: dict[str, Callable[[UrlRecord], int]] = {
    "status": lambda row: row.status,
    "depth": lambda row: row.depth,
    "bytes": lambda row: row.content_bytes,
}
_KINDS: dict[str, Test] = {
    "duplicates": lambda row: bool(row.duplicate_of or row.near_duplicate_of),
    "spam": lambda row: row.spam is not None,
}
FIELDS = (*_TEXTS, *_NUMBERS, "language", "after", "before", *_KINDS)


class Selection(Struct, frozen=True):
    """Which pages are wanted."""

    tests: tuple[Test, ...] = ()
    languages: tuple[tuple[bool, frozenset[str]], ...] = ()  # whether it must be one of them, and the codes
    fields: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()  # the only ones that can be wanted, if they are named; empty: any

    def wants(self, row: UrlRecord) -> bool:
        """Return whether a row matches, as far as the catalog shows."""
        return all(test(row) for test in self.tests)

    def has_language(self, code: str) -> bool:
        """Return whether a page in this language is wanted."""
        return all((code in codes) is is_in for is_in, codes in self.languages)

    def names(self, field: str) -> bool:
        """Return whether a condition is on this field."""
        return field in self.fields


ANYTHING = Selection()


def selection_from(conditions: Sequence[str]) -> Selection:
    """Return the selection for a list of conditions."""
    tests: list[Test] = []
    languages: list[tuple[bool, frozenset[str]]] = []
    fields: set[str] = set()
    hosts: list[str] = []
    for text in conditions:
        field, sign, value = _split(text)
        fields.add(field)
        if field == "language":
            _require(text, sign, "=", "!=")
            languages.append((sign == "=", _languages(text, value.lower())))
        else:
            tests.append(_test(text, field, sign, value))
        if field == "host" and sign == "=" and not _PATTERN.search(value):
            hosts = [ascii_host(name) for name in _values(value.lower())]
    return Selection(tuple(tests), tuple(languages), frozenset(fields), tuple(dict.fromkeys(hosts)))


def _split(text: str) -> tuple[str, str, str]:
    match = _CONDITION.fullmatch(text)
    if match is None or not _values(match[3]):
        raise UsageError(f"--where {text!r}: not a condition; expected host=example.org or status>=400")
    field = match[1].lower()
    if field not in FIELDS:
        close = get_close_matches(field, FIELDS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"fields are {', '.join(FIELDS)}"
        raise UsageError(f"--where {text!r}: no field '{field}'; {hint}")
    return field, match[2], match[3]


def _require(text: str, sign: str, *signs: str) -> None:
    if sign not in signs:
        field = _split(text)[0]
        raise UsageError(f"--where {text!r}: '{field}' is compared with {' or '.join(signs)}")


def _languages(text: str, value: str) -> frozenset[str]:
    """Return the codes of languages in a condition."""
    codes = frozenset(_values(value))
    for code in codes:
        if not _LANGUAGE_CODE.fullmatch(code):
            raise UsageError(f"--where {text!r}: {code!r} is no code of a language; expected language=de,en")
    return codes


def _values(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def ascii_host(name: str) -> str:
    """Return a host name as in URLs: `bücher.example` is `xn--bcher-kva.example`."""
    url = None if name.isascii() else canonical(f"http://{name}/")
    return host_of(url) if url is not None else name


def _test(text: str, field: str, sign: str, value: str) -> Test:
    if field in _TEXTS:
        _require(text, sign, "=", "!=")
        values = _values(value.lower())
        names = values if field == "type" else [ascii_host(name) for name in values]
        return _text_test(_TEXTS[field], names, is_equal=sign == "=")
    if field in _NUMBERS:
        return _number_test(text, _NUMBERS[field], sign, value)
    _require(text, sign, "=")
    if field in _KINDS:
        return _kind_test(text, field, value)
    moment = _moment(text, value)
    return (lambda row: row.fetched_at >= moment) if field == "after" else (lambda row: row.fetched_at < moment)


def _kind_test(text: str, field: str, value: str) -> Test:
    """Return the test of a kind of pages that are wanted, are not, or are all that is wanted."""
    is_one = _KINDS[field]
    tests: dict[str, Test] = {"yes": lambda _: True, "no": lambda row: not is_one(row), "only": is_one}
    if value not in tests:
        raise UsageError(f"--where {text!r}: expected {field}=yes, {field}=no or {field}=only")
    return tests[value]


def _text_test(read: Callable[[UrlRecord], str], patterns: list[str], *, is_equal: bool) -> Test:
    patterns = [pattern.replace("[", "[[]") for pattern in patterns]  # as in http://[::1]/, not a set of letters
    return lambda row: any(fnmatchcase(read(row), pattern) for pattern in patterns) is is_equal


def _number_test(text: str, read: Callable[[UrlRecord], int], sign: str, value: str) -> Test:
    try:
        numbers = [int(part) for part in _values(value)]
    except ValueError:
        numbers = []
    if not numbers or (sign in _ORDERS and len(numbers) > 1):
        field = _split(text)[0]
        raise UsageError(f"--where {text!r}: '{field}' is a number; expected {field}{sign}200")
    if sign in _ORDERS:
        compare = _ORDERS[sign]
        bound = numbers[0]
        return lambda row: compare(read(row), bound)
    return lambda row: (read(row) in numbers) is (sign == "=")


def _moment(text: str, value: str) -> float:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        field = _split(text)[0]
        raise UsageError(f"--where {text!r}: not a time; expected {field}=2026-05-01 or a time in ISO 8601") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
