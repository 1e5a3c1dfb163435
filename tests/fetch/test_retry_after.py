from __future__ import annotations

import pytest

from gossamer.fetch.retry_after import retry_after_s

NOW = 1_767_225_600.0  # Thu, 01 Jan 2026 00:00:00 GMT


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("120", 120),
        (" 5 ", 5),
        ("1.5", 1.5),
        ("0", -1),
        ("-5", -1),
        ("", -1),
        ("soon", -1),
        ("nan", -1),
        ("inf", -1),
        ("1e9", -1),
        ("1_000", -1),
        ("٣", -1),
        ("9" * 60, 86_400),
        ("9" * 400, -1),
        ("315360000", 86_400),
        ("Thu, 01 Jan 2026 00:01:40 GMT", 100),
        ("Thursday, 01-Jan-26 00:01:40 GMT", 100),
        ("Thu Jan  1 00:01:40 2026", 100),
        ("Wed, 31 Dec 2025 23:59:00 GMT", -1),
        ("Fri, 01 Jan 2036 00:00:00 GMT", 86_400),
        ("Thu, 99 Jan 2026 00:00:00 GMT", -1),
        ("Thu, 01 Jan 99999 00:00:00 GMT", -1),
    ],
)
def test_retry_after(value: str, wait_s: float) -> None:
    assert retry_after_s(value, NOW) == wait_s
