"""What does a page tell robots about itself?

The words of `<meta name=robots>` and of `X-Robots-Tag`: they only add up, the stricter
wins. Words meant for another robot by name are not ours. Unknown words mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

ROBOTS_TOKEN = "gossamer"  # noqa: S105 - a name, no secret
META_NAMES = frozenset({"robots", ROBOTS_TOKEN})

_NOINDEX = frozenset({"noindex", "none"})
_NOFOLLOW = frozenset({"nofollow", "none"})
_NOARCHIVE = frozenset({"noarchive", "nocache"})
# Words that carry a value after a colon, and so look like the name of a robot.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


class Directives(Struct, frozen=True, gc=False):
    """What is asked of us."""

    is_noindex: bool = False
    is_nofollow: bool = False
    is_noarchive: bool = False


NO_DIRECTIVES = Directives()


def directives_of(words: Iterable[str]) -> Directives:
    """Return what a set of words in lower case asks for."""
    given = frozenset(words)
    return Directives(bool(given & _NOINDEX), bool(given & _NOFOLLOW), bool(given & _NOARCHIVE))


def meta_words(content: str) -> list[str]:
    """Return the words of a robots meta element."""
    return [word.strip().lower() for word in content.split(",")]


def header_words(values: Iterable[str]) -> list[str]:
    """Return the words of X-Robots-Tag headers that are for every robot or for us.

    A name holds from where it stands to the end of its header: `otherbot: noindex, nofollow`.
    """
    words: list[str] = []
    for value in values:
        is_ours = True
        for part in value.split(","):
            name, colon, rest = part.partition(":")
            if colon and name.strip().lower() not in _VALUED:
                is_ours = name.strip().lower() == ROBOTS_TOKEN
                part = rest  # noqa: PLW2901
            if is_ours:
                words.append(part.strip().lower())
    return words
