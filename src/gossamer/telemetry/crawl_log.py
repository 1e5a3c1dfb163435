"""`crawl.log`: one line per fetch, in the format of Heritrix, for tools that read it.

    time  status  bytes  URL  path  found-on  type  worker  began+ms  digest  source  notes

Fields are separated by spaces; `-` stands for nothing. `status` is that of HTTP, or one of Heritrix's codes if there
was no answer. `path` has a letter per hop from the seed: L link, R redirect, M sitemap, P robots.txt. Lines are
written about once per second; those of the last second before a kill are lost, and pages that the next run recovers
from the archive are in its log. Costs 10 µs per fetch.
"""

from __future__ import annotations

import errno
from base64 import b32encode
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from gossamer.model.errors import DiskFullError
from gossamer.model.records import FetchKind, FetchTask, Outcome, QueuedUrl, Result, Source, UrlId, UrlRecord

FILE_NAME = "crawl.log"
_MAX_PATH = 50  # letters; Heritrix writes a number before longer ones
_LETTERS = {Source.LINK: "L", Source.REDIRECT: "R", Source.SITEMAP: "M", Source.NOTICE: "L", Source.PROBE: "I"}
_EMBEDDED = "E"  # what a page needs to be shown
# The codes of Heritrix for what is no HTTP status.
_CODES = {
    Outcome.DNS_NOT_FOUND: -1,
    Outcome.DNS_FAILED: -1,
    Outcome.CONNECT_FAILED: -2,
    Outcome.CONNECT_TIMEOUT: -2,
    Outcome.TLS_ERROR: -2,
    Outcome.DISCONNECTED: -3,
    Outcome.TIMEOUT: -4,
    Outcome.PROTOCOL_ERROR: -4,
    Outcome.INTERNAL_ERROR: -5,
    Outcome.BLOCKED_ADDRESS: -5001,
}
_OTHER_CODE = -8


class CrawlLog:
    """Appends lines to `crawl.log` in the crawl folder. See `gossamer.ports.FetchLog`."""

    def __init__(
        self, path: Path, look_up: Callable[[UrlId], UrlRecord | None], mask: Callable[[str], str] | None = None
    ) -> None:
        self._path = path
        self._look_up = look_up
        self._mask = mask
        self._file: BinaryIO | None = None
        self._lines: list[str] = []
        self._trace = lru_cache(maxsize=10_000)(self._traced)

    def open(self) -> None:
        """Open the file; lines are added to those of earlier runs."""
        self._file = self._path.open("ab", buffering=0)

    def record(self, task: FetchTask, url: QueuedUrl | None, result: Result, now: float) -> None:
        if result.outcome is Outcome.WORKER_LOST:  # returned to the queue: not ended
            return
        found_on, path = ("", "P") if url is None else self._origin(url)
        began = result.sent_at or task.issued_at
        digest = f"sha1:{b32encode(result.payload_digest).decode()}" if result.payload_digest else "-"
        notes = "" if result.outcome is Outcome.OK else result.outcome.value
        if result.duplicate_of:
            notes = "duplicate:digest"
        fields = (
            _moment(now),
            f"{result.status or _CODES.get(result.outcome, _OTHER_CODE):>5}",
            f"{result.wire_bytes:>10}",
            self._shown(task.url),
            path or "-",
            self._shown(found_on) or "-",
            result.content_type or "unknown",
            f"#{result.worker:03d}",
            f"{_stamp(began)}+{max(0, round(1000 * (result.finished_at - began)))}",
            digest,
            "-",
            notes + (f",{task.attempt}t" if task.attempt else "") or "-",
        )
        self._lines.append(" ".join(fields))

    def _shown(self, url: str) -> str:
        return url if self._mask is None or not url else self._mask(url)

    def _origin(self, url: QueuedUrl) -> tuple[str, str]:
        """Return the URL of the page that a URL was found on, and the path from its seed."""
        if url.source is Source.SEED or not url.parent:
            return "", "M" * (url.kind is FetchKind.SITEMAP)
        found_on, path = self._trace(url.parent)
        return found_on, (path + _letter(url))[-_MAX_PATH:]

    def _traced(self, key: UrlId) -> tuple[str, str]:
        """Return the URL of a row, and the path to it."""
        row = self._look_up(key)
        if row is None:
            return "", ""
        path = ""
        url = row.url
        seen = 0
        while row is not None and row.source is not Source.SEED and row.parent and seen < _MAX_PATH:
            path = _letter(row) + path
            row = self._look_up(row.parent)
            seen += 1
        return url, path

    def flush(self) -> None:
        """Write what was recorded since the last flush."""
        if not self._lines or self._file is None:
            return
        try:
            self._file.write(("\n".join(self._lines) + "\n").encode("utf-8", "replace"))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(f"{self._path}: no room for the log; free some space and resume") from error
            raise
        self._lines.clear()

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H%M%S%f")[:17]


def _letter(found: QueuedUrl | UrlRecord) -> str:
    is_embedded = found.kind is FetchKind.REQUISITE and found.source is Source.LINK
    return _EMBEDDED if is_embedded else _LETTERS[found.source]
