"""The key of a new crawl: what its ids depend on, and nobody can guess."""

from __future__ import annotations

import os

from gossamer.model.state import IdentityRecord

KEY_BYTES = 16


def new_crawl_id() -> str:
    """Return what tells a crawl in a ledger from all others, also from copies of it."""
    return os.urandom(8).hex()


def new_identity(*, is_repeatable: bool = False) -> IdentityRecord:
    """Return what the ids of a new crawl depend on.

    Ids decide between hosts that leave memory at the same moment. A crawl that promises the same order in every run
    (one connection) has ids without a key; as in a crawl of an earlier version, every id is compared with its name.
    """
    return IdentityRecord(os.urandom(KEY_BYTES), is_unkeyed=is_repeatable)


def upgraded_identity() -> IdentityRecord:
    """Return what the ids of a crawl depend on that was begun by an earlier version: its ids stay as they are."""
    return IdentityRecord(os.urandom(KEY_BYTES), is_unkeyed=True)
