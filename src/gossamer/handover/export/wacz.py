"""The crawl as one file that replay tools open: WACZ 1.1.1, a ZIP of archive, index and list of pages.

    archive/*.warc.gz         as in the crawl folder, as far as they are committed; not compressed again
    indexes/index.cdx.gz      CDXJ in gzip members of `LINES_PER_BLOCK` lines
    indexes/index.idx         the first line of each member, and where it is
    pages/pages.jsonl         the seeds, then other pages: what replay tools show at once
    pages/extraPages.jsonl    pages beyond a number, if there are as many: see `list_pages`
    datapackage.json          size and SHA-256 of all of these
    datapackage-digest.json   SHA-256 of that

Archive, index and pages are of one moment, also if the crawl is running: the committed lengths of the archive files are
read first, and what lies behind them is left out everywhere. Memory does not grow with the crawl: files are copied in
chunks, lists of pages wait in temporary files.
"""

from __future__ import annotations

import gzip
import hashlib
import heapq
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import TracebackType
from typing import BinaryIO, Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec
from msgspec import Struct

from gossamer import __version__
from gossamer.archive.cdxj import index_lines_of, merge_index, write_index
from gossamer.handover.export.documents import DocumentMaker, iso_time, wanted_pages
from gossamer.handover.export.output import disk_full_at, whole_file
from gossamer.handover.export.stored import ExportedPage, ExportedPages
from gossamer.handover.search.index import index_lines
from gossamer.handover.where import Selection
from gossamer.model.errors import CorruptFolderError
from gossamer.model.records import Source
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.view import CrawlView

# The pages that a WACZ lists: seeds first, then the others in archive order.
#
# Replay tools show all of `pages.jsonl` at once, so it has at most `MAX_LISTED` seeds and as many other pages; they
# search in the rest, which is in `extraPages.jsonl`. A page is shown as it was at the time of its last visit.

MAX_LISTED = 10_000
PAGES = "pages.jsonl"
EXTRA_PAGES = "extraPages.jsonl"
_SEED_SOURCES = (Source.SEED, Source.REDIRECT)
_encode = msgspec.json.Encoder().encode


class ListedPage(Struct, omit_defaults=True):
    """A line of a list of pages."""

    id: str
    url: str
    ts: str
    title: str
    text: str = ""
    seed: bool = False


