"""Contents and signatures of the pages of all nodes, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gossamer.core.dedup.bands import band_keys
from gossamer.core.dedup.index import MIN_SIMILARITY
from gossamer.core.dedup.minhash import LANES, SIGNATURE_BYTES, equal_lanes
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore
from gossamer.records import Similar, UrlId

MAX_EQUAL = 4  # pages per band: the latest
MAX_COMPARED = 4


@dataclass(slots=True)
class SharedPages:
    """The first page with each content, and the signatures of pages that repeat no other."""

    contents: dict[bytes, UrlId] = field(default_factory=dict)
    signatures: dict[UrlId, bytes] = field(default_factory=dict)
    bands: dict[bytes, list[UrlId]] = field(default_factory=dict)

    def add(self, commit: Commit) -> KnownBefore:
        """Add the pages of a commit; return what was known before."""
        repeated = {each: self.contents[each] for each in commit.contents if each in self.contents}
        self.contents = {**commit.contents, **self.contents}
        similar: dict[UrlId, Similar] = {}
        for page, signature in commit.signatures.items():
            found = self._nearest(page, signature)
            if found is not None:
                similar[page] = found
            else:
                self._add_signature(page, signature)
        return KnownBefore(repeated, similar)

    def _add_signature(self, page: UrlId, signature: bytes) -> None:
        if page not in self.signatures:
            self.signatures[page] = signature
            for key in band_keys(signature) if len(signature) == SIGNATURE_BYTES else ():
                self.bands[key] = [*self.bands.get(key, []), page][-MAX_EQUAL:]

    def rows(self, part: int) -> list[Row]:
        """Return the contents and signatures of a part."""
        tables = (("contents", self.contents), ("signatures", self.signatures))
        return [Row(name, key, value) for name, found in tables for key, value in found.items() if key[-1] == part]

    def load(self, rows: Sequence[Row]) -> None:
        """Add contents and signatures as they are."""
        for table, key, value in rows:
            assert value is not None
            if table == "contents":
                self.contents.setdefault(key, value)
            else:
                self._add_signature(key, value)

    def _nearest(self, page: UrlId, signature: bytes) -> Similar | None:
        shared = Counter(other for key in band_keys(signature) for other in self.bands.get(key, []) if other != page)
        best = max(
            ((equal_lanes(signature, self.signatures[other]), other) for other, _ in shared.most_common(MAX_COMPARED)),
            default=(0, b""),
        )
        return Similar(best[1], best[0] / LANES) if best[0] >= MIN_SIMILARITY * LANES else None
