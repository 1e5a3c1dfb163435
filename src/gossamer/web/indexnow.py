"""What does a change notice say, and is it well formed? The requests of the IndexNow protocol.

    GET /indexnow?url=U&key=K[&keyLocation=L]
    POST /indexnow    {"host": H, "key": K, "keyLocation": L, "urlList": [U, …]}    at most 10,000 URLs

All URLs are of one host, which proves that the notice is its own by a file with the key: at its root
(`/K.txt`), or at `keyLocation`, and then only for URLs below the folder of that file. Pure; the answers to what is
wrong are those of the protocol: 400 for what cannot be read, 422 for URLs of other hosts and for keys of another form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from gossamer.core.url.forms import canonical, host_of, path_of
from gossamer.web.http import BadRequestError, HttpRequest

PATH = "/indexnow"
MAX_URLS = 10_000
MAX_URL_CHARS = 2048
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
_FIELDS = ("url", "key", "keyLocation")


class Notice(Struct, frozen=True):
    """URLs that were reported as changed, and the key that proves the right to report them."""

    host: str  # with its port, if that is not the usual one
    key: str
    key_url: str  # of the file that has to contain the key
    urls: tuple[str, ...]  # canonical, each once


class _Post(Struct, frozen=True, rename="camel"):
    host: str
    key: str
    url_list: list[str]
    key_location: str = ""


def notice_in(request: HttpRequest) -> Notice:
    """Return the notice in a request; raise `BadRequestError` if there is none."""
    if request.method == "POST":
        return _posted(request)
    return _asked(request.query)


def _asked(query: Sequence[tuple[str, str]]) -> Notice:
    fields: dict[str, str] = {}
    for name, value in query:
        if name in _FIELDS and name in fields:
            raise BadRequestError(400, f"{name} is given twice; expected one URL, or a POST with urlList")
        fields[name] = value
    for name in ("url", "key"):
        if not fields.get(name):
            raise BadRequestError(400, f"{name} is missing; expected {PATH}?url=URL&key=KEY")
    url = _canonical(fields["url"])
    return _notice(_authority(url), fields["key"], fields.get("keyLocation", ""), [url])


def _posted(request: HttpRequest) -> Notice:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequestError(400, "the body has another type; expected Content-Type: application/json")
    try:
        post = msgspec.json.decode(request.body, type=_Post)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        shape = '{"host": …, "key": …, "keyLocation": …, "urlList": […]}'
        raise BadRequestError(400, f"the body is not a notice: {error}; expected {shape}") from error
    if not 1 <= len(post.url_list) <= MAX_URLS:
        raise BadRequestError(400, f"urlList has {len(post.url_list)} URLs; expected 1 to {MAX_URLS}")
    host = canonical(f"https://{post.host}/")
    if host is None or path_of(host) != "/" or "@" in post.host:
        raise BadRequestError(400, "host is not the name of a host; expected one like www.example.org")
    urls = list(dict.fromkeys(map(_canonical, post.url_list)))
    return _notice(_authority(host), post.key, post.key_location, urls)


def _notice(host: str, key: str, location: str, urls: list[str]) -> Notice:
    if not _KEY.fullmatch(key):
        raise BadRequestError(422, "the key has another form; expected 8 to 128 letters, digits and dashes")
    for url in urls:
        if _authority(url) != host:
            raise BadRequestError(422, f"{_shown(url)} is not of the host {_shown(host)}; expected URLs of one host")
    scheme = urls[0].partition(":")[0]
    if not location:
        return Notice(host, key, f"{scheme}://{host}/{key}.txt", tuple(urls))
    key_url = _canonical(location)
    if _authority(key_url) != host:
        raise BadRequestError(422, f"keyLocation is not of the host {_shown(host)}; expected a file there")
    folder = path_of(key_url).partition("?")[0].rpartition("/")[0] + "/"
    for url in urls:
        if not path_of(url).startswith(folder):
            raise BadRequestError(
                422, f"{_shown(url)} is not below {_shown(folder)}; a key file there is for that folder"
            )
    return Notice(host, key, key_url, tuple(urls))


def _canonical(text: str) -> str:
    url = canonical(text) if len(text) <= MAX_URL_CHARS else None
    if url is None:
        raise BadRequestError(
            400, f"{_shown(text)} is not a URL; expected http(s)://… of at most {MAX_URL_CHARS} characters"
        )
    return url


def _authority(url: str) -> str:
    """Return host and port of a canonical URL, as they are in it."""
    return url.partition("://")[2].partition("/")[0] if host_of(url) else ""


def _shown(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"
