"""Which hosts does a pattern name?

`example.org` names that host, `*.example.org` every host below it (not itself), `*` every host. A port at its end
(`example.org:8443`) names that port only; without one a pattern names all ports. The narrowest pattern that matches
counts: a name before a pattern, then the longer one, then one with a port.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.core.url.forms import canonical, host_of

EVERY_HOST = "*"
EXPECTED = "expected example.org, *.example.org, or either with a port"


def normal_pattern(text: str) -> str | None:
    """Return a pattern as it is compared with hosts, in lower case and in ASCII; None if it is none."""
    text = text.strip()
    if text == EVERY_HOST:
        return text
    star = "*." if text.startswith("*.") else ""
    rest = text.removeprefix(star)
    if not rest or any(each in rest for each in "*/?#@\\") or any(each.isspace() for each in rest):
        return None
    url = canonical(f"https://{rest}/")  # a port of 443 is as good as none
    if url is None:
        return None
    host = host_of(url)
    if star and (host[0] == "[" or host.replace(".", "").isdigit()):
        return None  # there is nothing below an address
    return star + url.removeprefix("https://").removesuffix("/")


def names_host(pattern: str, host: str, authority: str = "") -> bool:
    """Return whether a normal pattern names a host, which has this authority (with a port, if that is not usual)."""
    if pattern == EVERY_HOST:
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) or authority.endswith(pattern[1:])
    return pattern in (host, authority)


def narrowest_first(patterns: Iterable[str]) -> list[str]:
    return sorted(patterns, key=lambda pattern: (pattern.startswith("*"), -len(pattern), pattern))
