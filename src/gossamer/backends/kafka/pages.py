"""Contents and signatures of the pages of all nodes, in Cassandra.

The first page with a content stays: it is added under the condition that there is none. Near copies are looked for by
the bands of their signatures, of which a table has up to `MAX_EQUAL` pages each: the page decides in which slot it is,
so nothing is read before it is written, and a later page replaces an earlier one in its slot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from xxhash import xxh3_64_intdigest

from gossamer.backends.kafka.database import Keyspace, Statement, int_bytes
from gossamer.backends.kafka.layout import Layout
from gossamer.core.dedup.minhash import LANES
from gossamer.core.dedup.shared_pages import MAX_EQUAL, NearPages, bands_of
from gossamer.model.records import Similar, UrlId
from gossamer.ports import Row

_ADD_CONTENT = "INSERT INTO contents (crawl, part, hash, page) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_CONTENTS = "SELECT hash, page FROM contents WHERE crawl = ? AND part = ? AND hash IN ?"
_ADD_SIGNATURE = "INSERT INTO document_signatures (crawl, part, page, signature) VALUES (?, ?, ?, ?)"
_SIGNATURES = "SELECT page, signature FROM document_signatures WHERE crawl = ? AND part = ? AND page IN ?"
_ADD_BAND = "INSERT INTO lsh_buckets (crawl, part, band, slot, page) VALUES (?, ?, ?, ?, ?)"
_BANDS = "SELECT band, page FROM lsh_buckets WHERE crawl = ? AND part = ? AND band IN ?"
_KEYS_AT_ONCE = 200
_SLOTS = tuple(bytes((number,)) for number in range(MAX_EQUAL))


class StoredPages:
    """See the module."""

    def __init__(self, database: Keyspace) -> None:
        self._database = database
        self._crawl = database.name
        self._sent_crawl = database.name.encode()

    # -- contents ---------------------------------------------------------------------------------

    def add_contents(self, contents: Mapping[bytes, UrlId], layout: Layout) -> dict[bytes, UrlId]:
        """Add contents; return those of which another page is the first, with that page."""
        parts: dict[int, list[bytes]] = {}
        for each in contents:
            parts.setdefault(layout.part_of_hash(each), []).append(each)
        known: dict[bytes, UrlId] = {}
        while parts:
            made = self._database.change_many([
                ([self._sent_crawl, int_bytes(part)], [self._content(part, each, contents[each]) for each in hashes])
                for part, hashes in parts.items()
            ])  # fmt: skip
            left = {part: hashes for (part, hashes), is_made in zip(parts.items(), made, strict=True) if not is_made}
            found = self.contents_of(left)
            known |= found
            parts = {part: new for part, hashes in left.items() if (new := [one for one in hashes if one not in found])}
        return {each: page for each, page in known.items() if page != contents[each]}

    def _content(self, part: int, content: bytes, page: UrlId) -> Statement:
        return self._database.statement(_ADD_CONTENT, self._sent_crawl, int_bytes(part), content, page)

    def known_contents(self, hashes: Iterable[bytes], layout: Layout) -> dict[bytes, UrlId]:
        """Return the first page of each content that is known."""
        return self.contents_of(_by_part(hashes, layout))

    def contents_of(self, parts: Mapping[int, Sequence[bytes]]) -> dict[bytes, UrlId]:
        """Return the first page of each content that is known; they are given by part."""
        return dict(self._find(_CONTENTS, parts))

    def _find(self, text: str, parts: Mapping[int, Sequence[bytes]]) -> Iterator[tuple[bytes, bytes]]:
        requests = [
            (text, (self._crawl, part, list(keys[start : start + _KEYS_AT_ONCE])))
            for part, keys in parts.items()
            for start in range(0, len(keys), _KEYS_AT_ONCE)
        ]
        for found in self._database.read_many(requests):
            yield from ((key, value) for key, value in found)

    # -- near copies ------------------------------------------------------------------------------

    def add_signatures(self, signatures: Mapping[UrlId, bytes], layout: Layout) -> dict[UrlId, Similar]:
        """Store signatures of pages that repeat no other; return the others, with the page that each nearly repeats."""
        if not signatures:
            return {}
        bands = {page: bands_of(signature) for page, signature in signatures.items()}
        near = NearPages(self._pages_by_band({band for some in bands.values() for band in some}, layout))
        ranked = {other for page in signatures for other in near.ranked(page, bands[page])}
        near.signatures = self._stored_signatures(ranked | signatures.keys(), layout)
        similar: dict[UrlId, Similar] = {}
        added: dict[UrlId, bytes] = {}
        for page, signature in signatures.items():
            if found := near.nearest(page, signature, bands[page]):
                similar[page] = Similar(found[1], found[2] / LANES)
            elif near.add(page, signature, bands[page]):
                added[page] = signature
        self._database.write_batches(self.grouped(self._signature_statements(added, layout)))
        return similar

    def _pages_by_band(self, bands: Collection[bytes], layout: Layout) -> dict[bytes, list[UrlId]]:
        found: dict[bytes, list[UrlId]] = {}
        for band, page in self._find(_BANDS, _by_part(bands, layout)):
            found.setdefault(band, []).append(page)
        return found

    def _stored_signatures(self, pages: Iterable[UrlId], layout: Layout) -> dict[UrlId, bytes]:
        return dict(self._find(_SIGNATURES, _by_part(pages, layout)))

    def _signature_statements(
        self, signatures: Mapping[UrlId, bytes], layout: Layout
    ) -> Iterator[tuple[int, Statement]]:
        """Yield what stores signatures, with the part of each statement."""
        crawl = self._sent_crawl
        statement = self._database.statement
        for page, signature in signatures.items():
            part = layout.part_of_hash(page)
            yield part, statement(_ADD_SIGNATURE, crawl, int_bytes(part), page, signature)
            for number, band in enumerate(bands_of(signature)):
                part = layout.part_of_hash(band)
                slot = _SLOTS[xxh3_64_intdigest(page, number) % MAX_EQUAL]
                yield part, statement(_ADD_BAND, crawl, int_bytes(part), band, slot, page)

    # -- moving a crawl ---------------------------------------------------------------------------

    def rows(self, first_byte: int, layout: Layout) -> Iterator[list[Row]]:
        """Yield contents and signatures whose keys begin with a byte."""
        after = bytes((first_byte + 1,)) if first_byte < 255 else b"\xff" * 33
        for name, table, key, value in (
            ("contents", "contents", "hash", "page"),
            ("signatures", "document_signatures", "page", "signature"),
        ):
            for part in layout.parts_with(first_byte):
                text = f"SELECT {key}, {value} FROM {table} WHERE crawl = ? AND part = ? AND {key} >= ? AND {key} < ?"
                slices = self._database.read_slices(text, self._crawl, part, bytes((first_byte,)), after)
                yield from ([Row(name, *each) for each in some] for some in slices if some)

    def load(self, rows: Sequence[Row], layout: Layout) -> None:
        """Store contents and signatures as they are, unless there are some with their keys."""
        self.add_contents({row.key: row.value or b"" for row in rows if row.table == "contents"}, layout)
        signed = {row.key: row.value or b"" for row in rows if row.table == "signatures"}
        known = self._stored_signatures(signed, layout)
        new = {page: signature for page, signature in signed.items() if page not in known}
        self._database.write_batches(self.grouped(self._signature_statements(new, layout)))

    def grouped(self, statements: Iterable[tuple[int, Statement]]) -> Iterator[tuple[Sequence[bytes], list[Statement]]]:
        """Yield statements by part, with the key of their partition."""
        parts: dict[int, list[Statement]] = {}
        for part, each in statements:
            parts.setdefault(part, []).append(each)
        for part, some in parts.items():
            yield (self._sent_crawl, int_bytes(part)), some


def _by_part(keys: Iterable[bytes], layout: Layout) -> dict[int, list[bytes]]:
    parts: dict[int, list[bytes]] = {}
    for key in keys:
        parts.setdefault(layout.part_of_hash(key), []).append(key)
    return parts
