"""A commit on Redis Cluster, divided into what each server gets.

The decision goes to the control keys, a part to each range that the commit changes. A part names the node's commit
before that changed the same range, so a server that has lost one is noticed. Entries of the journal have decision and
parts as they were sent: sending them again is all that is needed to make a commit again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gossamer.backends.redis import arguments, ranges
from gossamer.backends.redis.arguments import HashChanges
from gossamer.backends.redis.calls import Argument
from gossamer.backends.redis.near_pages import signatures_key
from gossamer.core.cluster.record_additions import NOTHING, Additions
from gossamer.core.dedup.shared_pages import Nearest
from gossamer.model.records import UrlId
from gossamer.model.state import CrawlRecord
from gossamer.ports.shared_ledger import Commit

encode = msgspec.msgpack.Encoder().encode
decode_similar = msgspec.msgpack.Decoder(list[Nearest]).decode


class RangePart(Struct, frozen=True, array_like=True):
    """What a commit changes in one range."""

    predecessor: int  # the node's commit before that changed this range; 0 if there is none
    changes: list[Any]  # arguments of `apply`


class CommitPlan(Struct, frozen=True, array_like=True):
    """A commit, as it is sent and as it is in the journal."""

    node: str
    number: int
    seen_us: int  # engine's time that the node had seen: greater than that of each commit that this one builds on
    decision: list[Any]  # arguments of `decide`
    touched: list[int]  # ranges
    parts: dict[int, RangePart]  # by range; in the journal only some of them
    added: Additions = NOTHING  # to the crawl's record


decode_plan = msgspec.msgpack.Decoder(CommitPlan).decode


class PageFacts(Struct, frozen=True):
    """What is known of a commit's pages before it is made."""

    similar: list[Nearest]
    added: Mapping[UrlId, Sequence[bytes]]  # pages whose signatures are stored, with their bands


class Basis(Struct, frozen=True):
    """What a node's commit follows."""

    node: str
    heads: Mapping[int, int]  # range -> the node's last commit that changed it
    seen_us: int
    record: CrawlRecord | None = None  # that it changes


def plan_commit(commit: Commit, pages: PageFacts, basis: Basis, pack: Callable[[bytes], bytes]) -> CommitPlan:
    """Return a commit divided by ranges."""
    sent_as = arguments.message_id(basis.node, commit.number)
    hashes = _hashes(commit, pages, sent_as, pack)
    contents = _by_range((ranges.of_content(key), (key, page)) for key, page in commit.contents.items())
    bands = _by_range(
        (ranges.of_content(band), (band, page)) for page, its_bands in pages.added.items() for band in its_bands
    )
    touched = sorted(hashes.keys() | contents.keys() | bands.keys())
    parts: dict[int, RangePart] = {}
    for number in touched:
        changes: list[Argument] = []
        arguments.append_hashes(changes, hashes.get(number, {}))
        arguments.append(changes, arguments.content_places(contents.get(number, ())))
        arguments.append(changes, bands.get(number, ()))
        parts[number] = RangePart(basis.heads.get(number, 0), changes)
    decision = _decision(commit, basis.record, sent_as, touched, encode(pages.similar))
    return CommitPlan(basis.node, commit.number, basis.seen_us, decision, touched, parts, commit.added)


def _hashes(commit: Commit, pages: PageFacts, sent_as: bytes, pack: Callable[[bytes], bytes]) -> dict[int, HashChanges]:
    """Return the changed hashes of each range: rows, messages to and from inboxes, signatures."""
    found: dict[int, HashChanges] = {}
    for shard, changed in commit.rows.items():
        found.setdefault(ranges.of_shard(shard), {}).update(arguments.row_changes({shard: changed}, pack))

    def changes(number: int, key: str) -> tuple[list[bytes], list[bytes]]:
        return found.setdefault(number, {}).setdefault(key, ([], []))

    for shard, links in commit.links.items():
        changes(ranges.of_shard(shard), f"inbox:{shard}")[0].extend((sent_as, links))
    for shard, ids in commit.read.items():
        if ids:
            changes(ranges.of_shard(shard), f"inbox:{shard}")[1].extend(ids)
    for page in pages.added:
        changes(ranges.of_signature(page), signatures_key(page))[0].extend((page, commit.signatures[page]))
    return found


def _by_range(pairs: Iterable[tuple[int, tuple[bytes, bytes]]]) -> dict[int, list[tuple[bytes, bytes]]]:
    found: dict[int, list[tuple[bytes, bytes]]] = {}
    for number, pair in pairs:
        found.setdefault(number, []).append(pair)
    return found


def _decision(
    commit: Commit, record: CrawlRecord | None, sent_as: bytes, touched: list[int], answer: bytes
) -> list[Argument]:
    args = arguments.begin_commit(commit, record)
    links = commit.links.items()
    # The control keys have id and length of a message, the range has its links.
    sizes = [(shard, arguments.message(sent_as, len(text).to_bytes(4, "big"))) for shard, text in links]
    arguments.append(args, sizes)
    arguments.append(args, arguments.archive_ends_of(commit))
    arguments.append(args, [(number,) for number in touched])
    args.append(answer)
    return args
