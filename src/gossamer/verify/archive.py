"""Do archive, index and catalog agree?

One pass over the archive files, one over the index, one over the catalog; memory for one
record and for the ids of one file, whatever the size of the crawl. Captures and catalog rows
are compared without storing either: each capture looks up its row, and if the number of
captures that are their row's own equals the number of rows with a capture, every row has its
capture. Only if the numbers differ are the rows read again to name those without.

What is beyond the committed length of a file is not checked: the next run completes it.
While a crawl runs, only what no longer changes is checked. Costs: 90 µs per record of 26 KB.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from gossamer.archive.cdxj import INDEXED_TYPES, final_name, record_line
from gossamer.archive.reader import ArchivedRecord, ArchiveReader, parse_http_head
from gossamer.archive.verify import line_hash, record_problems
from gossamer.archive.warc import target_uri
from gossamer.archive.writer import OPEN_SUFFIX
from gossamer.core.links.requisite import requisite_id
from gossamer.core.url.forms import canonical, path_of
from gossamer.model.records import ArchiveSpan, UrlId, UrlRecord
from gossamer.reading.archive_access import CrawlArchive
from gossamer.reading.view import CrawlView
from gossamer.telemetry.text import agreeing
from gossamer.telemetry.unplaced import UnplacedRecord, unplaced_records
from gossamer.verify.agreement import Agreement, OnBytes
from gossamer.verify.index import IndexFiles
from gossamer.verify.ledger import check_catalog
from gossamer.verify.objects import HashedOpening

_MAX_STRAYS = 10_000
_MAX_UNREACHABLE_NAMED = 5


class _Stray(Struct):
    """A capture without a row in the catalog: perhaps the target of a robots.txt redirect."""

    where: str
    url: str
    location: str
    key: UrlId


class _Captures(Struct):
    """What the pass over the archive has found."""

    own: int = 0  # captures that their row points to
    unplaced: int = 0  # captures that recovery left where they are, since it could not place them
    extra: int = 0  # further 200 answers of URLs visited more than once
    strays: list[_Stray] = field(default_factory=list)
    stray_count: int = 0
    robots_targets: set[str] = field(default_factory=set)  # where robots.txt redirects to


def find(crawl: CrawlView, found: Agreement, on_bytes: OnBytes) -> None:
    """Compare archive, index and ledger. See `gossamer.verify.agreement.Check`."""
    _Pass(crawl, found, on_bytes).run()


class _Pass:
    """One comparison, from start to end."""

    def __init__(self, crawl: CrawlView, found: Agreement, on_bytes: OnBytes) -> None:
        self._on_bytes = on_bytes
        self._bytes_before = 0  # in the files that were read
        self._folders = crawl.folders
        self._files = CrawlArchive(crawl.folders, crawl.settings.store)
        self._ledger = crawl.ledger
        self._is_running = crawl.is_running
        self._ends = crawl.ledger.archive_ends()
        self._indexes = {name: IndexFiles(folder.index) for name, folder in crawl.folders.found.items()}
        self._captures = _Captures()
        self._unplaced = {record for events in crawl.folders.events for record in unplaced_records(events)}
        self.found = found

    def run(self) -> None:
        """Check everything."""
        # In this order: a file that has its final name is in an index.
        paths = {final_name(path): path for path in self._files.local_paths()}
        for index in self._indexes.values():
            index.read(self.found.add_problem)
        for path in paths.values():
            self._check_local(path)
        self._check_files_elsewhere(set(paths))
        for index in self._indexes.values():
            index.report_unknown_files(self.found.add_problem, self._is_new)
        self._report_strays()
        if self._captures.unplaced:
            self.found.notes.append(
                f"{self._captures.unplaced} captures that recovery could not place are in archive and index only"
            )
        counts = check_catalog(self._ledger, self.found.add_problem, is_running=self._is_running)
        self.found.rows = counts.rows
        self.found.queued = counts.queued
        self.found.hosts = counts.hosts
        unreachable = self._report_unreachable()
        if self._is_running:
            self.found.notes.append("the crawl is running: what still changes was not compared")
            return
        if counts.archived_rows != self._captures.own + unreachable:
            self._name_rows_without_capture()
        if self._captures.extra > counts.revisits:
            self.found.add_problem(
                "archive", f"{agreeing(self._captures.extra - counts.revisits, 'page')} stored twice in one visit"
            )

    def _is_new(self, name: str) -> bool:
        """Return whether a file that was not there before is now: the crawl goes on."""
        if not self._is_running:
            return False
        try:
            self._files.part_of(name).open(name).close()
        except FileNotFoundError:
            return False
        return True

    # -- a file -----------------------------------------------------------------------------------

    def _check_local(self, path: Path) -> None:
        """Check a file in a folder, which a running crawl may have renamed since, or moved to a store."""
        for each in (path, path.with_name(final_name(path))):
            with suppress(FileNotFoundError):
                self._check_file(path.name, ArchiveReader(each), each.stat().st_size)
                return
        if not self._is_running:
            raise FileNotFoundError(path)

    def _check_file(self, file: str, reader: ArchiveReader, size: int) -> None:
        name = file.removesuffix(OPEN_SUFFIX)
        end = self._ends.get(name, 0)
        self.found.files += 1
        if size < end:
            self.found.add_problem(file, f"{size} bytes, but {end} were committed")
        ids: set[str] = set()
        lines = total = unfinished = 0
        is_whole = True
        for record in reader:
            is_committed = record.offset + record.length <= end
            if not is_committed and self._is_running:
                is_whole = False  # the next commit has the rest, which may be in the index already
                break
            self._check_record(file, record, ids)
            self._on_bytes(self._bytes_before + record.offset)
            if record.type not in INDEXED_TYPES:
                continue
            lines = lines + 1
            total = total + line_hash(record_line(record, name))
            if is_committed:
                self._check_capture(file, name, record)
            else:
                unfinished += 1
        self._bytes_before += size
        self._check_end(file, reader, end)
        if unfinished:
            self.found.notes.append(f"{file}: captures that are not in the catalog yet: {unfinished}; resume adds them")
        index = self._indexes.get("") or self._indexes.get(self._folders.node_of(name))
        if file == name and index is not None and is_whole:
            index.compare(name, lines, total, self.found.add_problem)

    def _check_end(self, file: str, reader: ArchiveReader, end: int) -> None:
        if reader.problem and not (self._is_running and reader.end >= end):
            cure = "; --mend or resume cuts it off" if reader.end >= end else ""
            self.found.add_problem(file, f"at {reader.end}: {reader.problem}{cure}")

    def _check_record(self, file: str, record: ArchivedRecord, ids: set[str]) -> None:
        self.found.records += 1
        for what in record_problems(record):
            self.found.add_problem(file, f"at {record.offset}: {what}")
        if record.offset == 0 and record.type != "warcinfo":
            self.found.add_problem(file, "the first record is not a warcinfo")
        if record.id in ids:
            self.found.add_problem(file, f"at {record.offset}: record id {record.id} is used twice")
        ids.add(record.id)

    # -- a capture --------------------------------------------------------------------------------

    def _check_capture(self, file: str, name: str, record: ArchivedRecord) -> None:
        self.found.captures += 1
        where = f"{file} at {record.offset}"
        url = canonical(record.target)
        if url is None:
            self.found.add_problem(where, f"target {record.target[:200]!r} is not a URL")
            return
        status, headers = parse_http_head(record.http_parts()[0])
        location = next((value for key, value in headers if key == "location"), "") if 300 <= status < 400 else ""
        key = self._ledger.url_id(url)
        key = requisite_id(key) if record.is_requisite else key
        row = self._ledger.look_up(key)
        if row is not None and row.archived == ArchiveSpan(name, record.offset, record.length):
            self._captures.own += 1
            if target_uri(row.url) != record.target:
                self.found.add_problem(where, f"contains {record.target}, but the catalog has {row.url}")
        elif UnplacedRecord(name, record.offset) in self._unplaced:
            self._captures.unplaced += 1
            return  # a revisit among them refers to what is lost
        elif path_of(url) == "/robots.txt":
            self._record_robots_target(url, location)
        elif row is None or (status == 200 and row.visits <= 1):
            self._defer_stray(_Stray(where, url, location, key))
        elif status == 200:
            self._captures.extra += 1
        if record.type == "revisit":
            self._check_revisit(where, record)

    def _record_robots_target(self, url: str, location: str) -> None:
        target = canonical(location, url) if location else None
        if target is not None:
            self._captures.robots_targets.add(target)

    def _defer_stray(self, stray: _Stray) -> None:
        """Check it after the pass: a robots.txt may have redirected to it."""
        self._captures.stray_count += 1
        if len(self._captures.strays) < _MAX_STRAYS:
            self._captures.strays.append(stray)

    def _check_revisit(self, where: str, record: ArchivedRecord) -> None:
        """A revisit must point to a stored record with the same payload."""
        target = canonical(record.fields.get("warc-refers-to-target-uri", ""))
        if target is not None and (path_of(target) == "/robots.txt" or target in self._captures.robots_targets):
            return  # the catalog has no rows of robots.txt
        row = self._ledger.look_up(self._ledger.url_id(target)) if target is not None else None
        if row is None or row.archived is None:
            self.found.add_problem(where, f"refers to {target}, which is not stored")
            return
        if row.visits > 1:
            return  # it may refer to an earlier visit, which is no longer in the catalog
        if not self._files.is_reachable(row.archived.file):
            return  # `_report_unreachable` counts it
        original = self._files.read(row.archived)
        if original is None or original.payload_digest != record.payload_digest:
            self.found.add_problem(where, f"refers to {target}, whose payload is different")

    # -- afterwards -------------------------------------------------------------------------------

    def _report_strays(self) -> None:
        """Report the captures that neither the catalog nor a redirect of robots.txt explains."""
        targets = self._captures.robots_targets
        strays = self._captures.strays
        is_growing = True
        while is_growing:
            before = len(targets)
            for stray in strays:
                if stray.url in targets:
                    self._record_robots_target(stray.url, stray.location)
            is_growing = len(targets) > before
        for stray in strays:
            if stray.url not in targets:
                self._report_stray(stray)
        if self._captures.stray_count > len(strays):
            self.found.add_problem(
                "archive", f"{self._captures.stray_count - len(strays)} more captures that no row explains"
            )

    def _report_stray(self, stray: _Stray) -> None:
        row = self._ledger.look_up(stray.key)
        if row is None:
            self.found.add_problem(stray.where, f"{stray.url} is not in the catalog")
        elif not self._is_running:
            self.found.add_problem(
                stray.where, f"{stray.url} is stored twice in one visit, or the catalog points elsewhere"
            )

    def _check_files_elsewhere(self, here: set[str]) -> None:
        """Check the files that are in a store only; report those that are nowhere."""
        for name, end in sorted(self._ends.items()):
            if not end or name in here or not self._files.is_reachable(name):
                continue
            files = self._files.part_of(name)
            opening = HashedOpening(files, name)
            merged = files.merged().get(name)
            try:
                self._check_file(name, ArchiveReader(opening), end if merged is None else merged.size)
            except FileNotFoundError:
                self.found.add_problem(name, f"is missing, but {end} bytes of it were committed")
            else:
                opening.report(merged, self.found.add_problem)

    def _report_unreachable(self) -> int:
        """Report the rows whose record is in a folder that cannot be read; return how many."""
        if all(map(self._files.is_reachable, self._ends)):
            return 0
        count = 0
        for row in self._archived_rows():
            assert row.archived is not None
            if not self._files.is_reachable(row.archived.file):
                count += 1
                if count <= _MAX_UNREACHABLE_NAMED:
                    node = self._folders.node_of(row.archived.file) or "?"
                    self.found.add_problem(f"node {node}", f"{row.url}: its bytes cannot be reached")
        self.found.unreachable = count
        if count > _MAX_UNREACHABLE_NAMED:
            self.found.add_problem("nodes", f"the bytes of {count - _MAX_UNREACHABLE_NAMED} more cannot be reached")
        return count

    def _name_rows_without_capture(self) -> None:
        """Name the rows whose record is not at their position."""
        named = False
        for row in self._archived_rows():
            assert row.archived is not None
            if not self._files.is_reachable(row.archived.file):
                continue
            record = self._files.read(row.archived)
            if record is None or record.length != row.archived.length or record.target != target_uri(row.url):
                named = True
                span = row.archived
                self.found.add_problem("catalog", f"{row.url}: no record of it in {span.file} at {span.offset}")
        if not named:
            self.found.add_problem("catalog", "rows and captures do not match: one record belongs to several rows")

    def _archived_rows(self) -> Iterator[UrlRecord]:
        return (row for _, row in self._ledger.urls() if row.archived is not None)
