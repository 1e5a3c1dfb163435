"""The figures of a crawl for its dashboard, and what it is set to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from gossamer import __version__
from gossamer.model.figures import Figures
from gossamer.reading.cluster import SharedReader
from gossamer.reading.view import CrawlView
from gossamer.settings.changes import CHANGEABLE
from gossamer.settings.load import WITH_PASSWORDS, completed
from gossamer.settings.model import Settings, options
from gossamer.settings.stores import masked_store
from gossamer.telemetry.figure_list import Place, labelled, rows_of
from gossamer.telemetry.summary import Summary, summary_of
from gossamer.web.history import HistoryAnswer, history
from gossamer.web.hosts import Hosts
from gossamer.web.routes import ApiRoute, Nothing
from gossamer.web.source import CrawlSource


class NodeLine(Struct, frozen=True):
    """A node of a crawl on many machines."""

    name: str
    is_live: bool
    pages: int
    queued: int
    in_flight: int
    label: str


class StatusAnswer(Summary, kw_only=True):
    """The summary of a crawl as it is now, and all its figures."""

    state: str
    reason: str  # why it has ended, in words
    left_out: list[str]  # what was left out or held back, and by which rule
    is_running: bool
    can_control: bool  # it runs, and the dashboard is not read-only
    is_read_only: bool
    name: str  # the folder, or the ledger without a password
    show_again: str  # the command that opens the dashboard when it has ended
    version: str
    figures: Figures
    hosts_known: int  # with or without pages, as in the list of hosts
    nodes: list[NodeLine]  # empty if there is one machine
    rows: list[tuple[str, str]]  # figures that have a row of their own: label and text


class SettingLine(Struct, frozen=True):
    """A setting."""

    key: str
    value: Any
    default: Any
    group: str
    help: str
    is_changeable: bool  # while the crawl runs


class SettingsAnswer(Struct, frozen=True):
    """All settings of a crawl."""

    settings: list[SettingLine]


class Status:
    """Answers questions about the crawl as a whole."""

    def __init__(self, source: CrawlSource, hosts: Hosts) -> None:
        self._source = source
        self._hosts = hosts

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(path="/api/status", summary="State and figures", handle=self.read, answer=StatusAnswer),
            ApiRoute(
                path="/api/history", summary="The history of the crawl", handle=self.history, answer=HistoryAnswer
            ),
            ApiRoute(path="/api/settings", summary="Settings", handle=self.settings, answer=SettingsAnswer),
        ]

    async def read(self, _: Nothing) -> StatusAnswer:
        figures = await self._source.live.figures()
        summary = summary_of(figures)
        if self._source.folder is not None:
            nodes: list[NodeLine] = []
            is_running = self._source.live.is_running()
            name = str(self._source.folder.path)
        else:
            is_running, name, nodes = await self._source.read(_of_nodes)
        return StatusAnswer(
            **asdict(summary),
            state=figures.state.value,
            reason=summary.ended_because,
            left_out=summary.omissions(),
            is_running=is_running,
            can_control=is_running and not self._source.is_read_only,
            is_read_only=self._source.is_read_only,
            name=name,
            show_again=f"gossamer ui {shlex.quote(self._address(name))}",
            version=__version__,
            figures=figures,
            hosts_known=await self._hosts.known(),
            nodes=nodes,
            rows=rows_of(labelled(figures, Place.DASHBOARD)),
        )

    def _address(self, name: str) -> str:
        """Return how the crawl is named in a command that is given anywhere on this machine."""
        return name if self._source.folder is None else str(self._source.folder.path.absolute())

    async def state(self) -> tuple[bool, str]:
        """Return whether the crawl runs now, and the name of its folder or ledger."""
        if self._source.folder is not None:
            return self._source.live.is_running(), str(self._source.folder.path)
        is_running, name, _ = await self._source.read(_of_nodes)
        return is_running, name

    async def settings(self, _: Nothing) -> SettingsAnswer:
        return await self._source.read(lambda view: SettingsAnswer(list(_settings(view.settings))))

    async def history(self, _: Nothing) -> HistoryAnswer:
        return await self._source.read(history)


def _of_nodes(crawl: CrawlView) -> tuple[bool, str, list[NodeLine]]:
    assert isinstance(crawl, SharedReader)
    lines = [
        NodeLine(
            node.name, view.is_live, view.totals.pages, view.status.queued, view.status.in_flight, view.status.label
        )
        for node, view in crawl.nodes.items()
    ]
    return crawl.is_running, crawl.name, sorted(lines, key=lambda line: (not line.is_live, line.name))


def _settings(settings: Settings) -> Iterator[SettingLine]:
    values = msgspec.to_builtins(settings)
    # Some defaults depend on others, and are filled in when a crawl begins.
    begun = completed(Settings(target_unique_domains=settings.target_unique_domains), has_domain_list=False)
    filled_in = {name: msgspec.to_builtins(getattr(begun, name)) for name in ("max_pages", "scope")}
    for name in WITH_PASSWORDS:
        values[name] = [masked_store(url) for url in values[name]]
    for option in options():
        default = msgspec.to_builtins(option.default) if option.default is not msgspec.NODEFAULT else None
        is_changeable = option.key in CHANGEABLE
        default = filled_in.get(option.name, default)
        yield SettingLine(option.key, values[option.name], default, option.group.value, option.help, is_changeable)
