"""Does this URL belong to the crawl, and by which rule?

The result is the name of the rule that refused, or None. The order of the rules: blocked
host, distance from the seeds, include patterns (which win over what follows), extension, exclude
patterns. Include patterns admit nothing that is out of reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.patterns import first_match, union


class Reach(StrEnum):
    """How far from its seeds a crawl may go."""

    PAGE = "page"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"
    ANY = "any"


# Whole path segments, so that /login-tips and /administration are not excluded.
DEFAULT_EXCLUDES = (r"/(?:login|log-in|signin|sign-in|logout|log-out|admin|wp-admin|cart|basket|checkout)(?:/|\?|$)",)

# Never a page, and never contains links. By the types that servers send with them, so that a crawl that accepts a type
# does not skip its extensions.
_SKIPPED_BY_TYPE = {
    "application/java-archive": "jar war",
    "application/javascript": "js",
    "application/json": "map",
    "application/octet-stream": "bin deb dmg exe iso msi",
    "application/vnd.debian.binary-package": "deb",
    "application/vnd.microsoft.portable-executable": "exe",
    "application/vnd.ms-fontobject": "eot",
    "application/vnd.rar": "rar",
    "application/wasm": "wasm",
    "application/x-7z-compressed": "7z",
    "application/x-apple-diskimage": "dmg",
    "application/x-bzip2": "bz2",
    "application/x-debian-package": "deb",
    "application/x-gzip": "gz tgz",
    "application/gzip": "gz tgz",
    "application/x-iso9660-image": "iso",
    "application/x-msdownload": "exe",
    "application/x-msi": "msi",
    "application/x-rar-compressed": "rar",
    "application/x-redhat-package-manager": "rpm",
    "application/x-rpm": "rpm",
    "application/x-shockwave-flash": "swf",
    "application/x-tar": "tar tgz",
    "application/x-xz": "xz",
    "application/zip": "zip",
    "application/zstd": "zst",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/x-ms-wma": "wma",
    "font/otf": "otf",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/jpeg": "jpeg jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tif tiff",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "text/css": "css",
    "text/javascript": "js",
    "video/mp4": "m4v mp4",
    "video/mpeg": "mpeg mpg",
    "video/ogg": "ogg ogv",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/x-ms-wmv": "wmv",
    "video/x-msvideo": "avi",
}
SKIPPED_EXTENSIONS = frozenset(" ".join(_SKIPPED_BY_TYPE.values()).split())
# Pages come first, documents and media after all of them.
DEMOTED_EXTENSIONS = frozenset(
    "csv doc docx epub json odp ods odt pdf ppt pptx ps rdf rss rtf tex tsv txt xls xlsx xml yaml yml".split()
)


def extensions_of(types: Iterable[str]) -> frozenset[str]:
    """Return which of the skipped extensions have one of these types; `image/` stands for all images."""
    wanted = tuple(types)
    found = [
        names
        for media_type, names in _SKIPPED_BY_TYPE.items()
        if media_type in wanted or media_type[: media_type.index("/") + 1] in wanted
    ]
    return frozenset(" ".join(found).split())


def extension_of(url: str) -> str:
    """Return the file extension of a canonical URL's path in lower case, or the empty string."""
    # Searched in the whole URL, without extracting the path: after the last slash before the query.
    query = url.find("?")
    end = query if query >= 0 else len(url)
    dot = url.rfind(".", url.rindex("/", 0, end) + 2, end)
    return url[dot + 1 : end].lower() if dot > 0 and end - dot <= 6 else ""


class Surroundings:
    """What is within reach of seeds: of all seeds of a crawl, or of one that has a scope of its own."""

    def __init__(self, reach: Reach, name: str = "") -> None:
        self.name = name  # for people
        self._area_of = _AREAS.get(reach)  # None: everything is within reach
        self._is_prefix = reach is Reach.PREFIX
        self._areas: set[str] = set()

    def join(self, url: str, host: str) -> bool:
        """Add the surroundings of a seed, or of the target of its redirect; return whether they were outside."""
        area = self._area_of(url, host) if self._area_of is not None else ""
        is_new = area not in self._areas
        self._areas.add(area)
        return is_new

    def contain(self, url: str, host: str) -> bool:
        if self._area_of is None:
            return True
        if self._is_prefix:
            return any(url.startswith(area) for area in self._areas)
        return self._area_of(url, host) in self._areas


