"""What the search index gets of a crawl: titles and texts, made by as many processes as there are cores.

A page costs a millisecond to be read and taken apart, and a fraction of that to be indexed: so other processes read
ranges of the change feed, and this one indexes what they return, in the order of the feed. Links are not read.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from gossamer.handover.feed.feed import FeedEntry, FolderFeed
from gossamer.reading.folder import CrawlReader

RANGE = 250  # changes that a process reads at a time
MIN_FOR_PROCESSES = 1000  # fewer are read in the time in which processes start
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_SIGN = re.compile(f"([{_UNSPACED}])")
_MARKS = re.compile(r"\n(?:#{1,6}|-) ")
GAP = "\u200b"  # separates words for SQLite, and is invisible


class IndexEntry(Struct, array_like=True):
    """One change, as the index needs it."""

    op: str
    url: str
    is_indexed: bool = False
    title: str = ""
    words: tuple[str, str] = ("", "")  # of title and text, as SQLite can separate them
    date: str = ""
    language: str = ""
    original: str = ""  # of a page that repeats another one, wholly or nearly: that page's URL


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[IndexEntry]).decode


class ReadableFeed(Protocol):
    """Feeds of a crawl in a folder, and what tests have instead."""

    position: int

    def last(self) -> int:
        """Return the number of the newest entry; 0 if there is none."""
        ...

    def read(self, after: int = 0) -> Iterator[FeedEntry]:
        """Yield the entries after a number; `position` is how far was read."""
        ...


class EntrySource(Protocol):
    """Where the entries of an index come from."""

    def batches(self, after: int) -> Iterator[tuple[int, list[IndexEntry]]]:
        """Yield entries after a number in the feed, in order, with the number up to which they reach."""
        ...


def entry_of(entry: FeedEntry) -> IndexEntry:
    """Return what the index needs of a change; a page that must not be indexed has no text."""
    document = entry.document
    if document is None or document.article.noindex or "noindex" in document.facts.directives:
        return IndexEntry(entry.op, entry.url)
    article = document.article
    return IndexEntry(
        op=entry.op,
        url=entry.url,
        is_indexed=True,
        title=article.title,
        words=(spaced(article.title), spaced(_MARKS.sub("\n", f"\n{article.text}")[1:])),
        date=article.published or article.modified or document.facts.fetched_at,
        language=document.language,
        original=entry.duplicate_of,
    )


def spaced(text: str) -> str:
    """Return text with the characters of scripts without spaces as separate words."""
    return text if text.isascii() else _SIGN.sub(rf"{GAP}\1{GAP}", text)


class OneProcess:
    """Reads a feed in this process."""

    def __init__(self, feed: ReadableFeed) -> None:
        self._feed = feed

    def batches(self, after: int) -> Iterator[tuple[int, list[IndexEntry]]]:
        """See `EntrySource`."""
        batch: list[IndexEntry] = []
        for entry in self._feed.read(after):
            batch.append(entry_of(entry))
            if len(batch) >= RANGE:
                yield self._feed.position, batch
                batch = []
        yield self._feed.position, batch


class ManyProcesses:
    """Reads the feed of a crawl folder up to a number, in ranges, in processes of its own."""

    def __init__(self, folder: Path, last: int, processes: int | None = None) -> None:
        self._folder = folder
        self._last = last
        self._processes = processes or os.cpu_count() or 1

    def batches(self, after: int) -> Iterator[tuple[int, list[IndexEntry]]]:
        """See `EntrySource`. A few ranges are read ahead."""
        starts = range(after, self._last, RANGE)
        waiting: deque[tuple[int, Future[bytes]]] = deque()
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self._processes, spawn, _begin, (str(self._folder),))
        try:
            for start in starts:
                until = min(start + RANGE, self._last)
                waiting.append((until, pool.submit(_read_range, start, until)))
                if len(waiting) > 2 * self._processes:
                    yield _finished(waiting.popleft())
            while waiting:
                yield _finished(waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _finished(read: tuple[int, Future[bytes]]) -> tuple[int, list[IndexEntry]]:
    until, future = read
    return until, _decode(future.result())


# -- in the processes -----------------------------------------------------------------------------

_opened: list[CrawlReader] = []


def _begin(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends them
    _opened.append(CrawlReader(Path(folder)).__enter__())  # until the process ends


def _read_range(after: int, until: int) -> bytes:
    return _encode([entry_of(entry) for entry in FolderFeed(_opened[0], for_search=True).read(after, until)])
