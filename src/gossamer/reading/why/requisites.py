"""What became of a URL as something that pages need to be shown, and which page named it?"""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.links.requisite import requisite_id
from gossamer.model.records import ArchiveSpan, OrderKind, Source, UrlId, UrlRecord
from gossamer.ports import Catalog

_MAX_NAMED = 20


class NamedBy(Struct, frozen=True):
    """What names a requisite: a page, a stylesheet, or a redirect."""

    url: str
    what: str


class RequisiteView(Struct, frozen=True, kw_only=True):
    """A URL as a requisite."""

    state: str
    outcome: str
    status: int
    error: str
    content_type: str
    content_bytes: int
    found_at: float
    fetched_at: float
    redirect_to: str
    archived: ArchiveSpan | None
    named_by: list[NamedBy]  # the nearest first, the page last


def requisite_view(page: UrlId, ledger: Catalog) -> RequisiteView | None:
    """Return what became of a URL as a requisite; None if no page needs it."""
    row = ledger.look_up(requisite_id(page))
    if row is None:
        return None
    return RequisiteView(
        state=row.state.name.lower(),
        outcome=row.outcome,
        status=row.status,
        error=row.error,
        content_type=row.content_type,
        content_bytes=row.content_bytes,
        found_at=row.found_at,
        fetched_at=row.fetched_at,
        redirect_to=row.redirect_to,
        archived=row.archived,
        named_by=named_by(row, ledger),
    )


def named_by(row: UrlRecord, ledger: Catalog) -> list[NamedBy]:
    """Return what led to a requisite, back to the page that was fetched."""
    found: list[NamedBy] = []
    while row.kind is OrderKind.REQUISITE and row.parent and len(found) < _MAX_NAMED:
        parent = ledger.look_up(row.parent)
        if parent is None:
            break
        is_page = parent.kind is not OrderKind.REQUISITE
        what = "redirect" if row.source is Source.REDIRECT else "page" if is_page else "stylesheet"
        found.append(NamedBy(parent.url, what))
        row = parent
    return found
