"""How seeds are queued: new ones, and those that a crawl has already, with changed rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.core.links.intake import LinkContext
from gossamer.engine.admission.admission import Admission
from gossamer.engine.admission.rereading import Rereading
from gossamer.engine.admission.scope_record import ScopeRecord
from gossamer.engine.admission.seed_rules import SeedRules
from gossamer.model.records import Link, Source, UrlId
from gossamer.model.state import SeedRecord


class Seeding:
    def __init__(self, rules: SeedRules, scope: ScopeRecord, admission: Admission, rereading: Rereading) -> None:
        self._rules = rules
        self._scope = scope
        self._admission = admission
        self._rereading = rereading

    def add(
        self,
        links: Sequence[Link],
        now: float,
        https_first: frozenset[UrlId],
        rules: Mapping[UrlId, SeedRecord],
        meta: bytes = b"",
    ) -> int:
        """Queue seeds, some of which have rules of their own, with metadata as of a link; return how many were new."""
        added = 0
        for link in links:
            wanted = rules.get(link.id)
            number = self._number_of(link, wanted, now)
            if number or wanted is None or not wanted.scope:
                self._scope.join(link, number)
            context = LinkContext(depth=0, source=Source.SEED, https_first=link.id in https_first, seed=number)
            if meta:
                self._admission.attach(link.id, meta)
            added += len(self._admission.offer([link], context, now).new)
        return added

    def _number_of(self, link: Link, wanted: SeedRecord | None, now: float) -> int:
        """Return the number of a seed, 0 if it has none. If its depth is raised, its pages are read again."""
        known = self._rules.find(link)
        if known is None:
            return self._rules.add(wanted) if wanted is not None else 0
        if wanted is not None:
            self._rules.change(known, wanted)
            self._rereading.raise_depth(known, wanted.depth, now)
        return known.number
