"""Which stored copy does a conditional request refer to? A 304 has no links and no payload: both are the copy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gossamer.core.url.forms import origin_of
from gossamer.core.url.identity import host_id
from gossamer.model.records import ContentRecord, FetchKind, FetchTask

if TYPE_CHECKING:
    from gossamer.ports import Ledger


def with_stored_copy(task: FetchTask, ledger: Ledger) -> FetchTask:
    """Return a conditional task with its stored copy; a page of which there is none is requested whole."""
    stored = _stored_copy(task, ledger)
    if task.kind is not FetchKind.ROBOTS and (stored is None or stored.archived is None):
        return replace(task, etag="", last_modified="")
    return replace(task, stored=stored)


def _stored_copy(task: FetchTask, ledger: Ledger) -> ContentRecord | None:
    if task.kind is FetchKind.ROBOTS:
        origin = origin_of(task.url)
        known = (record.stored for record in ledger.robots(host_id(task.host)) if record.origin == origin)
        return next(known, None)
    row = ledger.look_up(task.url_id)
    return ledger.first_with_content(row.content_hash) if row is not None and row.content_hash else None