class PageLists:
    """The lists of a WACZ, in temporary files until they are complete."""

    def __init__(self, *, with_text: bool) -> None:
        self.with_text = with_text
        self.count = 0
        self.main_page: Mapping[str, str] = {}  # the first seed, as in datapackage.json
        self._listed = {True: 0, False: 0}  # pages in pages.jsonl: seeds, and others
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._seeds, self._others, self._extra = (self._stack.enter_context(_temporary()) for _ in range(3))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def add(self, page: ListedPage) -> None:
        """Add a page."""
        self.count += 1
        line = _encode(page) + b"\n"
        if self._listed[page.seed] < MAX_LISTED:
            self._listed[page.seed] += 1
            (self._seeds if page.seed else self._others).write(line)
        else:
            self._extra.write(line)
        if page.seed and not self.main_page:
            self.main_page = {"mainPageUrl": page.url, "mainPageDate": page.ts}

    def files(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield the lists: the name of each and its bytes."""
        yield PAGES, self._list("pages", "Pages", self._seeds, self._others)
        if self._extra.tell():
            yield EXTRA_PAGES, self._list("extra-pages", "Other pages", self._extra)

    def _list(self, name: str, title: str, *parts: BinaryIO) -> Iterator[bytes]:
        yield _encode({"format": "json-pages-1.0", "id": name, "title": title, "hasText": self.with_text}) + b"\n"
        for part in parts:
            yield from chunks_of(part)


def _temporary() -> BinaryIO:
    return TemporaryFile(prefix="gossamer-")


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield what was written to a temporary file."""
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def list_pages(
    crawl: CrawlView, pages: ExportedPages, selection: Selection, ends: Mapping[str, int], lists: PageLists
) -> None:
    """Add the selected pages whose records lie before the ends of the archive files."""
    maker = DocumentMaker(crawl, pages, for_search=not selection.languages)
    is_read = lists.with_text or bool(selection.languages)
    is_wanted = wanted_pages(selection)
    hosts = selection.hosts
    for page in pages.of_hosts(hosts, is_wanted) if hosts else pages.in_archive_order(is_wanted):
        if page.span.offset + page.span.length > ends.get(page.span.file, 0):
            continue
        title = page.row.title
        text = ""
        if is_read:
            document = maker.make(page)
            if not selection.has_language(document.language):
                continue
            title = document.article.title
            text = document.article.text if lists.with_text else ""
        lists.add(_listed(page, title, text))


def _listed(page: ExportedPage, title: str, text: str) -> ListedPage:
    row = page.row
    is_seed = row.depth == 0 and row.source in _SEED_SOURCES
    return ListedPage(page.url_id.hex(), row.url, iso_time(page.record.date), title or row.url, text, is_seed)


# All captures in some archive files, as far as these go, in the order of the index.
#
# The crawl's own index has nearly all of them. Files that it does not know (the node that wrote them has lost its
# folder, and they are in a store) are read, one at a time, and their lines merged in.


class _Capture(Struct, frozen=True):
    """Where a line of the index says that its record is."""

    filename: str
    offset: str
    length: str


_decode = msgspec.json.Decoder(_Capture).decode


@contextmanager
def whole_index(crawl: CrawlView, archive: CrawlArchive, ends: Mapping[str, int]) -> Iterator[Iterator[bytes]]:
    """Return the lines of all captures that lie before the ends of the archive files."""
    known = {_capture(line).filename for line in index_lines(crawl)}
    with ExitStack() as stack:
        sources: list[Iterable[bytes]] = [index_lines(crawl)]
        if unknown := sorted(ends.keys() - known):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="gossamer-")))
            path = _read_index(archive, {name: ends[name] for name in unknown}, folder)
            sources.append(stack.enter_context(path.open("rb")))
        yield _captures_within(heapq.merge(*sources), ends)


def _read_index(archive: CrawlArchive, ends: Mapping[str, int], folder: Path) -> Path:
    """Write the index of archive files as far as their ends; return its path."""
    paths = []
    for name, end in ends.items():
        records = takewhile(lambda record: record.offset < end, archive.records(name))  # noqa: B023 - read at once
        paths.append(folder / f"{name}.cdxj")
        write_index(paths[-1], index_lines_of(records, name))
    whole = folder / "whole"
    merge_index(paths, whole)
    return whole


def _captures_within(lines: Iterable[bytes], ends: Mapping[str, int]) -> Iterator[bytes]:
    """Yield the lines whose records lie before the ends of their files, equal ones once."""
    previous = b""
    for line in lines:
        capture = _capture(line)
        if line != previous and int(capture.offset) + int(capture.length) <= ends.get(capture.filename, 0):
            yield line
        previous = line


def _capture(line: bytes) -> _Capture:
    return _decode(line.split(b" ", 2)[2])


VERSION = "1.1.1"
LINES_PER_BLOCK = 300  # what a replay tool reads to find one capture
_CHUNK_BYTES = 1 << 20
_ZIP64_BYTES = (1 << 31) - 1
_GZIP_LEVEL = 6


class _Resource(Struct, frozen=True):
    """A file in the package, as listed in datapackage.json."""

    name: str
    path: str
    hash: str
    bytes: int


