"""What follows from settings for a crawl's rules."""

from __future__ import annotations

from typing import Any

import pytest

from gossamer.core.frontier.priority import QueueOrder
from gossamer.model.errors import UsageError
from gossamer.settings.load import merged
from gossamer.settings.model import Settings
from gossamer.settings.rules import RANK_EVERY, rank_every_of

TIERS = {"order": QueueOrder.TIERS}


@pytest.mark.parametrize(
    ("settings", "every"),
    [
        ({}, 0),
        ({"rank_every": 500}, 500),
        (TIERS, RANK_EVERY),
        ({**TIERS, "rank_every": 0}, 0),
        ({**TIERS, "store": ("files",)}, 0),
        ({**TIERS, "connections": 1, "politeness_ms": 0}, 0),
        ({**TIERS, "connections": 1, "politeness_ms": 0, "rank_every": 9}, 9),
    ],
)
def test_domains_are_ranked_by_itself_if_the_order_follows_ranks(settings: dict[str, Any], every: int) -> None:
    assert rank_every_of(Settings(**settings)) == every


def test_ranks_need_an_archive() -> None:
    with pytest.raises(UsageError, match="rank-every = 5: links are read from the archive; expected --store warc too"):
        merged(("test", {"rank_every": 5, "store": ["files"]}))
    with pytest.raises(UsageError, match=r"rank-every = -1: expected a whole number of at least 0"):
        merged(("test", {"rank_every": -1}))
