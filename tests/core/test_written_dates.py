from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gossamer.core.content.written_dates import written_time

NOW = datetime(2024, 6, 1, tzinfo=UTC).timestamp()
NOON = "2024-02-05T12:30:15"


def iso(text: str) -> str:
    found = written_time(text, NOW)
    return datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M:%S") if found else ""


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 05 Feb 2024 12:30:15 GMT",
        "Mon, 5 Feb 2024 12:30:15 +0000",
        "Mon, 05 Feb 24 12:30:15 UT",
        "05 Feb 2024 12:30:15 Z",
        "Mon 05 Feb 2024 12:30:15 UTC",
        "Fri, 05 Feb 2024 12:30:15 GMT",  # it was a Monday
        "Monday, 05-Feb-24 12:30:15 GMT",
        "Mon, 05 February 2024 12:30:15 GMT",
        "lun., 05 févr. 2024 12:30:15 +0000",
        "Mo, 05 Feb 2024 13:30:15 MEZ",
        "Mon, 05 Feb 2024 07:30:15 EST",
        "Mon, 05 Feb 2024 04:30:15 PST",
        "Mon, 05 Feb 2024 13:30:15 +0100",
        "Mon, 05 Feb 2024 13:30:15 +01:00",
        "Mon, 05 Feb 2024 13:30:15 +01",
        "Mon, 05 Feb 2024 13:30:15 +0100 (CET)",
        "Mon, 05 Feb 2024 13:30:15 GMT+0100",
        "Mon,05 Feb 2024 12:30:15 GMT",
        "  Mon,\n 05 Feb 2024\t12:30:15   GMT ",
        "Mon Feb  5 12:30:15 2024",
        "Mon Feb 5 12:30:15 UTC 2024",
        "February 5, 2024 12:30:15",
        "Feb 5th, 2024 12:30:15 pm",
        "2024-02-05T12:30:15Z",
        "2024-02-05T12:30:15",
        "2024-02-05 12:30:15",
        "2024-02-05T12:30:15.123456Z",
        "2024-02-05T12:30:15,5Z",
        "2024-02-05T13:30:15+01:00",
        "2024-02-05T13:30:15+0100",
        "2024-02-05T06:30:15-06:00",
        "2024/02/05 12:30:15",
        "2024.02.05 12:30:15",
        "2024-2-5 12:30:15 UTC",
        "20240205T123015Z",
        "2/5/2024 12:30:15 PM",
        "05.02.2024 12:30:15",
        "1707136215",
        "1707136215000",
    ],
)
def test_a_date_in_any_shape_is_understood(text: str) -> None:
    assert iso(text) == NOON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-05", "2024-02-05T00:00:00"),
        ("20240205", "2024-02-05T00:00:00"),
        ("5 Feb 2024", "2024-02-05T00:00:00"),
        ("Mon, 05 Feb 2024 12:30 GMT", "2024-02-05T12:30:00"),
        ("Mon, 05 Feb 2024 24:00:00 GMT", "2024-02-06T00:00:00"),
        ("Mon, 05 Feb 2024 23:59:60 GMT", "2024-02-05T23:59:59"),
        ("Mon, 05 Feb 2024 12:05 am", "2024-02-05T00:05:00"),
        ("Mon, 05 Feb 2024 12:30:15 XYZ", NOON),  # a zone that nobody knows counts as UTC
        ("2024-02-29", "2024-02-29T00:00:00"),
        ("31 Dec 99 10:00 GMT", "1999-12-31T10:00:00"),
        ("23.5.2024", "2024-05-23T00:00:00"),
        ("5/23/2024", "2024-05-23T00:00:00"),
        ("05. März 2024 10:00", "2024-03-05T10:00:00"),
        ("2 de... 3 May 2024", "2024-05-03T00:00:00"),
    ],
)
def test_what_is_missing_or_odd(text: str, expected: str) -> None:
    assert iso(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Mon, 30 Feb 2024 12:00:00 GMT",
        "2023-02-29",
        "2024-13-05",
        "2024-02-05T25:00:00Z",
        "2024-02-05T12:75:00Z",
        "2024-02-05T12:00:00+99:00",
        "0000-00-00 00:00:00",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "0001-01-01T00:00:00Z",
        "2199-01-01T00:00:00Z",
        "99999999999999999999",
        "5 Foo 2024",
        "12:30:15",
        "٢٠٢٤-٠٢-٣٩",
        "Feb 2024",
        "1e9",
        "x" * 100 + " 5 Feb 2024",
    ],
)
def test_no_date_is_better_than_a_wrong_one(text: str) -> None:
    assert iso(text) == ""


def test_a_date_slightly_ahead_is_one_of_another_zone_and_later_ones_are_not() -> None:
    assert iso("2024-06-02") == "2024-06-02T00:00:00"
    assert iso("2024-06-09") == ""
    assert written_time("2024-06-09", 0.0) > NOW  # the present is not known


def test_a_long_text_is_no_date_and_takes_no_time() -> None:
    assert written_time("1" * 1_000_000, NOW) == 0
    assert written_time("Mon, " * 200_000 + "05 Feb 2024", NOW) == 0
