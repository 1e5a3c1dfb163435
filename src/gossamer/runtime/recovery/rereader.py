"""Reads pages from the archive again whose links were left out by a limit that was raised since.

Beside the crawl, in slices of `PAGES_PER_TURN`: reading and parsing in a thread, offering the links in the event
loop. About 1 ms per page. The engine decides which pages (`engine/admission/rereading`) and does not end before all
are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from gossamer.archive.reader import exchange_of
from gossamer.core.url.forms import host_of
from gossamer.engine.admission.rereading import Rereading
from gossamer.model.commands import CommitSoon, Submit
from gossamer.model.errors import StoreUnavailableError
from gossamer.model.records import FetchTask, Result, UrlId, UrlRecord
from gossamer.runtime.recovery.stored_results import ReadingRules, result_of
from gossamer.runtime.watch.crash import Crash, crash_of
from gossamer.runtime.watch.warning_log import WarningLog
from gossamer.runtime.workers.answers import crashed_result

if TYPE_CHECKING:
    from gossamer.ports import Catalog
    from gossamer.runtime.hub.reviewing import Review

PAGES_PER_TURN = 20
RETRY_S = 2.0


class Rereader:
    """Reads pages again, if there are any to read."""

    def __init__(
        self,
        rereading: Rereading,
        ledger: Catalog,
        rules: ReadingRules,
        *,
        warnings: WarningLog,
        submit: Submit,
        now: Callable[[], float],
        review: Review | None = None,
    ) -> None:
        self._rereading = rereading
        self._ledger = ledger
        self._rules = rules
        self._warnings = warnings
        self._crashes: list[Crash] = []
        self._submit = submit
        self._now = now
        self._review = review

    async def run(self) -> None:
        if not self._rereading.is_pending:
            return
        after = self._rereading.cursor
        while self._rereading.is_pending:
            try:
                pages = await asyncio.to_thread(self._read_slice, after)
            except StoreUnavailableError:  # the commits wait for it too, and the operator is warned
                await asyncio.sleep(RETRY_S)
                continue
            for page_id, row, result in pages:
                if not await self._may_follow(page_id, row, result):
                    return  # the crawl stops; the next run goes on here
                self._rereading.follow(page_id, row, result, self._now())
                after = page_id
            while self._crashes:
                self._warnings.crash(self._crashes.pop())
            if len(pages) < PAGES_PER_TURN:
                self._rereading.finish(self._now())
        self._submit(CommitSoon())  # also makes the hub look for new tasks

    async def _may_follow(self, page_id: UrlId, row: UrlRecord, result: Result | None) -> bool:
        if self._review is None or result is None:
            return True
        return await self._review(_task_of(page_id, row), result)

    def _read_slice(self, after: UrlId) -> list[tuple[UrlId, UrlRecord, Result | None]]:
        rows = islice(self._rereading.pages(after), PAGES_PER_TURN)
        return [(page_id, row, self._read(page_id, row)) for page_id, row in rows]

    def _read(self, page_id: UrlId, row: UrlRecord) -> Result | None:
        """Return a page's stored answer as if it had just arrived; None if there is none."""
        response = self._rules.files.read(row.archived) if row.archived is not None else None
        if response is None:
            return None
        original = None
        if response.type == "revisit":
            first = self._ledger.look_up(self._ledger.url_id(response.fields.get("warc-refers-to-target-uri", row.url)))
            original = (
                self._rules.files.read(first.archived) if first is not None and first.archived is not None else None
            )
            if original is None:
                return None
        task = _task_of(page_id, row)
        exchange = exchange_of(response, None, original)
        try:
            return result_of(task, exchange, self._rules)
        except Exception as error:  # as in a worker: the page has no links, and the crawl goes on
            self._crashes.append(crash_of(row.url, error))
            return crashed_result(task, exchange, error)


def _task_of(page_id: UrlId, row: UrlRecord) -> FetchTask:
    """Return a task as it was when a page was fetched."""
    host = host_of(row.url)
    at = row.fetched_at
    return FetchTask(0, row.kind, row.url, page_id, host, (), row.depth, row.hops, 0, at, seed=row.seed)
