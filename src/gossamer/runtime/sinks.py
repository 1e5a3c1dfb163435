"""The sinks for pages, by their name in `--store`. A store is added by one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from gossamer.archive.files import FileSink
from gossamer.archive.warc_sink import WarcSink
from gossamer.archive.writer import ArchiveWriter
from gossamer.ports.page_sink import PageSink


class SinkConfig(Struct, frozen=True):
    """The configuration of sinks. It is sent to worker processes."""

    stores: tuple[str, ...]  # names, as in `--store`
    out: str  # the crawl folder
    archive_prefix: str
    save_interval: int
    warcinfo: dict[str, str]


def _warc(config: SinkConfig, worker: int) -> PageSink:
    archive, index = Path(config.out) / "archive", Path(config.out) / "index"
    archive.mkdir(parents=True, exist_ok=True)
    index.mkdir(parents=True, exist_ok=True)
    writer = ArchiveWriter(
        archive,
        index,
        prefix=config.archive_prefix,
        worker=worker,
        warcinfo=config.warcinfo,
        save_interval=config.save_interval,
    )
    return WarcSink(writer)


def _files(config: SinkConfig, _worker: int) -> PageSink:
    return FileSink(Path(config.out) / "files")


# The archive comes last: its record says that a page arrived, so whatever else stores the page has done so before.
SINKS: Mapping[str, Callable[[SinkConfig, int], PageSink]] = {"files": _files, "warc": _warc}


def open_sinks(config: SinkConfig, worker: int) -> list[PageSink]:
    """Return the sinks of a worker, in the order in which a page goes through them."""
    return [build(config, worker) for name, build in SINKS.items() if name in config.stores]
