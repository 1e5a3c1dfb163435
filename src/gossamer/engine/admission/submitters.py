"""Which domains may have their URLs listed by a sitemap at another host? Those whose robots.txt lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.core.ledger.tables import SUBMITTERS
from gossamer.model.records import UrlId
from gossamer.model.state import Submitters

if TYPE_CHECKING:
    from gossamer.ports import RecordStore

MAX_SUBMITTERS = 100  # other domains whose URLs one sitemap may list


def add_submitter(ledger: RecordStore, sitemap: UrlId, domain: str) -> None:
    known = ledger.record(SUBMITTERS, sitemap) or Submitters(sitemap)
    if domain not in known.domains and len(known.domains) < MAX_SUBMITTERS:
        known.domains += (domain,)
        ledger.put_record(SUBMITTERS, known)
