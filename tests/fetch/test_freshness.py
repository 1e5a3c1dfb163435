"""How long an answer stays fresh by its headers, and that none of them does harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.fetch.freshness import MAX_FRESH_S, fresh_s

NOW = 1_800_000_000.0
DATE = "Fri, 15 Jan 2027 08:00:00 GMT"  # NOW


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0),
        ({"cache-control": "max-age=600"}, 600),
        ({"cache-control": "public, Max-Age = 600"}, 600),
        ({"cache-control": 'max-age="600"'}, 600),
        ({"cache-control": "max-age=600, s-maxage=60"}, 60),
        ({"cache-control": "max-age=600", "age": "100"}, 500),
        ({"cache-control": "max-age=600", "age": "1000"}, 0),
        ({"cache-control": "max-age=600", "age": "-5"}, 600),
        ({"cache-control": "max-age=600, no-cache"}, 0),
        ({"cache-control": "no-store", "expires": "Fri, 15 Jan 2027 09:00:00 GMT"}, 0),
        ({"cache-control": "max-age=600, max-age=5"}, 600),
        ({"cache-control": "x-max-age=600"}, 0),
        ({"cache-control": "max-age=6e5"}, 0),
        ({"cache-control": "max-age=1.5"}, 0),
        ({"cache-control": "max-age=99999999999999999999999999"}, 0),
        ({"cache-control": "max-age=999999999999"}, MAX_FRESH_S),
        ({"cache-control": "private"}, 0),
        ({"cache-control": "private", "expires": "Fri, 15 Jan 2027 09:00:00 GMT"}, 3600),
        ({"cache-control": "max-age=60", "expires": "Fri, 15 Jan 2027 09:00:00 GMT"}, 60),
        ({"expires": "Fri, 15 Jan 2027 09:00:00 GMT", "date": DATE}, 3600),
        ({"expires": "Fri, 15 Jan 2027 09:00:00 GMT", "date": "Fri, 15 Jan 2027 08:30:00 GMT"}, 1800),
        ({"expires": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "-1"}, 0),
        ({"expires": "Fri, 15 Jan 9999 09:00:00 GMT"}, MAX_FRESH_S),
    ],
)
def test_what_the_headers_say(headers: dict[str, str], expected: float) -> None:
    assert fresh_s(headers, NOW) == expected


@given(st.dictionaries(st.sampled_from(["cache-control", "expires", "date", "age"]), st.text(max_size=80)))
def test_no_value_leads_out_of_the_bounds(headers: dict[str, str]) -> None:
    assert 0 <= fresh_s(headers, NOW) <= MAX_FRESH_S


def test_a_long_value_is_read_in_part() -> None:
    assert fresh_s({"cache-control": "," * 1_000_000 + "max-age=600"}, NOW) == 0
