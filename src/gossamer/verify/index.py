"""Does the index list exactly what the archive files contain, and how is it rebuilt?

Compared by a count and a sum of line hashes per WARC file, so memory is a few numbers per file.
The lines of a file are in `index.cdxj`, or in a separate part until they are merged;
after a crash between the two, in both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gossamer.archive.archive_files import ArchiveFiles
from gossamer.archive.cdxj import (
    INDEX_NAME,
    PARTS_FOLDER,
    fold_index,
    index_lines_of,
    merge_index,
    part_path,
    write_index,
)
from gossamer.archive.recovery import recover
from gossamer.archive.verify import index_fingerprints
from gossamer.backends.local.folder import CrawlFolder
from gossamer.reading.archive_access import archive_files
from gossamer.reading.folder import CrawlReader
from gossamer.telemetry.text import plural
from gossamer.verify.agreement import ReportProblem


class IndexFiles:
    """The index of a crawl folder, whole and in parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: list[tuple[str, dict[str, tuple[int, int]]]] = []

    def read(self, report: ReportProblem) -> None:
        """Read every index file once: the whole one last, since a running crawl moves the lines of parts there."""
        for path in [*sorted((self._folder / PARTS_FOLDER).glob("*.cdxj")), self._folder / INDEX_NAME]:
            try:
                fingerprints, is_sorted = index_fingerprints(path)
            except FileNotFoundError:
                continue
            self._found.append((path.name, fingerprints))
            if not is_sorted:
                report(path.name, "is not sorted; --mend rebuilds it")

    def compare(self, warc_name: str, lines: int, total: int, report: ReportProblem) -> None:
        """Compare the captures of a WARC file with its lines in the index."""
        listed = [(index, prints.pop(warc_name)) for index, prints in self._found if warc_name in prints]
        if not listed:
            report(warc_name, f"its captures ({lines}) are in no index; --mend rebuilds it")
        for index, (count, found_total) in listed:
            if (count, found_total) != (lines, total):
                report(index, f"captures of {warc_name}: {count}, but it has {lines}, or others; --mend rebuilds it")

    def report_unknown_files(self, report: ReportProblem, is_new: Callable[[str], bool]) -> None:
        """Report lines of files that were not compared, unless they were finished since."""
        for index, prints in self._found:
            for warc_name, (count, _) in prints.items():
                if is_new(warc_name):
                    continue
                report(index, f"captures of {warc_name}, which does not exist: {count}; --mend rebuilds it")


def mend(crawl: CrawlReader) -> list[str]:
    """Cut torn tails off and rebuild the index. See `gossamer.verify.agreement.Check`."""
    done = []
    folder = crawl.folder
    ends = crawl.ledger.archive_ends()
    for path in sorted(folder.archive.glob("*.warc.gz*")):
        committed = ends.get(path.name.removesuffix(".open"), 0)
        if path.stat().st_size < committed:
            done.append(f"{path.name}: shorter than what was committed; left as it is")
            continue
        tail = recover(path, committed)
        if tail.cut_bytes:
            done.append(f"{path.name}: cut {tail.cut_bytes} bytes off ({tail.problem})")
    lines = _rebuild(folder, archive_files(folder.archive, crawl.settings.store))
    done.append(f"index rebuilt: {plural(lines, 'capture')}")
    return done


def _rebuild(folder: CrawlFolder, files: ArchiveFiles) -> int:
    """Write the index of every closed file, here or in a store, then merge them. May be repeated after a crash."""
    total = 0
    parts: list[Path] = []
    for name in sorted({path.name for path in folder.archive.glob("*.warc.gz")} | files.merged().keys()):
        lines = index_lines_of(files.records(name), name)
        total += len(lines)
        parts.append(part_path(folder.index, name))
        write_index(parts[-1], lines)
    for stale in (folder.index / PARTS_FOLDER).glob("*.cdxj"):
        if stale not in parts:
            stale.unlink()
    merge_index(parts, folder.index / INDEX_NAME)
    fold_index(folder.index)
    return total
