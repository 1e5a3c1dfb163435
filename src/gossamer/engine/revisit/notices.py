"""What follows from a notice that pages have changed? Known ones are due again, new ones are links.

A known page is due as soon as its shortest interval allows it, as far as its host has been right so far
(`Revisits.notice`), and is then fetched at its host's pace like any other. An unknown URL is screened like a link of a
seed; what is refused is an event with the rule. Whoever sends notices can neither widen the scope nor go faster than
the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gossamer.core.links.intake import Intake, LinkContext
from gossamer.core.url.forms import canonical, link_to
from gossamer.engine.admission.admission import Admission
from gossamer.engine.revisit.revisiting import Revisits
from gossamer.model.records import Link, Source

if TYPE_CHECKING:
    from gossamer.ports import Ledger

NOTICED = LinkContext(depth=1, source=Source.NOTICE)


def noticed_links(urls: Sequence[str]) -> tuple[list[Link], int]:
    """Return the links of URLs that were reported, each once, and how many are no URLs."""
    found = [canonical(url) for url in urls]
    return [link_to(url) for url in dict.fromkeys(filter(None, found))], found.count(None)


class NoticeCounts(Struct):
    """What became of URLs that were reported as changed."""

    due: int = 0  # known, and due sooner than before
    known: int = 0  # known, and fetched when they are anyway
    new: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by rule

    def add(self, other: NoticeCounts) -> None:
        """Add those of other URLs."""
        self.due += other.due
        self.known += other.known
        self.new += other.new
        self.refused += other.refused


class NoticeEffects:
    def __init__(self, intake: Intake, ledger: Ledger, admission: Admission, revisits: Revisits) -> None:
        self._intake = intake
        self._ledger = ledger
        self._admission = admission
        self._revisits = revisits

    def apply(self, links: Sequence[Link], now: float) -> NoticeCounts:
        """Apply a slice of a notice: a URL takes up to 60 µs."""
        counts = NoticeCounts()
        unknown: list[Link] = []
        for link in links:
            if self._ledger.look_up(link.id) is None:
                self._intake.forget_link(link.url, 0)  # it may have been refused in another context
                unknown.append(link)
            elif self._revisits.is_on and self._revisits.notice(link.id, now):
                counts.due += 1
            else:
                counts.known += 1
        if unknown:
            offered = self._admission.offer(unknown, NOTICED, now)
            counts.new = len(offered.new)
            counts.refused.update(refused.rule for refused in (*offered.refused, *offered.held))
        return counts
