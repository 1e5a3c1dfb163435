"""When a page says that it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parse.text.article import iso_date

NOW = 1_780_000_000.0  # May 2026


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2024-05-01", "2024-05-01"),
        ("2024/05/01", "2024-05-01"),
        ("20240501", "2024-05-01"),
        (" 2024-05-01T10:00:00+02:00 ", "2024-05-01T08:00:00Z"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01T10:00:00.123456Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01 10:00:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01T10:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01 10:00:00 UTC", "2024-05-01T10:00:00Z"),
        ("Wed, 01 May 2024 10:00:00 GMT", "2024-05-01T10:00:00Z"),
        ("Wed, 01 May 2024 10:00:00 +0200", "2024-05-01T08:00:00Z"),
    ],
)
def test_a_date_is_brought_to_iso(said: str, meant: str) -> None:
    assert iso_date(said, NOW) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "yesterday",
        "2024-13-01",
        "2024-02-30",
        "0001-01-01",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "2030-01-01",
        "٢٠٢٤-٠٥-٠١",
        "1" * 100_000,
        "Wed, 99 May 2024 10:00:00 GMT",
    ],
)
def test_what_is_no_date_or_absurd_counts_as_none(said: str) -> None:
    assert iso_date(said, NOW) == ""


@given(st.text())
def test_no_text_breaks_it(said: str) -> None:
    assert isinstance(iso_date(said, NOW), str)
