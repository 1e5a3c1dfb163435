"""The dashboard knows the same words and bounds as the program."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from gossamer.core.frontier.view import SHOWN_AS
from gossamer.model.figures import BOUNDS_S, Resource
from gossamer.reading.host_states import HOST_STATES

OVERVIEW = (files("gossamer.web") / "static" / "overview.js").read_text("utf-8")


def constant(name: str) -> str:
    found = re.search(rf"^const {name} = (.*?);$", OVERVIEW, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def test_no_state_of_a_host_is_left_out_of_the_bar() -> None:
    shown = re.findall(r'\["(\w+)", "k\d"\]', constant("HOST_STATES"))
    assert sorted(shown) == sorted({*HOST_STATES, *SHOWN_AS.values()})


def test_percentiles_are_read_from_histograms_with_the_same_bounds() -> None:
    assert json.loads(constant("BOUNDS_S")) == list(BOUNDS_S)


def test_everything_that_can_bind_a_crawl_has_a_name() -> None:
    assert sorted(re.findall(r"(\w+): ", constant("BOUND_BY"))) == sorted(each.value for each in Resource)
