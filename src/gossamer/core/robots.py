"""May this URL be fetched according to the robots.txt of its origin, and which line decides?

RFC 9309; where the RFC is silent, as the large search engines do it: groups for the same
agent are merged, unknown lines do not end a group, common typos are accepted, the longest
matching pattern wins and `Allow` wins a tie. Paths and patterns are brought to one
percent-encoding before they are compared. Matching is linear in the URL for every pattern
(no regular expressions), and rules without wildcards cost one dictionary look-up for
each distinct length, so a file with 20,000 rules is as quick as one with 20.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from msgspec import Struct

MAX_ROBOTS_BYTES = 1 << 20
MAX_LINE_CHARS = 16_663  # 8 times the maximum URL length of browsers, less one; the limit of Google's parser
MAX_CRAWL_DELAY_S = 3600.0

_AGENT_KEYS = frozenset({"user-agent", "useragent", "user agent"})
_ALLOW_KEYS = frozenset({"allow"})
_DISALLOW_KEYS = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
_DELAY_KEYS = frozenset({"crawl-delay", "crawldelay", "crawl delay"})
_SITEMAP_KEYS = frozenset({"sitemap", "site-map"})
_USAGE_KEYS = frozenset({"content-usage", "content-signal"})
_KNOWN_KEYS = _AGENT_KEYS | _ALLOW_KEYS | _DISALLOW_KEYS | _DELAY_KEYS | _SITEMAP_KEYS | _USAGE_KEYS

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_PRODUCT_TOKEN = re.compile(r"[A-Za-z_-]+")  # RFC 9309 2.2.1
_NAME_WITH_DIGITS = re.compile(r"[A-Za-z0-9_-]+")  # as some robots are called nevertheless
_COMPATIBLE = re.compile(r"\(compatible;\s*([A-Za-z0-9_-]+)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NEEDS_ESCAPE = re.compile(r"[^\x21-\x7e]")


class RobotsDecision(Struct, frozen=True):
    """The decision, and the line of robots.txt behind it (0 if no line matches the path)."""

    is_allowed: bool
    line_number: int = 0
    line: str = ""


@dataclass(slots=True)
class _Rule:
    pattern: str
    is_allow: bool
    line_number: int
    line: str

    @property
    def precedence(self) -> tuple[int, bool]:
        return len(self.pattern), self.is_allow


@dataclass(slots=True)
class _Group:
    agents: set[str] = field(default_factory=set)
    rules: list[_Rule] = field(default_factory=list)
    delays: list[tuple[frozenset[str], float]] = field(default_factory=list)  # with the agents named before the line
    is_closed: bool = False  # a rule was read: the next user-agent line starts a new group


class RobotsRules:
    """The rules of one robots.txt that apply to one product token."""

    def __init__(self, rules: list[_Rule], crawl_delay_s: float | None, sitemaps: list[str], usage: list[str]) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        self.usage = usage  # content-usage preferences, as written
        self.rule_count = len(rules)
        self._literal: dict[str, _Rule] = {}
        self._wild: list[_Rule] = []
        for rule in rules:
            if "*" in rule.pattern or rule.pattern.endswith("$"):
                self._wild.append(rule)
            else:
                known = self._literal.get(rule.pattern)
                if known is None or rule.is_allow > known.is_allow:
                    self._literal[rule.pattern] = rule
        self._lengths = sorted({len(pattern) for pattern in self._literal}, reverse=True)
        self._wild.sort(key=lambda rule: rule.precedence, reverse=True)

    def decide(self, path: str) -> RobotsDecision:
        """Decide on a path with its query."""
        if path == "/robots.txt":
            return _ALLOWED
        path = _literal_path(path)
        best = next((self._literal[path[:n]] for n in self._lengths if path[:n] in self._literal), None)
        for rule in self._wild:
            if best is not None and rule.precedence <= best.precedence:
                break
            if _matches(rule.pattern, path):
                best = rule
                break
        return _ALLOWED if best is None else RobotsDecision(best.is_allow, best.line_number, best.line)

    def is_allowed(self, path: str) -> bool:
        """Return whether a path with its query may be fetched. Without rules nothing is computed."""
        return not self.rule_count or self.decide(path).is_allowed


_ALLOWED = RobotsDecision(True)
ALLOW_ALL = RobotsRules([], None, [], [])


def parse_robots(body: bytes, token: str) -> RobotsRules:
    """Return the rules of a robots.txt that apply to the given product token."""
    groups: list[_Group] = []
    sitemaps: list[str] = []
    usage: list[str] = []
    for number, line in enumerate(_LINE_ENDS.split(_decoded(_cut(body))), 1):
        key, value = _key_and_value(line[:MAX_LINE_CHARS])
        if key in _AGENT_KEYS:
            _add_agent(groups, value)
        elif key in _SITEMAP_KEYS and value:
            sitemaps.append(_printable(value))
        elif key in _USAGE_KEYS and value:
            usage.append(_printable(f"{key}: {value}"))
        elif groups and key in _DELAY_KEYS:
            _add_delay(groups[-1], value)
        elif groups and (key in _ALLOW_KEYS or key in _DISALLOW_KEYS):
            _add_rule(groups[-1], value, key in _ALLOW_KEYS, number, line)
    agent = token.lower()
    if not any(agent in group.agents for group in groups):
        agent = "*"
    bound = [group for group in groups if agent in group.agents]
    # Crawl-delay is no rule, so it does not end a group: the user-agent line behind it may belong to the same group.
    # It still speaks only to those who were named before it.
    delays = [delay for group in bound for agents, delay in group.delays if agent in agents]
    rules = [rule for group in bound for rule in group.rules]
    return RobotsRules(rules, max(delays) if delays else None, sitemaps, usage)


def product_token(user_agent: str) -> str:
    """Return the name in a User-Agent by which robots.txt can address it; empty if there is none.

    That is its first product: `Name/1.0 (+https://example.org)`. If that is a browser's, the one which claims to be
    compatible: `Mozilla/5.0 (compatible; Name/1.0; ...)`; the User-Agent of a browser itself names no robot.
    """
    first = _NAME_WITH_DIGITS.match(user_agent)
    if first is None or not any(char.isalpha() for char in first.group()):
        return ""
    if first.group().lower() != "mozilla":
        return first.group().lower()
    compatible = _COMPATIBLE.search(user_agent)
    return compatible.group(1).lower() if compatible is not None else ""


def _cut(body: bytes) -> bytes:
    """Remove the last line of a body that was cut off: half a rule can forbid everything."""
    if len(body) < MAX_ROBOTS_BYTES:
        return body
    body = body[:MAX_ROBOTS_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def _decoded(body: bytes) -> str:
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    return body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def _printable(text: str) -> str:
    """Return a text without the bytes that were no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _key_and_value(line: str) -> tuple[str, str]:
    line = line.partition("#")[0].strip(" \t\f\v\0")
    key, colon, value = line.partition(":")
    if not colon:
        # A line without a colon that still has two words.
        words = line.split(None, 1)
        if len(words) != 2 or words[0].lower() not in _KNOWN_KEYS:
            return "", ""
        key, value = words
    return key.strip().lower(), value.strip()