class Scope:
    """The scope of one crawl. Seeds, and the targets of their redirects, extend it while it runs."""

    def __init__(
        self,
        reach: Reach,
        *,
        includes: Sequence[str] = (),
        excludes: Sequence[str] = DEFAULT_EXCLUDES,
        blocked_hosts: Iterable[str] = (),
        skipped_extensions: frozenset[str] = SKIPPED_EXTENSIONS,
    ) -> None:
        self._surroundings = Surroundings(reach)
        self._include = union(includes)
        self._exclude_by_default = re.compile("|".join(ours)).search if (ours := _by_default(excludes)) else None
        self._exclude = union([pattern for pattern in excludes if pattern not in DEFAULT_EXCLUDES])
        self._excludes = tuple(excludes)
        self._skipped = skipped_extensions
        self._blocked = frozenset(host.lower() for host in blocked_hosts)

    def block(self, hosts: Iterable[str]) -> None:
        """Refuse these hosts and domains from now on, and no others."""
        self._blocked = frozenset(host.lower() for host in hosts)

    def join(self, url: str, host: str) -> bool:
        """Add the surroundings of a seed, or of the target of its redirect; return whether they were outside."""
        return self._surroundings.join(url, host)

    def contains(self, url: str, host: str) -> bool:
        """Return whether a URL is within reach of the crawl's seeds, whatever other rules say."""
        return self._surroundings.contain(url, host)

    def refusal(self, url: str, host: str, surroundings: Surroundings | None = None) -> str | None:
        """Return the name of the rule that refuses a canonical URL, or None.

        `surroundings` are those of a seed that has a scope of its own: they replace the crawl's.
        """
        if self._blocked and (host in self._blocked or registrable_domain(host) in self._blocked):
            return "blocked_host"
        if not (surroundings or self._surroundings).contain(url, host):
            return "out_of_scope"
        if self._include is not None and self._include(url):
            return None
        if extension_of(url) in self._skipped:
            return "extension"
        if self._exclude_by_default is not None and self._exclude_by_default(url):
            return "exclude_pattern"
        if self._exclude is not None and self._exclude(url):
            return "exclude_pattern"
        return None

    def requisite_refusal(self, url: str, host: str, *, is_foreign: bool = False) -> str | None:
        """Return the name of the rule that refuses what a page needs, or None: only what the operator has excluded.

        Whatever is made for pages does not matter: how far from the seeds, extensions, and the patterns of our own,
        which count only for what a page of another domain names.
        """
        if self._blocked and (host in self._blocked or registrable_domain(host) in self._blocked):
            return "blocked_host"
        excludes = [self._exclude, self._exclude_by_default if is_foreign else None]
        if not any(exclude is not None and exclude(url) for exclude in excludes):
            return None
        return None if self._include is not None and self._include(url) else "exclude_pattern"

    def explain(self, rule: str, url: str) -> str:
        """Return what in a rule refuses a URL: the pattern, or the extension; empty for other rules."""
        if rule == "exclude_pattern":
            return first_match(self._excludes, url)
        return f".{extension_of(url)}" if rule == "extension" else ""


def _prefix_of(url: str, _host: str) -> str:
    bare = url.partition("?")[0]
    return bare[: bare.rindex("/") + 1]


# What a URL has in common with the seeds that put it in scope.
_AREAS: Mapping[Reach, Callable[[str, str], str]] = {
    Reach.PAGE: lambda url, _host: url,
    Reach.PREFIX: _prefix_of,
    Reach.HOST: lambda _url, host: host,
    Reach.DOMAIN: lambda _url, host: registrable_domain(host),
}


def _by_default(excludes: Sequence[str]) -> list[str]:
    """Return which of the patterns are ours: they cannot backtrack, and `re` takes a third of the time of RE2."""
    return [pattern for pattern in excludes if pattern in DEFAULT_EXCLUDES]
