"""A page's directives for robots.

The words of `<meta name=robots>` and of `X-Robots-Tag` are combined; the stricter wins.
Words for another robot by name do not count. Unknown words are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

ROBOTS_TOKEN = "gossamer"  # noqa: S105 - a name, not a secret

_NOINDEX = frozenset({"noindex", "none"})
_NOFOLLOW = frozenset({"nofollow", "none"})
_NOARCHIVE = frozenset({"noarchive", "nocache"})
# Words with a value after a colon, which look like the name of a robot.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


class Directives(Struct, frozen=True, gc=False):
    """What a page asks of robots."""

    is_noindex: bool = False
    is_nofollow: bool = False
    is_noarchive: bool = False


NO_DIRECTIVES = Directives()


def directives_of(words: Iterable[str]) -> Directives:
    """Return what a set of words in lower case asks for."""
    given = frozenset(words)
    return Directives(bool(given & _NOINDEX), bool(given & _NOFOLLOW), bool(given & _NOARCHIVE))


def meta_words(content: str) -> list[str]:
    return [word.strip().lower() for word in content.split(",")]


def header_words(values: Iterable[str], token: str = ROBOTS_TOKEN) -> list[str]:
    """Return the words of X-Robots-Tag headers that are for every robot or for the one with this token.

    A name applies from its position to the end of its header: `otherbot: noindex, nofollow`.
    """
    words: list[str] = []
    for value in values:
        is_ours = True
        for part in value.split(","):
            name, colon, rest = part.partition(":")
            if colon and name.strip().lower() not in _VALUED:
                is_ours = name.strip().lower() == token
                part = rest  # noqa: PLW2901
            if is_ours:
                words.append(part.strip().lower())
    return words
