"""How a node gets its seat in a cluster: the crawl's record, a lease, and a time line on the engine's clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from secrets import token_hex

from msgspec import Struct
from msgspec.structs import replace

from gossamer.archive.cdxj import final_name
from gossamer.archive.excision import remove_unfinished_copies
from gossamer.archive.recovery import ASIDE_FOLDER, close_file, cut_back, mend_parts
from gossamer.backends.local.folder import CrawlFolder
from gossamer.core.ledger.archive_names import node_of
from gossamer.model.errors import UsageError
from gossamer.model.state import CrawlRecord, NodeLoad, NodeStatus, Terms
from gossamer.ports.shared_ledger import Membership, NodeId, SharedLedger
from gossamer.runtime.session.clock import TimeLine, lease_clock
from gossamer.runtime.watch.figures_source import FiguresSource

# The folder of a node: its archive as the cluster knows it, and a copy of its shards that is made anew.
#
# Whatever an earlier incarnation stored and did not commit is not part of the crawl: another node may have fetched the
# page since. It is moved to `aside/`, and the page is fetched again by whoever owns its shard.


def drop_copy(folder: CrawlFolder) -> None:
    """Remove the copy of the shards of an earlier incarnation. The folder is locked."""
    for path in folder.state.glob("*.mdb"):
        path.unlink()


def check_archive(folder: CrawlFolder, node: str, ends: Mapping[str, int]) -> None:
    """Raise if an archive file is neither in the ledger nor named after this node."""
    for path in sorted(folder.archive.glob("*.warc.gz*")):
        name = final_name(path)
        if name not in ends and node_of(name) != node:
            raise UsageError(f"{path}: an archive file of which this crawl knows nothing; choose another folder")


def restore_archive(folder: CrawlFolder, ends: Mapping[str, int]) -> list[str]:
    """Cut the archive files back to their committed lengths, and close them; return what was done, for events."""
    remove_unfinished_copies(folder.archive)
    done: list[str] = []
    for path in sorted(folder.archive.glob("*.warc.gz*")):
        name = final_name(path)
        if cut_bytes := cut_back(path, ends.get(name, 0)):
            done.append(f"{name}: {cut_bytes} bytes that were not committed were moved to {ASIDE_FOLDER}/")
        close_file(path, folder.index)
    mend_parts(folder.archive, folder.index)
    return done


# What does a node report about its load with each renewal of its lease, for `gossamer status` of the whole crawl?

MAX_WARNINGS = 5
MAX_WARNING_CHARS = 300


def with_load(source: FiguresSource, status: NodeStatus) -> NodeStatus:
    """Return a status with the load of the node."""
    figures = source.read()
    bound = figures.bound_by
    rate = figures.rates.get("10s")
    lasting = [replace(each, text=each.text[:MAX_WARNING_CHARS]) for each in figures.warnings if each.is_lasting]
    load = NodeLoad(
        pages_per_second=round(rate.pages, 2) if rate is not None else 0.0,
        bound_by=bound.resource.value if bound is not None else "",
        evidence=bound.evidence if bound is not None else "",
        forecast=figures.forecast.text if figures.forecast is not None else "",
        private_bytes=figures.private_bytes,
        warnings=lasting[:MAX_WARNINGS],
        forecast_s=figures.forecast.seconds if figures.forecast is not None else None,
        forecast_urls=max(0, figures.urls_queued - figures.urls_over_budget - figures.urls_parked),
        over_budget_urls=figures.urls_over_budget,
        parked_urls=figures.urls_parked,
        retried_urls=figures.urls_retried,
    )
    return replace(status, load=load)


LEASE_S = 10.0


class Seat(Struct, frozen=True):
    """One incarnation of a node, as it joined."""

    shared: SharedLedger
    node: NodeId
    record: CrawlRecord
    membership: Membership
    asked_at: float  # on the lease clock
    time_line: TimeLine
    label: str = ""  # its labels, separated by commas
    folder: str = ""  # of the node, as an absolute path
    crawl: str = ""  # its name in the ledger


def check_terms(record: CrawlRecord, own: Terms) -> None:
    """Raise if the crawl is incomplete, or if this program would put hosts into other shards than its nodes do."""
    if record.migration is not None:
        raise UsageError("a migration to this crawl is not finished; run 'gossamer migrate FROM URL' again")
    for name in Terms.__struct_fields__:
        theirs = getattr(record.terms, name)
        ours = getattr(own, name)
        if theirs != ours:
            what = name.replace("_", " ")
            raise UsageError(f"the crawl has {what} {theirs}, this program {ours}: use one version on all nodes")


def join(
    shared: SharedLedger,
    record: CrawlRecord,
    name: str,
    *,
    label: str = "",
    folder: str = "",
    crawl: str = "",
    lease_s: float = LEASE_S,
) -> Seat:
    """Join a crawl under a name; the incarnation is new."""
    node = NodeId(name, token_hex(6))
    asked_at = lease_clock()
    monotonic = time.monotonic()
    membership = shared.join(node, label, lease_s)
    time_line = TimeLine(membership.now, monotonic)
    return Seat(shared, node, record, membership, asked_at, time_line, label, folder, crawl)
