"""Copies a crawl from a ledger that nodes share into a folder of one machine.

First the files of all nodes (`files`), then the rows, then what a ledger of one machine has besides. Contents get
date and digest of their record from the archive. Until everything is done, `state/migration` says so, and the folder is
refused by all who would use it. What was on its way between nodes, and what the operator had requested of
them, is done last, by the engine, as a node would.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.archive.writer import sync_folder
from gossamer.backends.local.folder import CrawlFolder
from gossamer.backends.local.near_dup import META_KEY, edition_row
from gossamer.backends.local.raw_ledger import RawLedger
from gossamer.backends.local.store import DATA_FILE
from gossamer.core.dedup.scheme import SCHEMES
from gossamer.core.ledger import rows
from gossamer.core.url.identity import SHARD_COUNT
from gossamer.foundation import failpoints
from gossamer.migration.checksums import archive_rows
from gossamer.migration.files import FileCopy, NodeFiles, write_opt_outs
from gossamer.migration.ledger_source import LedgerSource
from gossamer.migration.parts import ARCHIVES, LOT_ROWS, ROW_TABLES, Lot, shorter
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.figures import Totals
from gossamer.model.records import ContentRecord
from gossamer.model.state import ORIGIN_NODE, CrawlRecord, CrawlState
from gossamer.ports import Row
from gossamer.reading.archive_access import archive_files
from gossamer.reading.node_folders import find_folders
from gossamer.settings.load import to_toml
from gossamer.settings.model import AfterTarget, Settings
from gossamer.settings.regions import regions_of

_MISSING_SHOWN = 3
Complete = Callable[[Settings, CrawlFolder, Iterator[tuple[int, bytes]], CrawlRecord], None]


class _Mark(Struct, frozen=True):
    """What is in `state/migration`."""

    source: str
    is_compared: bool = False


class FolderPlan(Struct, frozen=True):
    """How a folder is made."""

    path: Path
    given: Mapping[str, Path]  # folders of nodes that the operator named
    allows_missing: bool
    now: float
    complete: Complete  # has the engine accept messages and requests, and completes state and report


class FolderTarget:
    """See `migration.parts.CrawlTarget`."""

    def __init__(self, plan: FolderPlan, source: LedgerSource) -> None:
        self._plan = plan
        self._source = source
        self._folder = CrawlFolder(plan.path)
        self._ledger = RawLedger(self._folder.state, is_readonly=False)
        self._settings = source.settings
        self._files = archive_files(self._folder.archive, self._settings.store)
        self._next_signature = 0
        self._mark = "0 "  # the number of the next signature at the last mark, and the mark
        self.tables: Sequence[str] = (*ROW_TABLES, ARCHIVES)
        self.file_bytes = 0
        self.notes: list[str] = []

    # -- begin ------------------------------------------------------------------------------------

    def begin(self) -> str | None:
        """Begin or continue: the files of all nodes come first."""
        regions = regions_of(self._settings)
        if regions is not None and regions.has_countries:
            raise UsageError(
                f"{self._source.name}: has --region rules by country, which only nodes apply; it can move to a ledger, "
                "not to a folder"
            )
        folder = self._folder
        mark = self._read_mark()
        nodes = self._node_files()
        folder.lock()
        if mark is None:
            self._write_mark(_Mark(self._source.id))
        FileCopy(folder, self._count_bytes).copy(nodes)
        self._ledger.__enter__()
        if mark is not None and mark.is_compared:
            return None
        # Rows behind the mark come again, in another order perhaps, and get the same numbers.
        number, _, after = self._ledger.mark.partition(" ")
        self._next_signature = int(number or 0)
        self._mark = f"{self._next_signature} {after}"
        return after

    def _read_mark(self) -> _Mark | None:
        folder = self._folder
        if not folder.migration.is_file():
            if folder.holds_crawl():
                raise UsageError(f"{folder.path}: contains a crawl already; choose a new folder")
            folder.check_usable()
            return None
        mark = msgspec.json.decode(folder.migration.read_bytes(), type=_Mark)
        if mark.source != self._source.id:
            raise UsageError(
                f"{folder.path}: an unfinished migration of another crawl, or of this one before it was continued; "
                "choose a new folder, or remove it"
            )
        return mark

    def _write_mark(self, mark: _Mark) -> None:
        unfinished = self._folder.migration.with_suffix(".tmp")
        with unfinished.open("wb") as file:
            file.write(msgspec.json.encode(mark))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._folder.migration)
        sync_folder(self._folder.state)

    def _node_files(self) -> list[NodeFiles]:
        """Return the folders of all nodes; raise if archive files cannot be reached."""
        source = self._source
        folders = find_folders(source.views, self._plan.given, source.stored.origin)
        ends: dict[str, dict[str, int]] = {}
        for node, part in source.nodes().items():
            ends.setdefault(folders.home_of(node.name), {}).update(part.ends)
        found: list[NodeFiles] = []
        missing: list[str] = []
        for name, its_ends in sorted(ends.items()):
            folder = folders.found.get(name)
            if folder is None:
                missing += [file for file, end in its_ends.items() if end]
                continue
            found.append(NodeFiles(name, folder, its_ends, is_origin=name == ORIGIN_NODE))
            missing += found[-1].missing()
        worked = {node.name for node, part in source.nodes().items() if part.totals.fetches}
        if missing or any(node.name in worked for node in folders.elsewhere):
            self._report_missing(missing, folders.hint)
        return found

    def _report_missing(self, files: Sequence[str], hint: str) -> None:
        named = ", ".join(files[:_MISSING_SHOWN]) + (", …" if len(files) > _MISSING_SHOWN else "")
        what = f"{len(files)} archive files cannot be reached ({named})" if files else "events cannot be reached"
        where = f", {hint}" if hint else ""
        if not self._plan.allows_missing:
            raise GossamerError(f"{what}{where}; --allow-missing copies the crawl without them")
        self.notes.append(f"{what}{where}; pages in them are in the catalog, but cannot be read")

    def _count_bytes(self, count: int) -> None:
        self.file_bytes += count

    # -- rows -------------------------------------------------------------------------------------

    def add(self, lot: Lot) -> None:
        """Write a lot and its mark in one transaction."""
        found = [self._longer(row) for row in lot.rows]
        if lot.after:
            self._mark = f"{self._next_signature} {lot.after}"
        self._ledger.add(found, self._mark)
        failpoints.reach("before_mark")

    def _longer(self, row: Row) -> Row:
        """Return a row as a ledger of one machine has it."""
        assert row.value is not None
        if row.table == "contents":
            return row._replace(value=rows.encode(self._content(row.key, row.value)))
        if row.table == "signatures":
            number = self._next_signature
            self._next_signature = self._next_signature + 1
            return Row(row.table, number.to_bytes(8, "big"), row.key + row.value)
        return row

    def _content(self, content_hash: bytes, url_id: bytes) -> ContentRecord:
        """Return the first page with a content; without a digest its later copies are stored completely."""
        stored = self._ledger.get("urls", url_id)
        row = None if stored is None else rows.decode_url(stored)
        if row is not None and row.archived is not None and row.content_hash == content_hash:
            record = self._files.read(row.archived)
            if record is not None and record.type == "response" and record.payload_digest:
                return ContentRecord(url_id, row.url, record.date, record.payload_digest, row.archived)
        return ContentRecord(url_id, "" if row is None else row.url, 0.0, b"")

    def add_rest(self) -> None:
        """Write the lengths of archive files, and the crawl's state."""
        ends = {file: end for part in self._source.nodes().values() for file, end in part.ends.items()}
        state = rows.encode(self._state())
        identity = rows.encode(self._source.stored.ids)
        meta = [
            Row("meta", rows.FORMAT_KEY, rows.FORMAT),
            Row("meta", rows.IDENTITY_KEY, identity),
            Row("meta", rows.CRAWL_KEY, state),
        ]
        scheme = SCHEMES.get(self._settings.near_dup)
        if scheme is not None:
            meta.append(Row("meta", META_KEY, edition_row(scheme.edition, 0)))
        self._ledger.add([*archive_rows(ends), *meta], self._mark)

    def _state(self) -> CrawlState:
        """Return the state of the whole crawl; if no node has joined since it was migrated, as it was then."""
        record = self._source.stored
        parts = self._source.nodes()
        state = CrawlState(max_depth=self._settings.max_depth, saved_at=self._plan.now)
        if record.origin is not None:
            state = rows.decode_crawl(record.origin.state)
            if {node.name for node in parts} == {ORIGIN_NODE}:
                return state
        state.totals = Totals()
        state.figures = None
        for part in parts.values():
            state.totals.add(part.totals)
        state.totals.runs = max(1, state.totals.runs)
        state.scope = list(record.scope)
        state.opened_addresses = list(record.opened)
        state.saved_at = self._plan.now
        stops_at_target = self._settings.after_target is not AfterTarget.CONTINUE
        state.has_dropped_links = self._settings.target_unique_domains is not None and stops_at_target
        return state

    def parts(self) -> Iterator[Sequence[Row]]:
        """Yield everything that is in the ledger, as a shared one has it."""
        for table in self.tables:
            found = map(shorter, self._ledger.rows(table))
            while some := list(islice(found, LOT_ROWS)):
                yield some

    def keep_alive(self) -> None:
        """Do nothing: the folder is locked as long as the process lives."""

    # -- end --------------------------------------------------------------------------------------

    def begin_anew(self) -> None:
        """Remove the rows."""
        self._ledger.__exit__()
        (self._folder.state / DATA_FILE).unlink()

    def finish(self) -> None:
        """Complete the folder, and let it be used."""
        failpoints.reach("before_end")
        self._write_mark(_Mark(self._source.id, is_compared=True))
        self._ledger.remove_mark()
        self._ledger.__exit__()
        record = self._source.stored
        settings = replace(self._settings, max_pages=record.budgets.get("pages"))
        self._folder.write_settings(to_toml(settings))
        write_opt_outs(self._folder, sorted({name for names in record.blocked.values() for name in names}))
        messages = self._source.shared.messages(range(SHARD_COUNT))
        self._plan.complete(settings, self._folder, messages, record)
        failpoints.reach("before_end")
        self._folder.migration.unlink()

    def close(self) -> None:
        """Close the ledger, and release the folder."""
        self._ledger.__exit__()
        self._folder.release()
