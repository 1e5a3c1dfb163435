"""What does a node report about its load with each renewal of its lease, for `gossamer status` of the whole crawl?"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer.model.state import NodeLoad, NodeStatus
from gossamer.runtime.watch.figures_source import FiguresSource

MAX_WARNINGS = 5
MAX_WARNING_CHARS = 300


def with_load(source: FiguresSource, status: NodeStatus) -> NodeStatus:
    """Return a status with the load of the node."""
    figures = source.read()
    bound = figures.bound_by
    rate = figures.rates.get("10s")
    lasting = [replace(each, text=each.text[:MAX_WARNING_CHARS]) for each in figures.warnings if each.is_lasting]
    load = NodeLoad(
        pages_per_second=round(rate.pages, 2) if rate is not None else 0.0,
        bound_by=bound.resource.value if bound is not None else "",
        evidence=bound.evidence if bound is not None else "",
        forecast=figures.forecast.text if figures.forecast is not None else "",
        private_bytes=figures.private_bytes,
        warnings=lasting[:MAX_WARNINGS],
    )
    return replace(status, load=load)
