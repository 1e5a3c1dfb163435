"""Contents and signatures of the pages of all nodes, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from gossamer.core.dedup.minhash import LANES
from gossamer.core.dedup.shared_pages import NearPages, bands_of
from gossamer.model.records import Similar, UrlId
from gossamer.ports import Row
from gossamer.ports.shared_ledger import Commit, KnownBefore


class SharedPages(Struct):
    """The first page with each content, and the signatures of pages that repeat no other."""

    contents: dict[bytes, UrlId] = field(default_factory=dict)
    near: NearPages = field(default_factory=NearPages)

    def add(self, commit: Commit) -> KnownBefore:
        """Add the pages of a commit; return what was known before."""
        repeated = {each: self.contents[each] for each in commit.contents if each in self.contents}
        self.contents = {**commit.contents, **self.contents}
        similar: dict[UrlId, Similar] = {}
        for page, signature in commit.signatures.items():
            bands = bands_of(signature)
            found = self.near.nearest(page, signature, bands)
            if found is not None:
                similar[page] = Similar(found[1], found[2] / LANES)
            else:
                self.near.add(page, signature, bands)
        return KnownBefore(repeated, similar)

    def rows(self, part: int) -> list[Row]:
        """Return the contents and signatures of a part."""
        tables = (("contents", self.contents), ("signatures", self.near.signatures))
        return [Row(name, key, value) for name, found in tables for key, value in found.items() if key[-1] == part]

    def load(self, rows: Sequence[Row]) -> None:
        """Add contents and signatures as they are."""
        for table, key, value in rows:
            assert value is not None
            if table == "contents":
                self.contents.setdefault(key, value)
            else:
                self.near.add(key, value, bands_of(value))
