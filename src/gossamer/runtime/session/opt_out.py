"""Who does not want to be crawled? `blocked.txt` in the crawl folder, and `--block-host`.

One host or registrable domain per line, `#` starts a comment; a URL means its host. The
file is checked once per second and read when it has changed, so that an entry takes effect
within seconds: the names are submitted to the hub as a command. A line without a valid name is
ignored: a typo must not end a crawl. Cost: one `stat` per second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from gossamer.core.url.domains import registrable_domain
from gossamer.core.url.forms import canonical, host_of
from gossamer.model.commands import SetOptOuts, Submit
from gossamer.model.errors import UsageError

FILE_NAME = "blocked.txt"
LOOK_INTERVAL_S = 1.0


class OptOutFile:
    """The hosts and domains that opted out, and whether they have changed."""

    def __init__(self, path: Path, fixed: Iterable[str] = ()) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None
        self.set_fixed(fixed)

    def set_fixed(self, names: Iterable[str]) -> None:
        """Replace the names that are blocked besides those in the file."""
        self._fixed = frozenset(name for text in names if (name := name_in(text)))
        self._stamp = (0, 0, 0)  # no file has this one

    def changed(self) -> frozenset[str] | None:
        """Return all names if they may have changed since the last call, otherwise None."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return self._fixed | self._names()

    @property
    def is_there(self) -> bool:
        """Whether there was a file when it was last checked."""
        return self._stamp not in (None, (0, 0, 0))

    def _read_stamp(self) -> tuple[int, int, int] | None:
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


class OptOutWatch:
    """Submits the names to the hub whenever they change."""

    def __init__(self, file: OptOutFile, submit: Submit) -> None:
        self._file = file
        self._submit = submit
        self._elsewhere: frozenset[str] = frozenset()
        self.names: frozenset[str] = frozenset()  # of this node

    def check(self) -> None:
        """Submit the names if they may have changed. Call once before the crawl starts: they precede every task."""
        names = self._file.changed()
        if names is not None:
            self.names = names
            self._submit(SetOptOuts(names | self._elsewhere))

    @property
    def all_names(self) -> frozenset[str]:
        """What is blocked, here or by another node."""
        return self.names | self._elsewhere

    @property
    def has_file(self) -> bool:
        """Whether this node has a file of its own."""
        return self._file.is_there

    def set_fixed(self, names: Iterable[str]) -> frozenset[str]:
        """Replace the names that are blocked besides those in the file; return all that are blocked now."""
        self._file.set_fixed(names)
        self.names = self._file.changed() or frozenset()
        return self.names | self._elsewhere

    def learn(self, elsewhere: frozenset[str]) -> None:
        """Block what other nodes of the cluster block too."""
        if elsewhere != self._elsewhere:
            self._elsewhere = elsewhere
            self._submit(SetOptOuts(self.names | elsewhere))

    async def run(self) -> None:
        """Check once per second until cancelled."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            self.check()


def check_not_listed(folder: Path, names: Iterable[str]) -> None:
    """Raise if the file in a crawl folder blocks a name: no command can end that."""
    listed = OptOutFile(folder / FILE_NAME).changed() or frozenset()
    for name in names:
        if name_in(name) in listed:
            raise UsageError(f"{name}: {folder / FILE_NAME} blocks it; remove its line there")


def blocked_names(folder: Path, fixed: Iterable[str]) -> frozenset[str]:
    """Return the hosts and domains that the next run of a crawl would not ask."""
    return OptOutFile(folder / FILE_NAME, fixed).changed() or frozenset()


def blocked_among(seeds: Sequence[str], blocked: frozenset[str]) -> str:
    """Return for people which seeds are of a blocked host; empty if none is."""
    if not blocked:
        return ""
    hosts = [name_in(line.partition("\t")[0]) for line in seeds]
    names = sorted({host for host in hosts if host in blocked or registrable_domain(host) in blocked})
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    what = "is blocked" if len(names) == 1 else "are blocked"
    return f"; {names[0]}{more} {what}: nothing is fetched there before 'gossamer unblock'"


def name_in(line: str) -> str:
    """Return the host or domain that a line names in canonical form, or the empty string."""
    text = line.partition("#")[0].strip().removeprefix("*.")
    if not text:
        return ""
    url = canonical(text if "://" in text else f"http://{text}/")
    return host_of(url) if url is not None else ""
