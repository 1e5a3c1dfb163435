"""What is copied: the parts of a crawl, and where they come from and go to.

Every store has the same rows (`core/ledger/rows`), with two exceptions. Of contents a shared ledger has only the id of
the first URL, and signatures have no numbers there. A copy is made of these shorter rows; a folder completes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gossamer.core.ledger.rows import SHARDED, decode_content
from gossamer.model.figures import Totals
from gossamer.model.state import CrawlRecord, NodeStatus
from gossamer.ports import Row
from gossamer.ports.shared_ledger import NodeId

PAGES = ("contents", "signatures")
ARCHIVES = "archives"
MESSAGES = "letters"
NODES = "nodes"
ROW_TABLES = (*SHARDED, *PAGES)
LOT_ROWS = 2000
_ID_BYTES = 16


def shorter(row: Row) -> Row:
    """Return a row of a folder as a shared ledger has it."""
    assert row.value is not None
    if row.table == "contents":
        return row._replace(value=decode_content(row.value).url_id)
    if row.table == "signatures":
        return Row(row.table, row.value[:_ID_BYTES], row.value[_ID_BYTES:])
    return row


class Lot(Struct, frozen=True):
    """Rows that are stored together."""

    rows: Sequence[Row] = ()
    messages: Sequence[tuple[int, bytes]] = ()  # shard, and what waits in its inbox
    after: str = ""  # the copy continues after this; empty: with the lot that was marked last


class NodePart(Struct, frozen=True):
    """What a node has done, and the archive files in its folder."""

    totals: Totals
    status: NodeStatus
    ends: Mapping[str, int]


class CrawlSource(Protocol):
    """A stopped crawl that is copied. It is only read."""

    @property
    def id(self) -> str:
        """What identifies the crawl, in the state that it is in."""
        ...

    @property
    def name(self) -> str:
        """For people: the folder, or the URL without a password."""
        ...

    @property
    def record(self) -> CrawlRecord:
        """The crawl's record, as a shared ledger is to have it."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What is left out, and why."""
        ...

    def nodes(self) -> Mapping[NodeId, NodePart]:
        """Return the nodes that took part; a folder counts as one."""
        ...

    def lots(self, after: str) -> Iterator[Lot]:
        """Yield everything after a mark, in an order that is always the same."""
        ...

    def check_unchanged(self) -> None:
        """Raise if the crawl was continued meanwhile."""
        ...


class CrawlTarget(Protocol):
    """Where a crawl is copied to."""

    @property
    def tables(self) -> Sequence[str]:
        """The tables that are compared at the end."""
        ...

    @property
    def file_bytes(self) -> int:
        """How many bytes of archive and event files were copied or linked."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What the operator should know."""
        ...

    def begin(self) -> str | None:
        """Begin or continue; return the mark of the last lot that is stored. None: everything was compared before."""
        ...

    def add(self, lot: Lot) -> None:
        """Store a lot, durable on return. Storing it again changes nothing."""
        ...

    def add_rest(self) -> None:
        """Store what is not in lots: nodes, archives."""
        ...

    def parts(self) -> Iterator[Sequence[Row]]:
        """Yield everything that is stored, read back: see `checksums`."""
        ...

    def keep_alive(self) -> None:
        """Called every few thousand rows while both sides are read."""
        ...

    def begin_anew(self) -> None:
        """Have the next attempt copy everything again, since something is different."""
        ...

    def finish(self) -> None:
        """Make the copy usable: it was compared with its source."""
        ...

    def close(self) -> None:
        """Release everything; an unfinished copy can be continued."""
        ...
