"""Brings the files of all nodes together in one folder: archive, index, events, plain files, opt-outs.

A closed archive file is linked if both folders are on one file system, else copied: nobody writes to it any more. One
that is longer than what was committed is copied as far as that, and gets a new index. Names of archive files contain
the node, so they are unique; event files get the node's name. Every step can be repeated.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from gossamer.archive.cdxj import INDEX_NAME, PARTS_FOLDER, index_file, merge_index, part_path, write_index
from gossamer.archive.objects import MergedFiles
from gossamer.archive.verify import index_fingerprints
from gossamer.archive.writer import sync_folder
from gossamer.backends.local.folder import SEEDS_FILE, CrawlFolder
from gossamer.foundation import failpoints
from gossamer.model.errors import GossamerError
from gossamer.runtime.session.opt_out import FILE_NAME
from gossamer.telemetry import crawl_log

_CHUNK_BYTES = 1 << 20


class NodeFiles(Struct, frozen=True):
    """The folder of a node, and how much of its archive files is committed."""

    node: str
    folder: CrawlFolder
    ends: Mapping[str, int]
    is_origin: bool = False  # its event files keep their names

    def path_of(self, file: str) -> Path | None:
        """Return where an archive file is; None if it is not in the folder."""
        found = [self.folder.archive / name for name in (file, f"{file}.open")]
        return next((path for path in found if path.is_file()), None)

    def missing(self) -> list[str]:
        """Return the archive files that are neither in the folder nor in a store, or too short."""
        stored = MergedFiles(self.folder.archive).all()
        paths = [(file, end, self.path_of(file)) for file, end in self.ends.items() if end and file not in stored]
        return [file for file, end, path in paths if path is None or path.stat().st_size < end]


class FileCopy:
    """Copies the files of nodes to a folder."""

    def __init__(self, target: CrawlFolder, on_bytes: Callable[[int], None]) -> None:
        self._target = target
        self._on_bytes = on_bytes
        self._cut: set[str] = set()  # archive files of which only a part is committed

    def copy(self, nodes: Sequence[NodeFiles]) -> None:
        """Copy everything."""
        names = Counter(file for node in nodes for file, end in node.ends.items() if end)
        if repeated := [name for name, times in names.items() if times > 1]:
            raise GossamerError(f"two nodes have an archive file of the name {repeated[0]}")
        for node in nodes:
            self._copy_archive(node)
            self._copy_others(node)
        for folder in (self._target.archive, self._target.events):
            sync_folder(folder)
        self._build_index([node.folder.index for node in nodes])

    def _copy_archive(self, node: NodeFiles) -> None:
        merged = MergedFiles(self._target.archive)
        for stored in MergedFiles(node.folder.archive).all().values():
            if stored.name not in merged.all():
                merged.add(stored)
        for file, end in sorted(node.ends.items()):
            path = node.path_of(file) if end else None
            if path is None or path.stat().st_size < end:
                continue
            if path.suffix == ".open" or path.stat().st_size != end:
                self._cut.add(file)
            self._bring(path, self._target.archive / file, end)
            failpoints.reach("after_file")

    def _copy_others(self, node: NodeFiles) -> None:
        suffix = "" if node.is_origin else f"-{node.node}"
        for path in sorted(node.folder.events.glob("*")):
            self._bring(path, self._target.events / f"{path.stem}{suffix}{path.suffix}", path.stat().st_size)
        log = node.folder.path / crawl_log.FILE_NAME
        if log.is_file():
            self._bring(log, self._target.path / f"{log.stem}{suffix}{log.suffix}", log.stat().st_size, links=False)
        seeds = node.folder.path / SEEDS_FILE
        if seeds.is_file():
            self._target.record_seeds(seeds.read_text("utf-8").splitlines())
        for path in node.folder.files.rglob("*"):
            if path.is_file() and not path.is_symlink():
                place = self._target.files / path.relative_to(node.folder.files)
                place.parent.mkdir(parents=True, exist_ok=True)
                self._bring(path, place, path.stat().st_size)

    def _bring(self, path: Path, to: Path, length: int, *, links: bool = True) -> None:
        """Link a file, or copy its first bytes."""
        if not to.exists() or to.stat().st_size != length:
            to.unlink(missing_ok=True)
            is_linked = False
            if links and path.suffix != ".open" and path.stat().st_size == length:
                with suppress(OSError):  # another file system, or one without links
                    os.link(path, to)
                    is_linked = True
            if not is_linked:
                _copy(path, to, length)
        self._on_bytes(length)

    def _build_index(self, indexes: Sequence[Path]) -> None:
        """Merge the indexes of the nodes; files that have none, or one of other bytes, are read."""
        here = {path.name: path for path in self._target.archive.glob("*.warc.gz")}
        wanted = (here.keys() - self._cut) | MergedFiles(self._target.archive).all().keys()
        parts = []
        indexed = set[str]()
        for number, source in enumerate(_index_files(indexes)):
            named = index_fingerprints(source)[0].keys()
            indexed |= named & wanted
            if named <= wanted:
                parts.append(source)
            else:
                parts.append(self._target.index / f"chosen-{number}.part")
                _choose_lines(source, parts[-1], wanted)
        for name in sorted(here.keys() - indexed):
            parts.append(part_path(self._target.index, name))
            write_index(parts[-1], index_file(here[name]))
        merge_index(parts, self._target.index / INDEX_NAME)
        shutil.rmtree(self._target.index / PARTS_FOLDER, ignore_errors=True)
        for part in self._target.index.glob("chosen-*.part"):
            part.unlink()


def _index_files(indexes: Sequence[Path]) -> Iterator[Path]:
    for index in indexes:
        if (index / INDEX_NAME).is_file():
            yield index / INDEX_NAME
        yield from sorted((index / PARTS_FOLDER).glob("*.cdxj"))


def _choose_lines(source: Path, to: Path, files: set[str]) -> None:
    """Write the lines of an index that name one of some archive files."""
    with source.open("rb") as lines, to.open("wb") as out:
        for line in lines:
            if json.loads(line.split(b" ", 2)[2])["filename"] in files:
                out.write(line)


def _copy(path: Path, to: Path, length: int) -> None:
    """Copy the first bytes of a file; the name appears when they are durable."""
    unfinished = to.with_name(f".{to.name}.copy")
    with path.open("rb") as source, unfinished.open("wb") as target:
        left = length
        while left and (data := source.read(min(left, _CHUNK_BYTES))):
            target.write(data)
            left -= len(data)
        target.flush()
        os.fsync(target.fileno())
    unfinished.replace(to)


def write_opt_outs(folder: CrawlFolder, names: Sequence[str]) -> None:
    """Write the hosts and domains that opted out, as the operator would."""
    if names:
        folder.write(FILE_NAME, "".join(f"{name}\n" for name in names).encode())
