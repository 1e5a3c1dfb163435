"""Contents and signatures of the pages of all nodes, in PostgreSQL.

Rows that two commits may both write are written in the order of their keys, so that no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gossamer.backends.postgresql.connections import Bytes, Connection
from gossamer.core.dedup.minhash import LANES
from gossamer.core.dedup.shared_pages import MAX_EQUAL, NearPages, bands_of
from gossamer.model.records import Similar, UrlId
from gossamer.ports import Row

_ID_BYTES = 16
_ADD_CONTENTS = (
    "INSERT INTO contents SELECT * FROM unnest(%b::bytea[], %b::bytea[]) ON CONFLICT DO NOTHING RETURNING hash"
)
_ADD_SIGNATURES = "INSERT INTO signatures SELECT * FROM unnest(%b::bytea[], %b::bytea[]) ON CONFLICT DO NOTHING"
_ADD_BANDS = """
    INSERT INTO bands SELECT * FROM unnest(%b::bytea[], %b::bytea[]) ON CONFLICT (band) DO UPDATE
    SET pages = substr(bands.pages || EXCLUDED.pages, greatest(1, octet_length(bands.pages || EXCLUDED.pages) - %b + 1))
"""


def add_contents(connection: Connection, contents: Mapping[bytes, UrlId]) -> dict[bytes, UrlId]:
    """Add contents; return those that were known, with the first page that has each."""
    if not contents:
        return {}
    hashes = sorted(contents)
    added = connection.execute(_ADD_CONTENTS, [Bytes(hashes), Bytes(contents[each] for each in hashes)], binary=True)
    known = Bytes(contents.keys() - {row[0] for row in added})
    found = connection.execute("SELECT hash, page FROM contents WHERE hash = ANY(%b)", [known], binary=True)
    return dict(found.fetchall())


def add_signatures(connection: Connection, signatures: Mapping[UrlId, bytes]) -> dict[UrlId, Similar]:
    """Add signatures of pages that repeat no other; return the others, with the page that each nearly repeats."""
    if not signatures:
        return {}
    bands = {page: bands_of(signature) for page, signature in signatures.items()}
    near = NearPages(_pages_by_band(connection, {band for some in bands.values() for band in some}))
    ranked = {other for page in signatures for other in near.ranked(page, bands[page])}
    near.signatures = _stored_signatures(connection, ranked | signatures.keys())
    similar: dict[UrlId, Similar] = {}
    added: dict[UrlId, bytes] = {}
    for page, signature in signatures.items():
        if found := near.nearest(page, signature, bands[page]):
            similar[page] = Similar(found[1], found[2] / LANES)
        elif near.add(page, signature, bands[page]):
            added[page] = signature
    _store(connection, added, bands)
    return similar


def _pages_by_band(connection: Connection, bands: Collection[bytes]) -> dict[bytes, list[UrlId]]:
    found = connection.execute("SELECT band, pages FROM bands WHERE band = ANY(%b)", [Bytes(bands)], binary=True)
    return {
        band: [pages[start : start + _ID_BYTES] for start in range(0, len(pages), _ID_BYTES)] for band, pages in found
    }


def _stored_signatures(connection: Connection, pages: Iterable[UrlId]) -> dict[UrlId, bytes]:
    query = "SELECT page, signature FROM signatures WHERE page = ANY(%b)"
    return dict(connection.execute(query, [Bytes(pages)], binary=True).fetchall())


def _store(connection: Connection, added: Mapping[UrlId, bytes], bands: Mapping[UrlId, Sequence[bytes]]) -> None:
    if not added:
        return
    pages = sorted(added)
    connection.execute(_ADD_SIGNATURES, [Bytes(pages), Bytes(added[page] for page in pages)])
    by_band: dict[bytes, bytes] = {}
    for page in added:
        for band in bands[page]:
            by_band[band] = (by_band.get(band, b"") + page)[-MAX_EQUAL * _ID_BYTES :]
    if by_band:
        keys = sorted(by_band)
        connection.execute(_ADD_BANDS, [Bytes(keys), Bytes(by_band[key] for key in keys), MAX_EQUAL * _ID_BYTES])


def load_pages(connection: Connection, rows: Sequence[Row]) -> None:
    """Store contents and signatures as they are, unless there are some with their keys."""
    add_contents(connection, {row.key: row.value or b"" for row in rows if row.table == "contents"})
    signed = {row.key: row.value or b"" for row in rows if row.table == "signatures"}
    known = _stored_signatures(connection, signed)
    new = {page: signature for page, signature in signed.items() if page not in known}
    _store(connection, new, {page: bands_of(signature) for page, signature in new.items()})
