"""The last visits of a URL, 7 bytes each: when, what was found, and the status. The archive has all of them in full."""

from __future__ import annotations

import struct

from msgspec import Struct

from gossamer.core.revisit.page import VisitFound

MAX_VISITS = 16
FIRST = "first"
_LAYOUT = struct.Struct(">IBH")
_CODES = (FIRST, *(member.value for member in VisitFound))
_SHOWN = (FIRST, *(member.word for member in VisitFound))


class PastVisit(Struct, frozen=True):
    at: int
    found: str  # `first`, or a word of `VisitFound`
    status: int  # 0: no answer


def with_visit(history: bytes, at: float, found: VisitFound | None, status: int) -> bytes:
    """Return a history with one visit more (None: the first); the oldest are dropped."""
    code = 0 if found is None else _CODES.index(found.value)
    one = _LAYOUT.pack(min(max(int(at), 0), 0xFFFFFFFF), code, min(max(status, 0), 0xFFFF))
    return (history + one)[-MAX_VISITS * _LAYOUT.size :]


def past_visits(history: bytes) -> list[PastVisit]:
    whole = len(history) - len(history) % _LAYOUT.size
    return [
        PastVisit(at, _SHOWN[code] if code < len(_SHOWN) else "unknown", status)
        for at, code, status in _LAYOUT.iter_unpack(history[:whole])
    ]
