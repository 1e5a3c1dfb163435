"""Machine-made labels of host names."""

from __future__ import annotations

import pytest

from gossamer.core.spam.names import is_machine_made


@pytest.mark.parametrize(
    "label", ["cheap-hotel-berlin", "best-online-casino-bonus", "x7k2q9m4", "qxzrtvbnm", "bcdfghjk"]
)
def test_chains_of_words_and_random_letters_are_machine_made(label: str) -> None:
    assert is_machine_made(label)


@pytest.mark.parametrize(
    "label",
    [
        "www",
        "blog",
        "my-garden",
        "images2",
        "static-01",
        "anna-b-s",
        "wikipedia",
        "strengths",
        "schwarzwald",
        "cdn-7",
        "a1b2",
        "достопримечательности",
        "xn--80ak6aa92e",
    ],
)
def test_ordinary_labels_are_not(label: str) -> None:
    assert not is_machine_made(label)
