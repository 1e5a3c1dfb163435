"""Which rule of a robots.txt decides about a path? In bounded time and memory, whatever the file contains.

The longest matching pattern wins, and `Allow` wins a tie. Rules without `*` are looked up by their text: once for
each distinct length of a pattern, regardless of how many there are. Rules with `*` are tried one after the other, the
longest first, each by a linear scan.

Three limits, which no honest file reaches, bound what a hostile one can cost:

| limit             | of what                                                                                          |
|-------------------|--------------------------------------------------------------------------------------------------|
| `MAX_RULES`       | distinct rules without `*`                                                                       |
| `MAX_WILD_RULES`  | distinct rules with `*`; those with the shortest text before the `*` are matched                 |
| `MAX_WILD_WORK`   | characters of rules with `*` times characters of the path, for one decision                      |

A rule beyond a limit is decided so that nothing is fetched that it might forbid: `Allow` is ignored, and `Disallow`
forbids every path that begins like it (for a rule without `*`, like its first folder). Of two rules the longer still
wins. A decision that may be stricter because of this says so. The worst decision takes about 1 ms.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from msgspec import Struct

MAX_RULES = 20_000
MAX_WILD_RULES = 2_000
MAX_WILD_WORK = 8_000_000
MAX_SHOWN_CHARS = 300  # of a line, in rows, events and messages
_MAX_BEGINNINGS = 1_000  # of rules beyond a limit; if there are more, they forbid everything
_MAX_FOLDER_CHARS = 32
_CUT_NOTE = " (and there are more rules than are matched: those left out forbid whatever begins like them)"
# What an entry takes, in bytes, besides the characters of its pattern.
_RULE_BYTES = 200
_WILD_RULE_BYTES = 600

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX_DIGITS = "0123456789ABCDEFabcdef"
# Tables instead of a function per character: 500 KB that are no UTF-8 took 320 ms.
_ESCAPED = {byte: f"%{byte:02X}" for byte in range(256) if not 0x21 <= byte <= 0x7E}
_NORMAL_ESCAPES = {
    digits: char if (char := chr(int(digits, 16))) in _UNRESERVED else f"%{digits.upper()}"
    for digits in (high + low for high in _HEX_DIGITS for low in _HEX_DIGITS)
}


class RobotsDecision(Struct, frozen=True):
    """The decision, and the line of robots.txt behind it (0 if no line matches the path), cut to a length."""

    is_allowed: bool
    line_number: int = 0
    line: str = ""


ALLOWED = RobotsDecision(True)


class _WildRule(Struct):
    head: str  # before the first *
    parts: tuple[str, ...]  # between two of them, and after the last if it is not anchored
    tail: str  # after the last, if it is anchored
    precedence: int
    code: int
    chars: int


class RuleMatcher:
    """The rules of one robots.txt: patterns, each with a code.

    The code is the offset of the rule's line, times 2, plus 1 for `Allow`.
    """

    def __init__(self, text: str, rules: Mapping[str, int]) -> None:
        self._text = text
        self.rule_count = len(rules)
        wild = [(pattern, code) for pattern, code in rules.items() if "*" in pattern]
        plain = [(pattern, code) for pattern, code in rules.items() if "*" not in pattern] if wild else [*rules.items()]
        wild_beyond: list[tuple[str, int]] = []
        if len(wild) > MAX_WILD_RULES:
            wild.sort(key=lambda rule: rule[0].index("*"))
            wild, wild_beyond = wild[:MAX_WILD_RULES], wild[MAX_WILD_RULES:]
        plain_beyond = plain[MAX_RULES:]
        self._literal = {pattern: code for pattern, code in plain[:MAX_RULES] if pattern[-1] != "$"}
        self._exact = {pattern[:-1]: code for pattern, code in plain[:MAX_RULES] if pattern[-1] == "$"}
        self._lengths = sorted({len(pattern) for pattern in self._literal})
        self._wild = sorted((_wild_rule(*rule) for rule in wild), key=lambda rule: -rule.precedence)
        beyond = [(pattern.partition("*")[0], pattern, code) for pattern, code in wild_beyond]
        beyond += [(_folder(pattern), pattern, code) for pattern, code in plain_beyond]
        self._beginnings = _beginnings(beyond)
        if len(self._beginnings) > _MAX_BEGINNINGS:
            self._beginnings = {"": max(self._beginnings.values())}
        self._beginning_lengths = sorted({len(beginning) for beginning in self._beginnings})
        self.rules_beyond = len(beyond)
        self.size_bytes = sys.getsizeof(text) + self._table_bytes()

    def _table_bytes(self) -> int:
        tables = (self._literal, self._exact, self._beginnings)
        plain_bytes = sum(len(table) * _RULE_BYTES + sum(map(len, table)) for table in tables)
        wild_bytes = sum(len(rule.head) + rule.chars for rule in self._wild)
        return plain_bytes + wild_bytes + len(self._wild) * _WILD_RULE_BYTES

    def decide(self, path: str) -> RobotsDecision:
        """Decide on a path with its query."""
        path = _literal_path(path)
        precedence, code = self._best_plain(path)
        work = MAX_WILD_WORK
        is_cut = bool(self.rules_beyond)
        for rule in self._wild:
            if rule.precedence <= precedence:
                break
            if not path.startswith(rule.head):
                continue
            work -= rule.chars * len(path)
            if work < 0:
                is_cut = True
                if rule.code & 1:
                    continue
            elif not _matches(rule, path):
                continue
            precedence = rule.precedence
            code = rule.code
            break
        if self._beginnings:
            precedence, code = max((precedence, code), self._best_beginning(path))
        return ALLOWED if precedence < 0 else self._decision(code, is_cut)

    def _best_plain(self, path: str) -> tuple[int, int]:
        """Return precedence and code of the best rule without `*`; a negative precedence if none matches."""
        code = self._exact.get(path)
        if code is not None:
            return _precedence(len(path) + 1, code), code
        literal = self._literal
        lengths = self._lengths
        for number in range(bisect_right(lengths, len(path)) - 1, -1, -1):
            length = lengths[number]
            code = literal.get(path[:length])
            if code is not None:
                return _precedence(length, code), code
        return -1, 0

    def _best_beginning(self, path: str) -> tuple[int, int]:
        lengths = self._beginning_lengths
        beginnings = (path[:length] for length in lengths[: bisect_right(lengths, len(path))])
        return max((self._beginnings[each] for each in beginnings if each in self._beginnings), default=(-1, 0))

    def rules(self) -> list[RobotsDecision]:
        """Return the rules one by one, in the order of their lines; those beyond the limits are not among them."""
        codes = [*self._literal.values(), *self._exact.values(), *(rule.code for rule in self._wild)]
        return [self._decision(code, is_cut=False) for code in sorted(codes)]

    def _decision(self, code: int, is_cut: bool) -> RobotsDecision:
        offset = code >> 1
        end = self._text.find("\n", offset)
        line = self._text[offset : end if end >= 0 else None].strip()
        if len(line) > MAX_SHOWN_CHARS:
            line = line[: MAX_SHOWN_CHARS - 1] + "…"
        line = printable(line)
        is_allowed = bool(code & 1)
        if is_cut and not is_allowed:
            line += _CUT_NOTE
        return RobotsDecision(is_allowed, self._text.count("\n", 0, offset) + 1, line)


def _precedence(length: int, code: int) -> int:
    return 2 * length + (code & 1)


def _wild_rule(pattern: str, code: int) -> _WildRule:
    is_anchored = pattern[-1] == "$"
    head, *parts = (pattern[:-1] if is_anchored else pattern).split("*")
    tail = parts.pop() if is_anchored else ""
    inner = tuple(part for part in parts if part)
    chars = sum(map(len, inner)) + len(tail) + 1
    return _WildRule(head, inner, tail, _precedence(len(pattern), code), code, chars)


def _matches(rule: _WildRule, path: str) -> bool:
    """Match what follows the head. The first occurrence of each part is enough."""
    at = len(rule.head)
    for part in rule.parts:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(path) - len(rule.tail) >= at and path.endswith(rule.tail)


def _folder(pattern: str) -> str:
    pattern = pattern[:_MAX_FOLDER_CHARS].removesuffix("$")
    return pattern[: pattern.find("/", 1) + 1] or pattern


def _beginnings(rules: Iterable[tuple[str, str, int]]) -> dict[str, tuple[int, int]]:
    """Return what `Disallow` rules begin with, and precedence and code of the longest rule that begins so."""
    found: dict[str, tuple[int, int]] = {}
    for beginning, pattern, code in rules:
        if not code & 1:
            rule = (_precedence(len(pattern), code), code)
            found[beginning] = max(rule, found.get(beginning, rule))
    return found


# -- one percent-encoding for paths and patterns -------------------------------------------------------


def normal_path(path: str) -> str:
    """Return a path or pattern with unreserved characters unescaped and the other escapes in upper case."""
    if "%" in path:
        first, *parts = path.split("%")
        normal = _NORMAL_ESCAPES.get
        path = first + "".join(
            [escape + part[2:] if (escape := normal(part[:2])) is not None else "%" + part for part in parts]
        )
    if not path.isascii() or " " in path or not path.isprintable():
        path = path.encode("utf-8", "surrogateescape").decode("latin-1").translate(_ESCAPED)
    return path


def printable(text: str) -> str:
    """Return a text without the bytes that were no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _literal_path(path: str) -> str:
    """Return a URL's path as patterns are compared with it: `$` and `*` stand for themselves (RFC 9309 2.2.3)."""
    path = normal_path(path)
    if "$" in path or "*" in path:
        path = path.replace("$", "%24").replace("*", "%2A")
    return path
