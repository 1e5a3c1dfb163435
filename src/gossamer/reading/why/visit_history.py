"""When was a URL visited, what was found, and when is it visited next? For `why` and the page of a URL."""

from __future__ import annotations

from msgspec import Struct

from gossamer.core.revisit.history import PastVisit, past_visits
from gossamer.core.revisit.page import DAY_S, unpacked
from gossamer.model.records import Revisit


class VisitHistory(Struct, frozen=True, kw_only=True):
    """What is known of the visits of a URL."""

    visits: list[PastVisit]  # the last ones, the oldest first
    page_class: str
    is_class_set: bool
    changes_every_s: float  # by the estimate of its rate
    interval_s: float
    due_at: int  # 0: it is not fetched again
    misses: int  # in a row: the page was not there


def visit_history(revisit: Revisit) -> VisitHistory:
    """Return what a row has about the visits of its URL."""
    state = unpacked(revisit.state)
    return VisitHistory(
        visits=past_visits(revisit.history),
        page_class=state.page_class.name.lower(),
        is_class_set=state.is_class_set,
        changes_every_s=DAY_S / state.rate.mean,
        interval_s=state.interval_days * DAY_S,
        due_at=revisit.due_at,
        misses=state.misses,
    )
