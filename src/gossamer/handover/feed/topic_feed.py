"""The change feed as messages in a topic: what is sent for an entry, and when it counts as sent.

    upsert, duplicate    the document, as `gossamer export` writes it; the key is the URL
    gone                 nothing, under the same key: readers drop the page
    unchanged            no message: readers have the document

A crawl with `--feed` (`FeedPublisher`) sends what a commit adds to the change feed before the ledger is written, so the
ledger itself is the position: whatever is killed, the next commit with these changes sends them again. If the brokers
are away the commit waits, and fetching is paused (`runtime/stores/outage`). `gossamer feed --to` (`TopicOutput`) reads
the change feed of any crawl; its position is a cursor, which moves when the brokers have confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from gossamer.core.ledger.rows import decode_change
from gossamer.foundation import failpoints
from gossamer.handover.export.documents import PageDocument
from gossamer.handover.feed.feed import OPS, CursorFile, EntryMaker, FeedEntry, FolderFeed
from gossamer.handover.feed.node_feed import NodeFeed
from gossamer.model.errors import StoreUnavailableError
from gossamer.model.records import Change, ChangeKind
from gossamer.ports import Catalog, SealedChanges
from gossamer.ports.document_topic import DocumentTopic, FeedMessage
from gossamer.reading.node_folders import NodeFolders
from gossamer.reading.view import OpenCrawl
from gossamer.runtime.stores.publishing import PageBatch
from gossamer.settings.model import Settings

BATCH_MESSAGES = 50
RETRY_S = 1.0
WARN_EVERY_S = 30.0
CUT_RULE = "document_cut"
_GONE = OPS[ChangeKind.GONE]


class OwnCrawl(Struct, frozen=True):
    """A crawl as its own process sees it. See `gossamer.reading.view.OpenCrawl`."""

    name: str
    folders: NodeFolders
    ledger: Catalog
    settings: Settings


def message_of(entry: FeedEntry) -> FeedMessage | None:
    """Return what a topic gets for an entry; None: nothing."""
    if entry.op == _GONE:
        return FeedMessage(entry.url, None)
    if entry.document is None:
        return None
    return FeedMessage(entry.url, entry.document.to_json(), partial(shortened, entry.document))


def shortened(document: PageDocument) -> bytes:
    """Return a document without text, headings and links, marked as cut."""
    article = replace(document.article, text="", headings=[], links=[])
    return PageDocument(document.facts, article).to_json()[:-1] + b',"is_cut":true}'


def cut_text(name: str, url: str) -> str:
    """Return what the operator is told about a document that was too large."""
    return (
        f"feed {name}: {url}: its document is larger than a message may be, and was sent without text, headings and "
        'links ("is_cut": true); raise max.message.bytes of the topic'
    )


class FeedPublisher:
    """Sends what a commit adds to the change feed. See `gossamer.runtime.stores.publishing.Publishing`."""

    def __init__(self, topic: DocumentTopic, crawl: OpenCrawl, warn: Callable[[str, str], None]) -> None:
        self._topic = topic
        self._crawl = crawl
        self._warn = warn  # in the event loop
        self._entries: EntryMaker | None = None

    def take(self, sealed: SealedChanges) -> Iterator[PageBatch]:
        """Return the messages of a commit, in batches that are made when they are read."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # at the start, what an earlier run had not committed
            return self._batches(sealed, self._warn)
        return self._batches(sealed, lambda rule, text: loop.call_soon_threadsafe(self._warn, rule, text))

    def _batches(self, sealed: SealedChanges, warn: Callable[[str, str], object]) -> Iterator[PageBatch]:
        rows = sorted(
            (row.key, row.value)
            for rows in sealed.by_shard().values()
            for row in rows
            if row.table == "changes" and row.value is not None
        )
        changes = (decode_change(key, value) for key, value in rows)
        while some := list(islice(changes, BATCH_MESSAGES)):
            yield PageBatch(partial(self._send, self._messages(some), warn))

    def _messages(self, changes: Sequence[Change]) -> list[FeedMessage]:
        if self._entries is None:
            self._entries = EntryMaker(self._crawl, has_copies=True)
        entries = (self._entries.make(change, change.seq) for change in changes)
        found = (message_of(entry) for entry in entries if entry is not None)
        return [message for message in found if message is not None]

    def _send(self, messages: Sequence[FeedMessage], warn: Callable[[str, str], object]) -> None:
        failpoints.reach("in_feed")
        for url in self._topic.send(messages):
            warn(CUT_RULE, cut_text(self._topic.name, url))

    def close(self) -> None:
        """Release the topic."""
        self._topic.close()


class TopicOutput:
    """Sends entries of a change feed, and moves the cursor behind those that the brokers have confirmed."""

    def __init__(
        self,
        cursor_file: CursorFile | None,
        feed: FolderFeed | NodeFeed,
        topic: DocumentTopic,
        warn: Callable[[str], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._cursor_file = cursor_file
        self._feed = feed
        self._topic = topic
        self._warn = warn
        self._sleep = sleep
        self._waiting: list[FeedEntry] = []
        self._saved = cursor_file.text() if cursor_file is not None else ""
        self.documents = self.gone = self.cut = 0  # that were sent

    def write_all(self, entries: Iterable[FeedEntry]) -> None:
        """Send entries, and store the cursor behind them."""
        for entry in entries:
            self._waiting.append(entry)
            if len(self._waiting) >= BATCH_MESSAGES:
                self.flush()
        self.flush()

    def wait(self) -> None:
        """Wait a moment for more changes."""
        self.flush()
        self._sleep(RETRY_S / 2)

    def flush(self) -> None:
        """Send what waits, however long the brokers are away; only then move the cursor."""
        entries = self._waiting
        self._waiting = []
        messages = [message for entry in entries if (message := message_of(entry)) is not None]
        if messages:
            self._send(messages)
            failpoints.reach("in_feed")
        for entry in entries:
            self._feed.deliver(entry)
        cursor = self._feed.cursor_text
        if self._cursor_file is not None and cursor not in ("", self._saved):
            self._cursor_file.save(cursor)
            self._saved = cursor

    def _send(self, messages: Sequence[FeedMessage]) -> None:
        warned_at = 0.0
        while True:
            try:
                for url in self._topic.send(messages):
                    self.cut += 1
                    self._warn(cut_text(self._topic.name, url))
                break
            except StoreUnavailableError as error:
                if not warned_at or monotonic() - warned_at >= WARN_EVERY_S:
                    warned_at = monotonic()
                    self._warn(f"{error}; nothing is lost, and it goes on by itself")
                self._sleep(RETRY_S)
        gone = sum(message.value is None for message in messages)
        self.gone += gone
        self.documents += len(messages) - gone