class Package:
    """A WACZ that is being written."""

    def __init__(self, file: ZipFile, created: float) -> None:
        self._zip = file
        self._date = time.gmtime(created)
        self.resources: list[_Resource] = []

    def add(self, path: str, chunks: Iterable[bytes], *, size: int = 0, packs: bool = False) -> None:
        """Add a file; `size` is its size if it may be large."""
        about = self._member(path, packs=packs)
        digest = hashlib.sha256()
        written = 0
        with self._zip.open(about, "w", force_zip64=size > _ZIP64_BYTES) as out:
            for chunk in chunks:
                out.write(chunk)
                digest.update(chunk)
                written += len(chunk)
        name = path.rpartition("/")[2].lower()
        self.resources.append(_Resource(name, path, f"sha256:{digest.hexdigest()}", written))

    def finish(self, title: str, main_page: Mapping[str, str]) -> None:
        """Write the description of the package, with the sizes and hashes of its files."""
        about = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": title,
            "software": f"Gossamer/{__version__}",
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", self._date),
            **main_page,
            "resources": msgspec.to_builtins(self.resources),
        }
        text = json.dumps(about, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(text).hexdigest()}"}
        self._zip.writestr(self._member("datapackage.json", packs=True), text)
        self._zip.writestr(self._member("datapackage-digest.json", packs=True), json.dumps(digest, indent=2))

    def _member(self, path: str, *, packs: bool) -> ZipInfo:
        about = ZipInfo(path, self._date[:6])
        about.compress_type = ZIP_DEFLATED if packs else ZIP_STORED
        about.external_attr = 0o644 << 16
        return about


def write_wacz(crawl: CrawlView, out: Path | None, title: str, selection: Selection, *, with_text: bool = False) -> int:
    """Write a crawl as WACZ to a file or to stdout (None); return how many pages it lists.

    The selection is of listed pages; archive and index are whole.
    """
    pages = ExportedPages(crawl)
    archive = CrawlArchive(crawl.folders, crawl.settings.store)
    with _opened(out) as file, PageLists(with_text=with_text) as lists, ZipFile(file, "w") as packed:
        package = Package(packed, crawl.now)
        ends = _copy_archive(archive, crawl.ledger.archive_ends(), package)
        with whole_index(crawl, archive, ends) as lines:
            _add_index(lines, package)
        list_pages(crawl, pages, selection, ends, lists)
        for name, lines in lists.files():
            package.add(f"pages/{name}", lines, packs=True)
        package.finish(title, lists.main_page)
        return lists.count


@contextmanager
def _opened(out: Path | None) -> Iterator[BinaryIO]:
    if out is not None:
        with whole_file(out) as file:
            yield file
        return
    with disk_full_at("stdout"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def _copy_archive(archive: CrawlArchive, ends: Mapping[str, int], package: Package) -> dict[str, int]:
    """Copy the archive files that can be read here; return how long each of them is."""
    copied: dict[str, int] = {}
    for name, end in sorted(ends.items()):
        if not archive.is_reachable(name) or not end:
            continue
        with _archive_file(archive, name) as file:
            package.add(f"archive/{name}", _first_bytes(file, name, end), size=end)
        copied[name] = end
    return copied


def _archive_file(archive: CrawlArchive, name: str) -> BinaryIO:
    try:
        return archive.part_of(name).open(name)
    except FileNotFoundError:
        raise CorruptFolderError(f"archive/{name}: is missing; gossamer verify DIR shows what else is") from None


def _first_bytes(file: BinaryIO, name: str, end: int) -> Iterator[bytes]:
    left = end
    while left:
        chunk = file.read(min(left, _CHUNK_BYTES))
        if not chunk:
            raise CorruptFolderError(
                f"archive/{name}: has {end - left:,} bytes, and {end:,} are committed: gossamer verify DIR shows more"
            )
        left -= len(chunk)
        yield chunk


def _add_index(lines: Iterable[bytes], package: Package) -> None:
    """Add the index in compressed blocks, and the index of the blocks."""
    with TemporaryFile(prefix="gossamer-") as idx:
        idx.write(b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n')
        package.add("indexes/index.cdx.gz", _blocks(lines, idx))
        package.add("indexes/index.idx", chunks_of(idx))


def _blocks(lines: Iterable[bytes], idx: BinaryIO) -> Iterator[bytes]:
    offset = 0
    for block in _batches(lines):
        member = gzip.compress(b"".join(block), _GZIP_LEVEL, mtime=0)
        place = {"offset": offset, "length": len(member), "digest": f"sha256:{hashlib.sha256(member).hexdigest()}"}
        idx.write(block[0].partition(b"{")[0] + json.dumps(place).encode() + b"\n")
        offset += len(member)
        yield member


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if len(block) == LINES_PER_BLOCK:
            yield block
            block = []
    if block:
        yield block
