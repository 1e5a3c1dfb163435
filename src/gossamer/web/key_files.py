"""Does a host have the key that a change notice names? The key file is a page that the crawl itself fetches.

The file is reported to the crawl like any URL that has changed, and fetched as one: under robots.txt, at the host's
pace, from addresses that pages may come from, into the archive. Its row in the catalog then has the hash of its
content, and that is compared with the key. So this process makes no request to any host, and there is nothing that
`gossamer audit` would not see. The price is that a first notice waits until the crawl has come to it (202).

A key that was right counts as right for `RIGHT_S`, also without a look at the catalog; the row itself counts for as
long as nobody fetches the file again, which is asked for once it is older than `REFRESH_S`. One that was wrong is
looked at again if the row is older than `WRONG_S`.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum, auto
from hashlib import sha1
from typing import Final

from msgspec import Struct

from gossamer.model.records import Outcome, UrlRecord, UrlState

RIGHT_S: Final = 600.0
REFRESH_S: Final = 86_400.0
WRONG_S: Final = 600.0
MAX_KEYS: Final = 10_000
_HASH_BYTES: Final = 16  # of `Result.content_hash`
_ENDS: Final = (b"", b"\n", b"\r\n", b" ", b"\n\n")
_BOM: Final = b"\xef\xbb\xbf"


class KeyState(Enum):
    """What is known about a key."""

    RIGHT = auto()
    UNKNOWN = auto()  # the crawl has to fetch the file
    WRONG = auto()


class KeyVerdict(Struct, frozen=True):
    """What is known about a key, why, and whether the file should be fetched (again)."""

    state: KeyState
    reason: str = ""
    is_stale: bool = False
    is_known: bool = True  # to the crawl


def verdict_on(row: UrlRecord | None, key: str, now: float) -> KeyVerdict:
    if row is None or row.state is UrlState.QUEUED:
        return KeyVerdict(KeyState.UNKNOWN, "the crawl has not fetched the key file yet", is_known=row is not None)
    age = now - row.fetched_at
    if row.state is UrlState.DONE and row.outcome in (Outcome.OK, Outcome.NOT_MODIFIED):
        if row.content_hash in _hashes_of(key):
            return KeyVerdict(KeyState.RIGHT, is_stale=age > REFRESH_S)
        reason = "it does not contain this key alone"
    elif row.outcome == Outcome.ROBOTS_DENIED:
        reason = "robots.txt forbids it"
    else:
        reason = f"{row.outcome}, status {row.status}" if row.status else row.outcome or "it was not fetched"
    if row.fetched_at and age > WRONG_S:
        return KeyVerdict(KeyState.UNKNOWN, f"{reason}; the crawl fetches it again", is_stale=True)
    return KeyVerdict(KeyState.WRONG, reason)


def _hashes_of(key: str) -> set[bytes]:
    """Return the hashes of the contents that a file with this key may have: editors add ends and marks."""
    text = key.encode()
    return {
        sha1(start + text + end, usedforsecurity=False).digest()[:_HASH_BYTES] for start in (b"", _BOM) for end in _ENDS
    }


class RecentKeys:
    """Keys that were checked recently. Bounded: the oldest is dropped."""

    def __init__(self, lasting_s: float) -> None:
        self._lasting_s = lasting_s
        self._until: OrderedDict[tuple[str, str], float] = OrderedDict()

    def has(self, key_url: str, key: str, now: float) -> bool:
        """Return whether a key was added within the last minutes."""
        return self._until.get((key_url, key), 0.0) > now

    def add(self, key_url: str, key: str, now: float) -> None:
        self._until[key_url, key] = now + self._lasting_s
        self._until.move_to_end((key_url, key))
        if len(self._until) > MAX_KEYS:
            self._until.popitem(last=False)
