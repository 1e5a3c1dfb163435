"""The forecast of a crawl on many machines: the slowest node decides, and the limit of pages is that of all."""

from __future__ import annotations

import pytest

from gossamer.model.figures import Totals
from gossamer.model.state import NodeLoad
from gossamer.reading.cluster import forecast_of_nodes

SLOW = NodeLoad(pages_per_second=2.0, forecast_s=500.0, forecast_urls=900)
FAST = NodeLoad(pages_per_second=8.0, forecast_s=50.0, forecast_urls=400, over_budget_urls=7)


def test_the_crawl_takes_as_long_as_the_node_that_takes_longest() -> None:
    found = forecast_of_nodes([SLOW, FAST], Totals(pages=100), None)
    assert found is not None
    assert found.seconds == 500.0
    assert found.text.startswith("1,300 queued URLs are done in about 8 min on 2 nodes")
    assert found.text.endswith("; 7 URLs are over budget and not fetched")


def test_the_limit_of_pages_is_reached_at_the_pace_of_all() -> None:
    found = forecast_of_nodes([SLOW, FAST], Totals(pages=100), 1100)
    assert found is not None
    assert found.seconds == pytest.approx(100.0)
    assert found.text.startswith("--max-pages ends it in about 100 s")
    later = forecast_of_nodes([SLOW, FAST], Totals(pages=100), 100_000)
    assert later is not None
    assert later.seconds == 500.0


def test_a_node_that_has_not_reported_leaves_it_open() -> None:
    assert forecast_of_nodes([SLOW, NodeLoad()], Totals(), None) is None
    assert forecast_of_nodes([], Totals(), None) is None
