"""Which sinks does a worker have, by the names in `--store`? A sink is added by a line in `SINKS`.

Stores with a URL (`backends/registry`) have none: they are fed from the archive, before the commit
(`runtime/stores/publishing`, `runtime/stores/segment_uploads`). So workers need no connections to stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from gossamer.archive.warc_sink import WarcSink
from gossamer.archive.writer import MAX_FILE_BYTES, ArchiveWriter
from gossamer.settings.stores import has_archive

if TYPE_CHECKING:
    from gossamer.ports.page_sink import PageSink


class SinkConfig(Struct, frozen=True):
    """The configuration of sinks. It is sent to worker processes."""

    stores: tuple[str, ...]  # as in `--store`
    out: str  # the crawl folder
    archive_prefix: str
    save_interval: int
    warcinfo: dict[str, str]
    max_file_bytes: int = MAX_FILE_BYTES  # of an archive file
    plugins: tuple[str, ...] = ()


def _warc(config: SinkConfig, worker: int) -> PageSink:
    archive = Path(config.out) / "archive"
    index = Path(config.out) / "index"
    archive.mkdir(parents=True, exist_ok=True)
    index.mkdir(parents=True, exist_ok=True)
    writer = ArchiveWriter(
        archive,
        index,
        prefix=config.archive_prefix,
        worker=worker,
        warcinfo=config.warcinfo,
        save_interval=config.save_interval,
        max_file_bytes=config.max_file_bytes,
    )
    return WarcSink(writer)


def _files(config: SinkConfig, _worker: int) -> PageSink:
    from gossamer.archive.files import FileSink

    return FileSink(Path(config.out) / "files")


def _plugin(name: str, config: SinkConfig, worker: int) -> PageSink:
    from gossamer.runtime.stores.plugin_sink import PluginSink

    return PluginSink(name, Path(config.out), worker)


# The archive comes last: its record says that a page arrived, so whatever else stores the page has done so before.
SINKS: Mapping[str, Callable[[SinkConfig, int], PageSink]] = {"files": _files, "warc": _warc}


def open_sinks(config: SinkConfig, worker: int) -> list[PageSink]:
    """Return the sinks of a worker, in the order in which a page goes through them."""
    names = {*config.stores, "warc"} if has_archive(config.stores) else config.stores
    built_in = [build(config, worker) for name, build in SINKS.items() if name in names]
    return [*(_plugin(name, config, worker) for name in config.plugins), *built_in]
