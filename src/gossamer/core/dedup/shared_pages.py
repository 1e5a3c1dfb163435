"""Which pages of a commit nearly repeat pages of other nodes? The rules that every shared ledger follows.

A band of signatures has its latest pages only. A page is compared with those that share the most bands with it, and is
added if it repeats none of them. The two tables are the whole ones, or what one commit needs of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from gossamer.core.dedup.bands import band_keys
from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES, SIGNATURE_BYTES, equal_lanes
from gossamer.model.records import UrlId

MAX_EQUAL = 4  # pages per band: the latest
MAX_COMPARED = 4
Nearest = tuple[UrlId, UrlId, int]  # page, the one that it nearly repeats, equal lanes


def bands_of(signature: bytes) -> Sequence[bytes]:
    """Return the bands of a signature; other kinds of signatures have none."""
    return band_keys(signature) if len(signature) == SIGNATURE_BYTES else ()


class NearPages(Struct):
    bands: dict[bytes, list[UrlId]] = field(default_factory=dict)
    signatures: dict[UrlId, bytes] = field(default_factory=dict)

    def ranked(self, page: UrlId, bands: Iterable[bytes]) -> list[UrlId]:
        shared = Counter(other for band in bands for other in self.bands.get(band, ()) if other != page)
        return sorted(shared, key=lambda other: (-shared[other], other))[:MAX_COMPARED]

    def nearest(self, page: UrlId, signature: bytes, bands: Iterable[bytes]) -> Nearest | None:
        """Return the page that one nearly repeats; None if there is none. The bands are those of its signature."""
        best = b""
        lanes = 0
        for other in self.ranked(page, bands):
            known = self.signatures.get(other)
            equal = equal_lanes(signature, known) if known else 0
            if equal > lanes:
                best = other
                lanes = equal
        return (page, best, lanes) if lanes >= MIN_SIMILARITY * LANES else None

    def add(self, page: UrlId, signature: bytes, bands: Iterable[bytes]) -> bool:
        """Add a page; return False if it is known."""
        if page in self.signatures:
            return False
        self.signatures[page] = signature
        for band in bands:
            self.bands[band] = [*self.bands.get(band, ()), page][-MAX_EQUAL:]
        return True
