"""The cookies of one origin, in memory: they end with the process, and every worker has its own.

A cookie goes back to the origin that set it (scheme, host and port) and to no other, whatever its Domain says. Path,
Secure, Max-Age and Expires count (RFC 6265). At most 50 cookies of 4 KiB are stored, and at most 8 KiB are sent in a
request; what is beyond that is ignored, so a server cannot make requests grow.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MAX_COOKIES: Final = 50
MAX_COOKIE_BYTES: Final = 4096  # name and value
MAX_SENT_BYTES: Final = 8192
_NEVER: Final = float("inf")


class Cookie(Struct):
    """One cookie. Two with the same name and path are the same."""

    name: str
    value: str
    path: str
    is_secure: bool
    expires_at: float


class CookieJar:
    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str], Cookie] = {}

    def store(self, header: str, url: str, now: float) -> None:
        """Store the cookie of a Set-Cookie header that came with the answer of a URL; an expired one is removed."""
        cookie = cookie_from(header, url, now)
        if cookie is None:
            return
        key = cookie.name, cookie.path
        if cookie.expires_at <= now:
            self._cookies.pop(key, None)
        elif key in self._cookies or self._has_room(now):
            self._cookies[key] = cookie

    def _has_room(self, now: float) -> bool:
        if len(self._cookies) >= MAX_COOKIES:
            self._cookies = {key: each for key, each in self._cookies.items() if each.expires_at > now}
        return len(self._cookies) < MAX_COOKIES

    def header_for(self, url: str, now: float) -> str:
        """Return the Cookie header of a request; empty if no cookie belongs to it."""
        path = _path_of(url)
        is_secure = url.startswith("https:")
        fitting = [
            cookie
            for cookie in self._cookies.values()
            if cookie.expires_at > now and (is_secure or not cookie.is_secure) and _is_below(path, cookie.path)
        ]
        fitting.sort(key=lambda cookie: -len(cookie.path))  # RFC 6265 5.4: the longest path first
        sent: list[str] = []
        room = MAX_SENT_BYTES
        for cookie in fitting:
            pair = f"{cookie.name}={cookie.value}" if cookie.name else cookie.value
            room -= len(pair) + 2
            if room < 0:
                break
            sent.append(pair)
        return "; ".join(sent)


def cookie_from(header: str, url: str, now: float) -> Cookie | None:
    """Return the cookie that a Set-Cookie header sets; None if there is none that is accepted."""
    pair, *attributes = header.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(), value.strip()) if equals else ("", name.strip())
    if not (name or value) or len(name) + len(value) > MAX_COOKIE_BYTES:
        return None
    if any(ord(each) < 32 or ord(each) == 127 for each in name + value):
        return None
    cookie = Cookie(name, value, _default_path(url), is_secure=False, expires_at=_NEVER)
    ages: dict[str, float | None] = {}
    for attribute in attributes:
        key, _, text = attribute.partition("=")
        key = key.strip().lower()
        text = text.strip()
        if key == "path" and text.startswith("/"):
            cookie.path = text
        elif key == "secure":
            cookie.is_secure = True
        elif key in ("max-age", "expires"):
            ages[key] = _end_by_age(text, now) if key == "max-age" else _end_by_date(text)
    end = ages.get("max-age") if ages.get("max-age") is not None else ages.get("expires")
    cookie.expires_at = _NEVER if end is None else end
    if cookie.is_secure and not url.startswith("https:"):
        return None  # set over a connection that anybody could have changed
    return cookie


def _end_by_age(text: str, now: float) -> float | None:
    if not text.removeprefix("-").isdecimal() or len(text) > 15:
        return None
    return now + int(text) if int(text) > 0 else 0.0


def _end_by_date(text: str) -> float | None:
    from email.utils import parsedate_to_datetime  # 5 ms: few crawls store cookies

    try:
        return parsedate_to_datetime(text.replace("-", " ")).timestamp()
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2].partition("?")[0].partition("#")[0]


def _default_path(url: str) -> str:
    """Return the path of a cookie without one: the folder of the page that set it."""
    return _path_of(url).rpartition("/")[0] or "/"


def _is_below(path: str, cookie_path: str) -> bool:
    if not path.startswith(cookie_path):
        return False
    return cookie_path.endswith("/") or path[len(cookie_path) : len(cookie_path) + 1] in ("", "/")
