"""Who does not want to be crawled? `blocked.txt` in the crawl folder, and `--block-host`.

A host or registrable domain a line, `#` begins a comment; a URL stands for its host. The file
is looked at once a second and read when it has changed, so that an entry holds within
seconds. A line that names nothing is passed over: a slip must not end a crawl. Cost: one
`stat` a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gossamer.core.url import canonical, host_of

FILE_NAME = "blocked.txt"
LOOK_EVERY_S = 1.0


class OptOutList:
    """The names of those who opted out."""

    def __init__(self, path: Path, fixed: Iterable[str] = ()) -> None:
        self._path = path
        self._fixed = frozenset(name for text in fixed if (name := name_in(text)))
        self._seen: tuple[int, int, int] | None = (0, 0, 0)  # nothing that a file can look like
        self._next_look_at = float("-inf")

    def changed(self, now: float) -> frozenset[str] | None:
        """Return all names where they may have changed since the last call, else None. Looks once a second."""
        if now < self._next_look_at:
            return None
        self._next_look_at = now + LOOK_EVERY_S
        looks = self._looks()
        if looks == self._seen:
            return None
        self._seen = looks
        return self._fixed | self._names()

    def _looks(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _names(self) -> frozenset[str]:
        try:
            lines = self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return frozenset()
        return frozenset(name for line in lines if (name := name_in(line)))


def name_in(line: str) -> str:
    """Return the host or domain that a line names in canonical form, or the empty string."""
    text = line.partition("#")[0].strip().removeprefix("*.")
    if not text:
        return ""
    url = canonical(text if "://" in text else f"http://{text}/")
    return host_of(url) if url is not None else ""
