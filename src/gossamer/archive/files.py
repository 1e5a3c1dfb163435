"""Pages as plain files: `files/{host}/{sha1 of the URL}.html`, for tools that read files only.

Names come from hashes, never from what a server sent, so no page can leave its folder or
use another's name. Files are written atomically. `sync` makes everything written so far
durable with one call for the whole file system.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
from pathlib import Path

from gossamer.model.errors import DiskFullError
from gossamer.model.records import FetchKind, Outcome, Result
from gossamer.ports.page_sink import FetchedPage, Volume

_UNSAFE = re.compile(r"[^a-z0-9.-]")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def file_name(url: str) -> str:
    """Return the name of a page's file within its host's folder."""
    return hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest() + ".html"


def host_folder(host: str) -> str:
    """Return the folder of a host: its name, with unusual characters replaced, never empty and never dots only."""
    return _UNSAFE.sub("_", host.lower()).strip(".")[:200] or "_"


def _write(path: Path, content: bytes) -> None:
    """Write a file, but not what a link names that somebody has put in its place."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(fd, "wb", buffering=0) as file:
        file.write(content)


class FileSink:
    """Writes pages below one folder. See `gossamer.ports.page_sink.PageSink`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()
        self._is_dirty = False

    @property
    def volume(self) -> Volume:
        """Nothing: it does not compress."""
        return Volume()

    def prepare(self, page: FetchedPage) -> None:
        """Do nothing."""

    def write(self, page: FetchedPage, result: Result) -> None:
        """Store a page; other answers have no file."""
        if page.task.kind is FetchKind.PAGE and page.exchange.outcome is Outcome.OK:
            self.store(page.exchange.url, page.task.host, page.exchange.content)

    def close(self) -> None:
        """Make what was written durable; no file is open."""
        self.sync()

    def store(self, url: str, host: str, content: bytes) -> Path:
        """Store the decoded body of a page; one stored before under the same URL is replaced."""
        name = host_folder(host)
        folder = self._folder / name
        try:
            if name not in self._known:
                folder.mkdir(parents=True, exist_ok=True)
                self._known.add(name)
            path = folder / file_name(url)
            unfinished = path.with_suffix(".tmp")
            _write(unfinished, content)
            unfinished.replace(path)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise DiskFullError(f"{folder}: no room for the page; free some space and resume") from error
            raise
        self._is_dirty = True
        return path

    def sync(self) -> None:
        """Make what was written so far durable."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                os.sync()
        finally:
            os.close(fd)
