"""A cluster to be simulated: which crawl, how many nodes, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from gossamer.core.cluster.regions import Regions
from gossamer.model.records import UrlId
from gossamer.sim.scenarios import Scenario


class Faults(Struct, frozen=True):
    """What goes wrong, and until when. Probabilities are per second and node, or per call."""

    until_s: float = 120.0
    deaths: float = 0.01
    pauses: float = 0.01
    max_pause_s: float = 30.0
    lost_answers: float = 0.02
    cuts: float = 0.01  # of one node from the shared ledger
    max_cut_s: float = 25.0
    outages: float = 0.01  # per second, of the shared ledger
    max_outage_s: float = 15.0
    roll_backs: float = 0.005
    max_roll_back_s: float = 4.0


class ClusterPlan(Struct, frozen=True):
    """A crawl by several nodes."""

    scenario: Callable[[], Scenario]
    nodes: int = 4
    faults: Faults = Faults()
    max_pages: int | None = None
    max_s: float = 100_000.0
    regions: Regions | None = None
    labels: tuple[str, ...] = ()  # of the nodes, in turn; each may be several, separated by commas
    country_of: Callable[[str], str] = lambda _address: ""
    last_node_at_s: float | None = None  # it starts as late as that

    def label_of(self, number: int) -> str:
        return self.labels[number % len(self.labels)] if self.labels else ""


class SimulatedPage(Struct, frozen=True):
    url_id: UrlId
    at: float
