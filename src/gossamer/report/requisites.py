"""The figures that a report draws from the rows of requisites: in fixed memory, within the pass over the catalog."""

from __future__ import annotations

from gossamer.model.figures import Totals
from gossamer.model.records import Outcome, UrlRecord, UrlState
from gossamer.reading.aggregates import Frequent
from gossamer.report.record import DeadLetters, RequisiteFigures

EXAMPLES = 10


class DeadTally:
    """Dead letters by kind, with a few of each."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, row: UrlRecord) -> None:
        """Add one dead letter."""
        kind = f"{row.outcome} {row.status}" if row.status else row.outcome or "unknown"
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(row.url)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self._counts.values())

    def kinds(self) -> list[DeadLetters]:
        """Return them by kind, the most frequent first."""
        kinds = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [DeadLetters(kind, count, self._examples[kind]) for kind, count in kinds]


class RequisiteTally:
    """The running figures of the rows of requisites."""

    def __init__(self) -> None:
        self._stored = self._queued = self._denied = self._redirects = 0
        self._types = Frequent()
        self._rules = Frequent()
        self._dead = DeadTally()

    def add(self, row: UrlRecord) -> None:
        """Add one row."""
        if row.state is UrlState.QUEUED:
            self._queued += 1
        elif row.state is UrlState.DEAD:
            self._dead.add(row)
        elif row.outcome == Outcome.ROBOTS_DENIED:
            self._denied += 1
            self._rules.add(row.error.partition(": ")[2] or row.error)
        elif row.outcome == Outcome.REDIRECT:
            self._redirects += 1
        else:
            self._stored += 1
            self._types.add(row.content_type or "unknown")

    def figures(self, totals: Totals) -> RequisiteFigures | None:
        """Return what was counted; None if there is nothing."""
        known = (self._stored, self._queued, self._denied, self._redirects, self._dead.count)
        if not any(known) and not totals.requisites_refused:
            return None
        return RequisiteFigures(
            stored=self._stored,
            queued=self._queued,
            denied=self._denied,
            redirects=self._redirects,
            content_types=self._types.top(20),
            rules=self._rules.top(20),
            failed=self._dead.kinds(),
            refused=totals.requisites_refused,
            cut=totals.requisites_cut,
        )
