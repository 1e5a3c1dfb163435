"""How is a memory limit divided among what grows with a crawl?

Memory is the private memory of the hub and its workers together; the pages of the ledger's file
belong to the kernel, which reclaims them when it needs them. A tenth is reserved for freed memory that
is not returned and for what has no part of its own. Each part gets its minimum, then its share of the
rest until it has all that it can use; what is left goes to the seen set and the near-duplicate index,
which have no maximum.

Invariants: the parts add up to no more than the whole, none is below its minimum, and a higher ceiling
makes no part smaller. The bytes of an entry were measured by `benchmarks/memory.py`.
"""

from __future__ import annotations

import os
import re
from typing import Final

from msgspec import Struct

from gossamer.model.errors import UsageError

# -- what an entry takes, in bytes -------------------------------------------------------------------

PROGRAM: Final = 30_000_000  # the process that schedules, with a worker in it, after its first pages
WORKER: Final = 24_000_000  # per worker in a separate process
HOST: Final = 4_700  # with the rules of its robots.txt, if these are not large
IDLE_HOST: Final = 4_140
URL: Final = 1_020  # at the head of a queue: 510, and a head may grow to twice its size before it is cut
LINK: Final = 106  # in the memo of links decided recently
NAME: Final = 580  # in the cache of DNS answers, 390, and of host names, 190
PAGE: Final = 250  # in the near-duplicate index
HREF: Final = 340  # in a worker's memo, 170, and once more while the hub decides
PATTERN: Final = 25_000  # of URLs, watched for traps
COPY: Final = 440  # in a worker's memo of contents
IDLE_CONNECTION: Final = 102_000  # a keep-alive connection with TLS; 2 kB without
CONNECTION: Final = 200_000  # one in use, TLS, with an answer of the usual size, twice
BODY_COPIES: Final = 2  # of an answer: as it was received, and in one piece
LARGE_BODIES: Final = 3  # reading one takes this many times the largest body
CHANGE: Final = 2_000  # not committed yet: 2 * 230 here, and a share of a page of the ledger that is being written

# -- the maximum that is of use ------------------------------------------------------------------------

MAX_HOSTS: Final = 50_000
MAX_IDLE_HOSTS: Final = 10_000
MIN_RULES: Final = 1_000_000
MAX_RULES: Final = 64 << 20  # bytes of large robots.txt files; the worst one takes 5 MB
MAX_URLS: Final = 400_000
MAX_LINKS: Final = 200_000
MAX_NAMES: Final = 50_000
MEMO_HREFS: Final = 50_000
MAX_PATTERNS: Final = 5_000
MAX_COPIES: Final = 100_000
MAX_CHANGES: Final = 100_000

RESERVE: Final = 10  # a tenth
SHARE_OF_MACHINE: Final = 0.75  # if no ceiling is given
_STEP: Final = 1 << 20

_SIZE = r"(?ia)(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?"
_MAX_SIZE: Final = 1 << 60  # larger than any machine, and valid in every file format
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class _Part(Struct, frozen=True):
    """The minimum of one use of memory, its weight in the rest, and its maximum. None: no maximum."""

    min_bytes: int
    weight: int
    max_bytes: int | None


