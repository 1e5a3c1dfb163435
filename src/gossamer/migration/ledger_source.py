"""A stopped crawl in a ledger that nodes share, to be copied to a folder or to another ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import chain, islice

from msgspec.structs import replace

from gossamer.core.ledger.archive_names import checked_ends
from gossamer.core.ledger.rows import SHARDED, encode
from gossamer.core.ledger.tables import SEEDS
from gossamer.core.url.identity import SHARD_COUNT, use, with_record
from gossamer.migration.parts import LOT_ROWS, Lot, NodePart
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.state import CrawlRecord
from gossamer.ports import Row
from gossamer.ports.shared_ledger import PAGE_PARTS, NodeId, NodeView, SharedLedger
from gossamer.settings.crawl_key import new_crawl_id
from gossamer.settings.load import settings_for_node
from gossamer.settings.regions import use_regions

SHARDS_AT_ONCE = PARTS_AT_ONCE = 16  # copied before the next mark
_ROWS = "rows"
_PAGES = "pages"
_MESSAGES = "letters"


class LedgerSource:
    """See `migration.parts.CrawlSource`. The caller closes the ledger."""

    def __init__(self, shared: SharedLedger, record: CrawlRecord, name: str) -> None:
        self.shared = shared
        self.name = name
        self.stored = record  # as it is
        self.settings = settings_for_node(record.settings, name, [])
        use_regions(self.settings)  # ids of hosts depend on them
        use(with_record(record.ids))
        self.views = shared.nodes()
        _check_stopped(self.views, name)
        self._nodes = self._read_nodes()
        self.id = self._identity(record)
        self.notes: list[str] = []

    @property
    def record(self) -> CrawlRecord:
        """The record of the crawl, without what concerns nodes that are gone."""
        stored = self.stored
        earlier = [*stored.earlier, *filter(None, [stored.id])]
        return replace(stored, version=1, stop_version=0, leaving={}, ended="", id=new_crawl_id(), earlier=earlier)

    def nodes(self) -> Mapping[NodeId, NodePart]:
        """Return the nodes that did something."""
        return self._nodes

    def _read_nodes(self) -> dict[NodeId, NodePart]:
        """Return the nodes; the archive files of a name belong to the first of its incarnations."""
        named: set[str] = set()
        found: dict[NodeId, NodePart] = {}
        for node, view in self.views.items():
            ends = {} if node.name in named else checked_ends(self.shared.archive_ends(node.name), self.name)
            if ends or view.status.folder or view.totals.fetches or view.totals.urls_seen:
                named.add(node.name)
                found[node] = NodePart(view.totals, view.status, ends)
        return found

    def _identity(self, record: CrawlRecord) -> str:
        digest = sha256(encode(record))
        for node, part in sorted(self._nodes.items(), key=lambda each: (each[0].name, each[0].incarnation)):
            digest.update(encode([node, part.totals, sorted(part.ends.items())]))
        return digest.hexdigest()

    def lots(self, after: str) -> Iterator[Lot]:
        """Yield everything after a mark: what was copied last, and the number of the first part that was not."""
        what, _, number = after.partition(" ")
        first = int(number or 0)
        if not what:
            yield Lot(seed_rows(self.stored))
        if what in ("", _ROWS):
            yield from self._row_lots(first)
            first = 0
        if what != _MESSAGES:
            yield from self._page_lots(first if what == _PAGES else 0)
            first = 0
        yield from self._message_lots(first)

    def _row_lots(self, first: int) -> Iterator[Lot]:
        for start in range(first, SHARD_COUNT, SHARDS_AT_ONCE):
            end = start + SHARDS_AT_ONCE
            yield from _marked(self.shared.scan(range(start, end), SHARDED), f"{_ROWS} {end}")

    def _page_lots(self, first: int) -> Iterator[Lot]:
        for start in range(first, PAGE_PARTS, PARTS_AT_ONCE):
            end = start + PARTS_AT_ONCE
            slices = (rows for part in range(start, end) for rows in self.shared.pages(part))
            yield from _marked(slices, f"{_PAGES} {end}")

    def _message_lots(self, first: int) -> Iterator[Lot]:
        for shard, links in self.shared.messages(range(first, SHARD_COUNT)):
            yield Lot(messages=[(shard, links)])

    def check_unchanged(self) -> None:
        """Raise if nodes have joined meanwhile."""
        record = self.shared.record()
        self.views = self.shared.nodes()
        _check_stopped(self.views, self.name)
        self._nodes = self._read_nodes()
        if record is None or self._identity(record) != self.id:
            raise GossamerError(
                f"{self.name}: the crawl was continued while it was copied; stop it, remove the copy, and begin anew"
            )


def seed_rows(record: CrawlRecord) -> list[Row]:
    """Return the seeds with rules of their own as rows: a shared ledger has them in the crawl's record."""
    return [Row(SEEDS.name, SEEDS.key(seed), encode(seed)) for seed in record.seeds]


def _marked(slices: Iterator[list[Row]], after: str) -> Iterator[Lot]:
    """Yield lots, the last of which has a mark."""
    rows = chain.from_iterable(slices)
    lot = list(islice(rows, LOT_ROWS))
    while lot:
        following = list(islice(rows, LOT_ROWS))
        yield Lot(lot, after="" if following else after)
        lot = following


def _check_stopped(views: Mapping[NodeId, NodeView], name: str) -> None:
    live = sorted({node.name for node, view in views.items() if view.is_live})
    if live:
        raise UsageError(f"{name}: nodes are alive ({', '.join(live)}); stop them first: gossamer stop {name}")
