"""May this URL be fetched according to the robots.txt of its origin, and which line decides?

RFC 9309; where the RFC is silent, as the large search engines do it: groups for the same
agent are merged, unknown lines do not end a group, common typos are accepted, the longest
matching pattern wins and `Allow` wins a tie. Paths and patterns are brought to one
percent-encoding before they are compared. The text is read in one pass, in which only the groups for one
product token and for everybody are stored; how rules are matched, and what bounds that, is in `match`.
The first `MAX_ROBOTS_BYTES` are read, whole lines only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct, field

from gossamer.core.robots.match import ALLOWED, RobotsDecision, RuleMatcher, normal_path, printable
from gossamer.foundation.expressions import expression

MAX_ROBOTS_BYTES = 500 << 10  # RFC 9309 2.5: at least
MAX_LINE_CHARS = 16_663  # 8 times the maximum URL length of browsers, less one; the limit of Google's parser
MAX_CRAWL_DELAY_S = 3600.0
MAX_SITEMAPS = 100  # that one robots.txt may list
MAX_SITEMAP_CHARS = 8192  # twice the longest URL that is queued
MAX_USAGE_CHARS = 1000  # of all preferences for the use of content together
LINES_PER_SLICE = 4_000  # 10 ms

_AGENT, _ALLOW, _DISALLOW, _DELAY, _SITEMAP, _USAGE = range(1, 7)
_KINDS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), _AGENT),
    "allow": _ALLOW,
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), _DELAY),
    **dict.fromkeys(("sitemap", "site-map"), _SITEMAP),
    **dict.fromkeys(("content-usage", "content-signal"), _USAGE),
}

# A line that begins like one of these. Without this, 500 KB of others take 130 ms. (No flag for upper and lower case:
# with it, the search would not look for the end of a line first.)
_LINE = (
    r"\n([\0\t\v\f\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*+"  # NUL, and spaces but \n
    r"(?:[uU][sS][eE][rR]|[aA][lL][lL][oO][wW]|[dD][iI][sSaA][sS]?[aAlL]"
    r"|[cC][rR][aA][wW][lL]|[sS][iI][tT][eE]|[cC][oO][nN][tT][eE][nN][tT]-)[^\n]*)"
)
_PRODUCT_TOKEN = expression(r"[A-Za-z_-]+")  # RFC 9309 2.2.1
_NAME_WITH_DIGITS = expression(r"[A-Za-z0-9_-]+")  # as some robots are called nevertheless
_COMPATIBLE = expression(r"\(compatible;\s*([A-Za-z0-9_-]+)")


class _Section(Struct):
    """What a file says to one agent, in all groups that address it."""

    rules: dict[str, int] = field(default_factory=dict)  # see `RuleMatcher`
    delay_s: float | None = None


class RobotsRules:
    """The rules of one robots.txt that apply to one product token.

    The rules themselves can be shed to save memory: then only what concerns the whole host is left, and they must be
    restored before the next decision.
    """

    __slots__ = (
        "__weakref__",
        "_matcher",
        "crawl_delay_s",
        "key",
        "rule_count",
        "sitemaps",
        "sitemaps_left_out",
        "text_bytes",
        "usage",
    )

    def __init__(
        self,
        matcher: RuleMatcher | None,
        *,
        crawl_delay_s: float | None = None,
        sitemaps: Sequence[str] = (),
        usage: Sequence[str] = (),
        text_bytes: int = 0,
    ) -> None:
        self._matcher = matcher
        self.rule_count = matcher.rule_count if matcher is not None else UNKNOWN
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = list(sitemaps[:MAX_SITEMAPS])
        self.sitemaps_left_out = len(sitemaps) - len(self.sitemaps)
        self.usage = list(usage)  # content-usage preferences, as written
        self.text_bytes = text_bytes  # of the robots.txt
        self.key = b""  # by which equal texts are found; empty if it is not shared

    def decide(self, path: str) -> RobotsDecision:
        """Decide on a path with its query."""
        if path == "/robots.txt" or not self.rule_count:
            return ALLOWED
        if self._matcher is None:
            raise RuntimeError("rules of a robots.txt were shed, and not restored before a decision")
        return self._matcher.decide(path)

    def is_allowed(self, path: str) -> bool:
        """Return whether a path with its query may be fetched."""
        return self.decide(path).is_allowed

    def rules(self) -> list[RobotsDecision]:
        """Return the rules one by one, each with its line."""
        return self._matcher.rules() if self._matcher is not None else []

    @property
    def rules_beyond(self) -> int:
        """How many rules are beyond the limits, and decided by what they begin with."""
        return self._matcher.rules_beyond if self._matcher is not None else 0

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        texts = sum(map(len, self.sitemaps)) + sum(map(len, self.usage))
        return texts + (self._matcher.size_bytes if self._matcher is not None else 0)

    @property
    def is_shed(self) -> bool:
        """Whether the rules must be restored before a decision."""
        return self._matcher is None

    def shed(self) -> None:
        """Drop the rules, and the sitemaps, which are offered when the text arrives."""
        self._matcher = None
        self.sitemaps = []

    def restore(self, again: RobotsRules) -> None:
        """Take the rules over from the same text, read again."""
        self._matcher = again._matcher
        self.sitemaps = again.sitemaps


UNKNOWN = -1  # rules: the text was not read yet
ALLOW_ALL = RobotsRules(RuleMatcher("", {}))


def parse_robots(body: bytes, token: str) -> RobotsRules:
    """Return the rules of a robots.txt that apply to the given product token."""
    reading = RobotsReading(body, token)
    while (rules := reading.read_slice()) is None:
        pass
    return rules


class RobotsReading:
    """A robots.txt that is read in slices: 500 KB of rules take 100 ms, and more on a slow machine."""

    def __init__(self, body: bytes, token: str) -> None:
        self._text = _decoded(_cut(body)).replace("\r\n", "\n").replace("\r", "\n")
        self._text_bytes = len(body)
        self._reader = _Reader(token.lower())
        self._lines = re.finditer(_LINE, "\n" + self._text)
        self._is_last = False

    def read_slice(self) -> RobotsRules | None:
        """Read the next lines, or make the rules if none are left; None as long as there is more to do."""
        reader = self._reader
        if self._is_last:
            section = reader.own if reader.is_named else reader.everybody
            matcher = RuleMatcher(self._text if section.rules else "", section.rules)
            return RobotsRules(
                matcher,
                crawl_delay_s=section.delay_s,
                sitemaps=reader.sitemaps,
                usage=reader.usage,
                text_bytes=self._text_bytes,
            )
        seen = reader.seen
        read = reader.read
        lines = list(islice(self._lines, LINES_PER_SLICE))
        for found in lines:
            line = found[1]
            if line not in seen:
                read(line, found.start())
        self._is_last = len(lines) < LINES_PER_SLICE
        return None


class _Reader:
    """The lines of a robots.txt, read one after the other.

    Which other agents a group addresses does not matter: only whether it addresses our token, or everybody.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self.own = _Section()
        self.everybody = _Section()
        self.is_named = False  # a group addresses our token
        self.sitemaps: list[str] = []
        self.usage: list[str] = []
        self._usage_chars = 0
        # Lines of the current group, as written, that change nothing if they come again: those that name agents until
        # the first rule, then rules.
        self.seen: set[str] = set()
        self._names: dict[str, bool] = {}  # of agents: whether it is ours
        self._addressed: list[_Section] = []  # by the current group, so far
        self._has_group = False
        self._is_closed = True  # a rule was read: the next user-agent line starts a new group

    def read(self, line: str, offset: int) -> None:
        key, value = _key_and_value(line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS])
        kind = _KINDS.get(key)
        if kind is None:
            return
        if kind is _AGENT:
            self._add_agent(value)
            self.seen.add(line)
        elif kind is _SITEMAP:
            if 0 < len(value) <= MAX_SITEMAP_CHARS:
                self.sitemaps.append(printable(value))
        elif kind is _USAGE:
            self._add_usage(key, value)
        elif self._has_group and kind is _DELAY:
            self._add_delay(value)
        elif self._has_group:
            if not self._is_closed:
                self._is_closed = True
                self.seen.clear()
            self.seen.add(line)
            if value and self._addressed:
                self._add_rule(value, 2 * offset + (kind is _ALLOW))

    def _add_agent(self, value: str) -> None:
        self._has_group = True
        if self._is_closed:
            self._is_closed = False
            self._addressed = []
            self.seen.clear()
        if value == "*" or (value.startswith("*") and value[1:2].isspace()):
            self._address(self.everybody)
            return
        if not value[: len(self._token)].lower().startswith(self._token):
            return
        is_ours = self._names.get(value)
        if is_ours is None:
            is_ours = self._names[value] = _is_name_of(self._token, value)
        if is_ours:
            self.is_named = True
            self._address(self.own)

    def _address(self, section: _Section) -> None:
        if not any(each is section for each in self._addressed):  # a group may name an agent thousands of times
            self._addressed.append(section)

    def _add_usage(self, key: str, value: str) -> None:
        usage = printable(f"{key}: {value}")
        if value and self._usage_chars < MAX_USAGE_CHARS:
            self._usage_chars += len(usage)
            self.usage.append(usage[:MAX_USAGE_CHARS])

    def _add_delay(self, value: str) -> None:
        """Set a delay. It is no rule, so it does not end a group; it speaks to those who were named before it."""
        try:
            delay_s = float(value.replace(",", ".", 1))
        except ValueError:
            return
        if math.isnan(delay_s) or delay_s < 0:
            return
        for section in self._addressed:
            section.delay_s = max(section.delay_s or 0.0, min(delay_s, MAX_CRAWL_DELAY_S))

    def _add_rule(self, value: str, code: int) -> None:
        pattern = normal_path(value if value[0] in "/*$" else "/" + value)
        if "$" in pattern[:-1]:
            pattern = pattern[:-1].replace("$", "%24") + pattern[-1]  # only the last one is an anchor
        patterns = [pattern]
        if code & 1 and pattern.endswith(("/index.html", "/index.htm")):
            # Allowing the index file means allowing the folder that serves it.
            patterns.append(pattern[: pattern.rindex("/") + 1] + "$")
        for section in self._addressed:
            for each in patterns:
                known = section.rules.get(each)
                if known is None or (code & 1) > (known & 1):
                    section.rules[each] = code


def _is_name_of(token: str, value: str) -> bool:
    """Return whether a line with this value, which begins like a product token, addresses it."""
    # `User-agent: Bot2` addresses Bot2, and by the letter of the RFC, which knows no digits, Bot.
    names = (form.match(value) for form in (_PRODUCT_TOKEN, _NAME_WITH_DIGITS))
    return any(name is not None and name.group().lower() == token for name in names)


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


def _key_and_value(line: str) -> tuple[str, str]:
    line = line.partition("#")[0].strip(" \t\f\v\0")
    key, colon, value = line.partition(":")
    if not colon:
        # A line without a colon that still has two words.
        words = line.split(None, 1)
        if len(words) != 2 or words[0].lower() not in _KINDS:
            return "", ""
        key, value = words
    return key.strip().lower(), value.strip()