class Budget(Struct, frozen=True):
    """A divided ceiling. Numbers of entries, except `bodies`, `rules` and `seen`, which are bytes."""

    whole: int
    connections: int  # requests in flight, of all workers together
    safe_connections: int  # how many of these may get the largest body at the same time
    max_idle_connections: int  # per worker
    bodies: int
    changes: int
    hosts: int
    idle_hosts: int
    rules: int  # bytes of large robots.txt files
    urls: int
    links: int
    names: int
    hrefs: int  # per worker
    copies: int  # per worker
    patterns: int
    seen: int
    near_pages: int

    @classmethod
    def of(cls, whole: int, *, workers: int, connections: int, max_bytes: int) -> Budget:
        """Divide a ceiling; one that is below the minimum is divided like the minimum."""
        whole = max(whole, min_bytes(workers, max_bytes))
        part = parts(whole, workers=workers, connections=connections, max_bytes=max_bytes)
        safe = max(workers, part["bodies"] // (BODY_COPIES * max_bytes))
        wanted = connections * workers
        return cls(
            whole=whole,
            connections=min(wanted, max(safe, part["bodies"] // CONNECTION)),
            safe_connections=min(wanted, safe),
            max_idle_connections=part["kept"] // IDLE_CONNECTION // workers,
            bodies=part["bodies"],
            changes=part["changes"] // CHANGE,
            hosts=part["hosts"] // HOST,
            idle_hosts=part["idle hosts"] // IDLE_HOST,
            rules=part["rules"],
            urls=part["urls"] // URL,
            links=part["links"] // LINK,
            names=part["names"] // NAME,
            hrefs=part["hrefs"] // HREF // workers,
            patterns=part["patterns"] // PATTERN,
            copies=part["copies"] // COPY // workers,
            seen=part["seen"],
            near_pages=part["near"] // PAGE,
        )


def min_bytes(workers: int, max_bytes: int) -> int:
    """Return the lowest ceiling that works, in whole MiB."""
    needed = _program(workers) + sum(part.min_bytes for part in _uses(workers, 1, max_bytes).values())
    whole = needed + needed // (RESERVE - 1) + 1
    return -(-whole // _STEP) * _STEP


def parts(whole: int, *, workers: int, connections: int, max_bytes: int) -> dict[str, int]:
    """Return the bytes of each part, including the program's; what is in none of them is the reserve."""
    uses = _uses(workers, connections, max_bytes)
    program = _program(workers)
    given = {name: use.min_bytes for name, use in uses.items()}
    rest = whole - whole // RESERVE - program - sum(given.values())
    open_uses = dict(uses)
    while rest > 0 and open_uses:
        weights = sum(use.weight for use in open_uses.values())
        shares = {name: rest * use.weight // weights for name, use in open_uses.items()}
        full = {
            name: use.max_bytes - given[name]
            for name, use in open_uses.items()
            if use.max_bytes is not None and given[name] + shares[name] >= use.max_bytes
        }
        # A part that is full drops out first, so that the others share what it did not need.
        for name, share in (full or shares).items():
            given[name] += share
            rest -= share
            del open_uses[name]
    return {"program": program, **given}


def _program(workers: int) -> int:
    return PROGRAM + (WORKER * workers if workers > 1 else 0)


def _uses(workers: int, connections: int, max_bytes: int) -> dict[str, _Part]:
    copiers = workers if workers > 1 else 0  # a single worker uses the ledger directly
    max_kept = max(1024, 8 * connections)
    min_bodies = workers * max(LARGE_BODIES * max_bytes, 2 * CONNECTION)
    uses = {
        "bodies": (min_bodies, 20, workers * connections * max(BODY_COPIES * max_bytes, CONNECTION)),
        "kept": (workers * 32 * IDLE_CONNECTION, 10, workers * max_kept * IDLE_CONNECTION),
        "changes": (2_000 * CHANGE, 10, MAX_CHANGES * CHANGE),
        "hosts": (1_000 * HOST, 15, MAX_HOSTS * HOST),
        "idle hosts": (250 * IDLE_HOST, 5, MAX_IDLE_HOSTS * IDLE_HOST),
        "rules": (MIN_RULES, 5, MAX_RULES),
        "urls": (4_000 * URL, 10, MAX_URLS * URL),
        "links": (10_000 * LINK, 5, MAX_LINKS * LINK),
        "names": (1_000 * NAME, 3, MAX_NAMES * NAME),
        "hrefs": (workers * 5_000 * HREF, 3, workers * MEMO_HREFS * HREF),
        "patterns": (100 * PATTERN, 5, MAX_PATTERNS * PATTERN),
        "copies": (copiers * 1_000 * COPY, 2, copiers * MAX_COPIES * COPY),
        "seen": (3_000_000, 10, None),
        "near": (10_000 * PAGE, 20, None),
    }
    return {
        name: _Part(min_size, weight, max_size if max_size is None else max(min_size, max_size))
        for name, (min_size, weight, max_size) in uses.items()
    }


# -- as an operator writes it --------------------------------------------------------------------------


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size_from(text: str) -> int | None:
    """Return a size such as 2G, 512M, 700MB or a plain number in bytes; None if it is none."""
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        return None
    number, unit = match.groups()
    size = float(number) * _UNITS.get((unit or "").lower(), 1)
    return int(size) if size < _MAX_SIZE else None


def shown(size: int) -> str:
    """Return a size as a user would write it."""
    for unit in "TGM":
        step = _UNITS[unit.lower()]
        if size >= step and not size % step:
            return f"{size // step}{unit}"
    return f"{size / _STEP:.1f}M" if size >= _STEP else f"{size} bytes"


def check_ceiling(memory: int, workers: int, max_bytes: int) -> None:
    """Refuse a ceiling that is too low for a crawl."""
    min_ceiling = min_bytes(workers, max_bytes)
    if memory < min_ceiling:
        who = "1 worker" if workers == 1 else f"{workers} workers"
        raise UsageError(
            f"memory = {shown(memory)}: too little for {who} and answers of up to {max_bytes} bytes; "
            f"expected {shown(min_ceiling)} or more"
        )
