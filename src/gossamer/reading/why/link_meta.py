"""The metadata of a URL: what a program attached to the link that led to it, or to the URL when it was added."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer.core.ledger.tables import LINK_META
from gossamer.model.records import Source, UrlId, UrlRecord
from gossamer.ports import Catalog

MAX_REDIRECTS = 20  # that are followed back to the link with the metadata


def meta_of(key: UrlId, row: UrlRecord | None, ledger: Catalog) -> dict[str, Any]:
    """Return the metadata of a URL; redirects pass them on."""
    for _ in range(MAX_REDIRECTS):
        found = ledger.record(LINK_META, key)
        if found is not None:
            meta: dict[str, Any] = msgspec.json.decode(found.meta)
            return meta
        if row is None or row.source is not Source.REDIRECT or not row.parent:
            break
        key = row.parent
        row = ledger.look_up(row.parent)
    return {}
