"""Which stored copy does a conditional request refer to? A 304 has no links and no payload: both are the copy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.identity import host_id
from gossamer.core.url import origin_of
from gossamer.records import ContentRecord, Order, OrderKind

if TYPE_CHECKING:
    from gossamer.ports import Ledger


def with_stored_copy(order: Order, ledger: Ledger) -> Order:
    """Return a conditional order with its stored copy; a page of which there is none is requested whole."""
    stored = _stored_copy(order, ledger)
    if order.kind is not OrderKind.ROBOTS and (stored is None or stored.archived is None):
        return replace(order, etag="", last_modified="")
    return replace(order, stored=stored)


def _stored_copy(order: Order, ledger: Ledger) -> ContentRecord | None:
    if order.kind is OrderKind.ROBOTS:
        origin = origin_of(order.url)
        known = (record.stored for record in ledger.robots(host_id(order.host)) if record.origin == origin)
        return next(known, None)
    row = ledger.look_up(order.url_id)
    return ledger.first_with_content(row.content_hash) if row is not None and row.content_hash else None
