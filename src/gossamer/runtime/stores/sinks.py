"""The sinks for pages, by their name or the scheme of their URL in `--store`. A store is added by one line here.

A store with a URL is a module `gossamer.backends.<scheme>.store` (see `UrlStore`), which is imported only if it is
used: its client library is an extra of the package. A page store (`PAGE_STORES`) has no sink: it receives pages from
the archive, before the commit (`runtime/stores/publishing`). Nor has S3: it receives the archive's files
(`runtime/stores/segment_uploads`). So workers need no connections to stores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from gossamer.archive.warc_sink import WarcSink
from gossamer.archive.writer import MAX_FILE_BYTES, ArchiveWriter
from gossamer.model.errors import UsageError
from gossamer.settings.extras import pip_install
from gossamer.settings.stores import MONGODB, complete_store, has_archive, scheme_of

if TYPE_CHECKING:
    from gossamer.ports.page_sink import PageSink
    from gossamer.ports.page_store import PageInventory


class SinkConfig(Struct, frozen=True):
    """The configuration of sinks. It is sent to worker processes."""

    stores: tuple[str, ...]  # as in `--store`
    out: str  # the crawl folder
    archive_prefix: str
    save_interval: int
    warcinfo: dict[str, str]
    max_file_bytes: int = MAX_FILE_BYTES  # of an archive file
    plugins: tuple[str, ...] = ()


class UrlStore(Protocol):
    """What the module of a store with a URL provides."""

    def check(self, url: str) -> None:
        """Raise UsageError if pages cannot be stored there: it cannot be reached, refuses the login, lacks rights."""
        ...


class UrlPageStore(UrlStore, Protocol):
    """What the module of a page store provides."""

    def check_empty(self, url: str) -> None:
        """Raise UsageError if there are pages."""
        ...

    def open_store(self, url: str, *, is_patient: bool) -> PageInventory:
        """Return the store; one that is patient waits longer for a server before it raises."""
        ...


class _Client(Struct, frozen=True):
    """The library that a store needs."""

    module: str
    extra: str


CLIENTS: Mapping[str, _Client] = {"s3": _Client("boto3", "s3"), "mongodb": _Client("pymongo", "mongodb")}
PAGE_STORES = frozenset({MONGODB})


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


def page_store_in(stores: Sequence[str]) -> str:
    """Return the page store among some stores; empty if there is none."""
    return next((store for store in stores if scheme_of(store) in PAGE_STORES), "")


def open_page_store(store: str, *, is_patient: bool) -> PageInventory:
    """Open a page store. A caller who does not try again is patient."""
    return cast(UrlPageStore, url_store(store)).open_store(complete_store(store, os.environ), is_patient=is_patient)


def check_url_stores(stores: Sequence[str], *, is_new: bool) -> None:
    """Raise UsageError if one of the stores with a URL cannot be used now. Before anything is started.

    A page store of a new crawl must have no pages: those of another crawl would be replaced.
    """
    for store in stores:
        if scheme_of(store):
            url = complete_store(store, os.environ)
            url_store(store).check(url)
            if is_new and scheme_of(store) in PAGE_STORES:
                cast(UrlPageStore, url_store(store)).check_empty(url)


def url_store(store: str) -> UrlStore:
    """Return the module of a store; raise UsageError if its client library is not installed."""
    scheme = scheme_of(store)
    client = CLIENTS[scheme]
    if find_spec(client.module) is None:
        raise UsageError(f"{scheme}:// needs the package {client.module}: {pip_install(client.extra)}")
    return cast(UrlStore, import_module(f"gossamer.backends.{scheme}.store"))
