"""The ranks of a crawl's domains in its folder, as the crawl reads them: written by `gossamer rank`.

JSON lines: the first one says what the ranks were computed from, the others are domains in the order of their ids.
So the domains of a shard are adjacent, and a reader needs the memory of one batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from gossamer.core.url.identity import domain_id, shard_of
from gossamer.model.errors import GossamerError
from gossamer.model.state import DomainRank

RANK_FILE_NAME = "domain-ranks.jsonl.gz"  # in the crawl folder
FORMAT = 1
BATCH = 1000  # domains: some 5 ms to apply


class RankHead(Struct, frozen=True):
    """The first line, as far as a crawl needs it."""

    format: int
    computed_at: str
    pages: int = 0
    links: int = 0
    domains: int = 0


class RankLine(Struct, frozen=True, gc=False):
    """A domain with its rank."""

    domain: str
    rank: float  # all domains add up to 1
    standing: float  # which share of the rank of all others belongs to lower domains


_head = msgspec.json.Decoder(RankHead).decode
_line = msgspec.json.Decoder(RankLine).decode


def read_head(path: Path) -> RankHead | None:
    """Return the first line; None if there is no file. Raises `GossamerError` if it cannot be read."""
    for head, _ in _read(path):
        return head
    return None


def read_ranks(path: Path) -> Iterator[list[DomainRank]]:
    """Yield all domains in batches, no shard in two of them. Raises `GossamerError` if they cannot be read."""
    batch: list[DomainRank] = []
    last = -1
    for _, line in _read(path):
        if line is None:
            continue
        shard = shard_of(domain_id(line.domain))
        if shard != last and len(batch) >= BATCH:
            yield batch
            batch = []
        last = shard
        batch.append(DomainRank(line.domain, round(line.standing, 2)))
    if batch:
        yield batch


def _read(path: Path) -> Iterator[tuple[RankHead, RankLine | None]]:
    """Yield the first line, and then each other with it."""
    import gzip

    head: RankHead | None = None
    try:
        with gzip.open(path) as lines:
            for line in lines:
                if head is None:
                    head = _head(line)
                    if head.format != FORMAT:
                        raise GossamerError(f"{path}: format {head.format}; expected {FORMAT}: {_advice(path)}")
                    yield head, None
                else:
                    yield head, _line(line)
    except FileNotFoundError:
        return
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError) as error:
        raise GossamerError(f"{path}: cannot be read ({error}): {_advice(path)}") from error


def _advice(path: Path) -> str:
    return f"'gossamer rank {path.parent}' writes it anew"
