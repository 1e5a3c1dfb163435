"""What the scripts get as arguments, and what their answers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer.backends.redis.calls import Argument
from gossamer.backends.redis.keys import changes_of
from gossamer.core.cluster.record_additions import extended
from gossamer.model.errors import UsageError
from gossamer.model.state import CrawlRecord
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, Member, Membership, Message, NodeId

HashChanges = dict[str, tuple[list[bytes], list[bytes]]]  # hash -> (field, value...) to set, fields to remove
to_json = msgspec.json.Encoder().encode
encode = msgspec.msgpack.Encoder().encode
_record = msgspec.msgpack.Decoder(CrawlRecord).decode


def id_of(node: NodeId) -> str:
    """Return a node as in keys and fields."""
    return f"{node.name}/{node.incarnation}"


def node_of(text: str) -> NodeId:
    """Return the node of an id."""
    name, _, incarnation = text.rpartition("/")
    return NodeId(name, incarnation)


def budget_of(record: CrawlRecord) -> str | int:
    """Return how many pages a crawl may have, or nothing."""
    return record.budgets.get("pages", "")


def record_of(found: Sequence[bytes]) -> CrawlRecord:
    """Return a crawl's record."""
    version, body, ended = found
    try:
        record = _record(body)
    except msgspec.MsgspecError:
        raise UsageError(
            "this program cannot read the record of the crawl: another version of Gossamer started it; use that one"
        ) from None
    return replace(record, version=int(version), ended=ended.decode())


def membership_of(found: Sequence[Any]) -> Membership:
    """Return what a node learns when it joins or renews its lease."""
    now_us, lease_s, members, shards, commit, claimed, version, domains, left_us, ended = found
    live = [
        Member(node_of(each.decode()).name, label.decode())
        for each, label in zip(members[::2], members[1::2], strict=True)
    ]
    return Membership(
        now=int(now_us) / 1e6,
        lease_s=float(lease_s),
        members=tuple(sorted(live, key=lambda member: member.name)),
        shards=pairs(shards),
        commit=int(commit),
        claimed=int(claimed) if claimed else None,
        record_version=int(version),
        domains=int(domains),
        first_end_s=int(left_us) / 1e6,
        ended=ended.decode(),
    )


def pairs(found: Sequence[bytes]) -> dict[int, int]:
    """Return numbers by number."""
    return dict(zip(map(int, found[::2]), map(int, found[1::2]), strict=True))


def append(args: list[Argument], entries: Sequence[Sequence[Any]]) -> None:
    """Append a section: how many entries there are, and their values."""
    args.append(len(entries))
    for entry in entries:
        args += entry


def begin_commit(commit: Commit, record: CrawlRecord | None) -> list[Argument]:
    """Return the first arguments of a commit: totals, and what it is based on. `record`: if it changes that."""
    totals = commit.totals
    args: list[Argument] = [commit.number, to_json(totals), totals.new_pages, totals.unique_domains]
    append(args, [] if record is None else [(record.version, encode(extended(record, commit.added)))])
    append(args, list(commit.epochs.items()))
    append(args, [(shard, len(ids), ids[-1]) for shard, ids in commit.read.items() if ids])
    return args


def archive_ends_of(commit: Commit) -> list[tuple[bytes, int]]:
    """Return archive files with their lengths."""
    return [(row.key, int.from_bytes(row.value or b"", "big")) for row in commit.archives]


def row_changes(changed: Mapping[int, Sequence[Row]], pack: Callable[[bytes], bytes]) -> HashChanges:
    """Return changed rows of shards, by hash."""
    hashes: HashChanges = {}
    for shard, its_rows in changed.items():
        for key, field, value in changes_of(shard, its_rows, pack):
            added, removed = hashes.setdefault(key, ([], []))
            if value is None:
                removed.append(field)
            else:
                added += (field, value)
    return hashes


def append_hashes(args: list[Argument], hashes: HashChanges) -> None:
    """Append the section of changed hashes."""
    args.append(len(hashes))
    for key, (added, removed) in hashes.items():
        args += (key, len(added) // 2, *added, len(removed), *removed)


def content_places(contents: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, bytes, bytes]]:
    """Return hash, field and value of contents."""
    return [(f"contents:{key[:1].hex()}", key, page) for key, page in contents]


def message_id(node: str, number: int) -> bytes:
    """Return the id of all messages of a node's commit."""
    return f"{node}/{number}".encode()


def message(its_id: bytes, links: bytes) -> bytes:
    """Return a message as in an inbox."""
    return len(its_id).to_bytes(2, "big") + its_id + links


def message_of(data: bytes) -> Message:
    """Return the message in an inbox."""
    end = 2 + int.from_bytes(data[:2], "big")
    return Message(data[2:end], data[end:])
