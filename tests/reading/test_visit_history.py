"""What is said of the visits of a URL."""

from __future__ import annotations

from gossamer.core.revisit.page import PageState
from gossamer.core.revisit.rate import Rate
from gossamer.core.revisit.stored import HostVisits
from gossamer.model.figures import VisitCounts
from gossamer.model.records import Revisit
from gossamer.reading.why.source import visit_history
from gossamer.telemetry.summary import visits_text


def test_why_a_visit_waits_is_said_only_of_pages_that_are_due() -> None:
    state = PageState(Rate(1.0, 1.0), 0.0).packed()
    host = HostVisits("a.test", due_at=500, held_until=500)
    assert visit_history(Revisit(state, 400), host).held_until == 500
    assert visit_history(Revisit(state, 600), host).held_until == 0
    assert visit_history(Revisit(state, 400), HostVisits("a.test")).held_until == 0
    assert visit_history(Revisit(state, 400), None).held_until == 0


COUNTS = VisitCounts(all=3, changed=1, same=2, not_modified=0, gone=0, failed=0)


def test_status_says_how_many_domains_are_held_back() -> None:
    assert "1 domain held back, with more than a share of the visits" in visits_text(COUNTS, 0.5, 1)
    assert "held back" not in visits_text(COUNTS, 0.5)