def _add_agent(groups: list[_Group], value: str) -> None:
    if not groups or groups[-1].is_closed:
        groups.append(_Group())
    if value == "*" or (value.startswith("*") and value[1:2].isspace()):
        groups[-1].agents.add("*")
        return
    # `User-agent: Bot2` addresses Bot2, and by the letter of the RFC, which knows no digits, Bot.
    for form in (_PRODUCT_TOKEN, _NAME_WITH_DIGITS):
        token = form.match(value)
        if token:
            groups[-1].agents.add(token.group().lower())


def _add_delay(group: _Group, value: str) -> None:
    try:
        delay_s = float(value.replace(",", ".", 1))
    except ValueError:
        return
    if math.isnan(delay_s) or delay_s < 0:
        return
    group.delays.append((frozenset(group.agents), min(delay_s, MAX_CRAWL_DELAY_S)))


def _add_rule(group: _Group, value: str, is_allow: bool, number: int, line: str) -> None:
    group.is_closed = True
    if not value:
        return
    if not value.startswith(("/", "*", "$")):
        value = "/" + value
    pattern = normal_path(value)
    if "$" in pattern[:-1]:
        pattern = pattern[:-1].replace("$", "%24") + pattern[-1]  # only the last one is an anchor
    line = _printable(line.strip())
    group.rules.append(_Rule(pattern, is_allow, number, line))
    if is_allow and pattern.endswith(("/index.html", "/index.htm")):
        # Allowing the index file means allowing the folder that serves it.
        group.rules.append(_Rule(pattern[: pattern.rindex("/") + 1] + "$", True, number, line))


def normal_path(path: str) -> str:
    """Return a path or pattern with unreserved characters unescaped and the other escapes in upper case."""
    if "%" in path:
        path = _ESCAPE.sub(_normal_escape, path)
    if not path.isascii() or " " in path:
        path = _NEEDS_ESCAPE.sub(_escaped, path)
    return path


def _literal_path(path: str) -> str:
    """Return a URL's path as patterns are compared with it: `$` and `*` stand for themselves (RFC 9309 2.2.3)."""
    path = normal_path(path)
    if "$" in path or "*" in path:
        path = path.replace("$", "%24").replace("*", "%2A")
    return path


def _normal_escape(match: re.Match[str]) -> str:
    char = chr(int(match.group(1), 16))
    return char if char in _UNRESERVED else match.group().upper()


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogateescape"))


def _matches(pattern: str, path: str) -> bool:
    """Match a pattern with `*` and a final `$`. The first occurrence of each part is enough, so it is linear."""
    is_anchored = pattern.endswith("$")
    parts = (pattern[:-1] if is_anchored else pattern).split("*")
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    if len(parts) == 1:
        return not is_anchored or at == len(path)
    last = parts.pop() if is_anchored else ""
    for part in parts[1:]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(path) - len(last) >= at and path.endswith(last)
