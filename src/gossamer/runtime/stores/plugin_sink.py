"""A plugin that stores answers, as a sink: what it raises ends the crawl with one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gossamer.model.errors import PluginError
from gossamer.model.records import FetchKind, Outcome, Result
from gossamer.plugins import Answer, AnswerSink
from gossamer.ports.page_sink import FetchedPage, Volume
from gossamer.settings.plugins import load_plugin


class PluginSink:
    """See `gossamer.ports.page_sink.PageSink`."""

    def __init__(self, name: str, folder: Path, worker: int) -> None:
        self._name = name
        try:
            self._sink: AnswerSink = load_plugin(name)(folder, worker)
        except Exception as error:  # the code of others may raise anything
            raise PluginError.of(name, "open", error) from error

    @property
    def volume(self) -> Volume:
        """Nothing: what it compresses is not known."""
        return Volume()

    def prepare(self, page: FetchedPage) -> None:
        """Nothing to prepare."""

    def write(self, page: FetchedPage, result: Result) -> None:
        """Pass an answer to a request for a page on."""
        if page.task.kind is not FetchKind.PAGE:
            return
        exchange = page.exchange
        answer = Answer(
            url=page.task.url,
            status=exchange.status,
            fetched_at=exchange.finished_at,
            content_type=result.content_type,
            headers=exchange.headers,
            content=exchange.content,
            title=result.title,
            is_page=result.outcome is Outcome.OK,
        )
        self._guarded("write", lambda: self._sink.write(answer))

    def sync(self) -> None:
        """Make what was written durable."""
        self._guarded("sync", self._sink.sync)

    def close(self) -> None:
        """Finish what is open."""
        self._guarded("close", self._sink.close)

    def _guarded(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            raise PluginError.of(self._name, what, error) from error
