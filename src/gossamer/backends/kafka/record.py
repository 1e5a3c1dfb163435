"""The record of a crawl on Cassandra, and how its rows and links are divided."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gossamer.backends.kafka.database import Keyspace
from gossamer.backends.kafka.layout import Layout
from gossamer.core.cluster.record_additions import Additions, extended
from gossamer.model.errors import UsageError
from gossamer.model.state import CrawlRecord

FORMAT = 1  # of the tables
_READ = "SELECT format, version, body, ended, partitions, buckets FROM crawls WHERE crawl = ?"
_encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(CrawlRecord).decode


class Stored(Struct, frozen=True):
    """A crawl."""

    record: CrawlRecord
    layout: Layout


class Record:
    """See the module. Changed under the condition that it is the version that was read."""

    def __init__(self, database: Keyspace) -> None:
        self._database = database
        self._crawl = database.name

    def read(self) -> Stored | None:
        """Return the crawl; None if there is none."""
        found = self._database.read(_READ, self._crawl)
        if not found:
            return None
        stored_format, version, body, ended, partitions, buckets = found[0]
        try:
            record = _record(body)
        except msgspec.MsgspecError:
            stored_format = -1
        if stored_format != FORMAT:
            raise UsageError(
                f"ledger {self._crawl}: this program cannot read the record of the crawl: another version of Gossamer "
                "started it; use that one"
            )
        return Stored(replace(record, version=version, ended=ended), Layout(partitions, buckets))

    def create(self, record: CrawlRecord, layout: Layout) -> None:
        """Store the record of a new crawl, unless there is one."""
        self._database.change(
            "INSERT INTO crawls (crawl, format, version, body, ended, pages, partitions, buckets, generation) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
            *(self._crawl, FORMAT, record.version, _encode(record), record.ended, record.budgets.get("pages")),
            *(layout.partitions, layout.buckets, self.generation()),
        )

    def generation(self) -> int:
        """Return when the server that answers was started, in seconds."""
        ((generation,),) = self._database.read("SELECT gossip_generation FROM system.local")
        return int(generation)

    def first_generation(self) -> int:
        """Return the same, as it was when the crawl started."""
        found = self._database.read("SELECT generation FROM crawls WHERE crawl = ?", self._crawl)
        return int(found[0][0]) if found else 0

    def planned_buckets(self) -> int:
        """Return into how many buckets the rows of a new crawl are to be divided."""
        found = self._database.read("SELECT buckets FROM layouts WHERE crawl = ?", self._crawl)
        return int(found[0][0]) if found else 1

    def version(self) -> int:
        """Return the version of the record; 0 if there is none."""
        found = self._database.read("SELECT version FROM crawls WHERE crawl = ?", self._crawl)
        return int(found[0][0]) if found else 0

    def reading(self) -> tuple[str, Sequence[object]]:
        """Return the request for version, end, and budget of pages."""
        return "SELECT version, ended, pages FROM crawls WHERE crawl = ?", (self._crawl,)

    def change(self, record: CrawlRecord) -> bool:
        """Replace the record by one with the next version; that of a crawl that is over only to reopen it."""
        condition = "IF version = ? AND ended = ''" if record.ended else "IF version = ?"
        return self._database.change(
            f"UPDATE crawls SET version = ?, body = ?, ended = ?, pages = ? WHERE crawl = ? {condition}",
            *(record.version, _encode(record), record.ended, record.budgets.get("pages"), self._crawl),
            record.version - 1,
        )

    def extend(self, added: Additions) -> None:
        """Add what extends the scope, unless the crawl is over or has it."""
        while True:
            found = self.read()
            if found is None or found.record.ended:
                return
            wanted = extended(found.record, added)
            if replace(wanted, version=found.record.version) == found.record or self.change(wanted):
                return
