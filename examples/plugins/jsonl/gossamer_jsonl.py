"""A sink that writes a line of JSON per page to `pages-NN.jsonl` in the crawl folder, one file per worker."""

from __future__ import annotations

import json
import os
from pathlib import Path

from gossamer.plugins import Answer


def open_sink(folder: Path, worker: int) -> JsonlSink:
    """Return the sink of a worker: see `gossamer.plugins.SinkFactory`."""
    return JsonlSink(folder / f"pages-{worker:02d}.jsonl")


class JsonlSink:
    """See `gossamer.plugins.AnswerSink`."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, answer: Answer) -> None:
        """Append a page in one write, so that a killed process loses none."""
        if answer.is_page:
            line = {"url": answer.url, "title": answer.title, "at": answer.fetched_at, "bytes": len(answer.content)}
            os.write(self._fd, json.dumps(line).encode() + b"\n")

    def sync(self) -> None:
        """Make what was written durable."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Sync, and close the file."""
        os.fsync(self._fd)
        os.close(self._fd)
