"""Conditions on pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.handover.where import selection_from
from gossamer.model.errors import UsageError
from gossamer.model.records import FetchKind, Source, SpamVerdict, UrlRecord, UrlState

MAY_FIRST = 1_777_593_600.0  # 2026-05-01T00:00:00Z


def row(**fields: Any) -> UrlRecord:
    first = ("http://a.example.co.uk/x", UrlState.DONE, 2, Source.LINK, FetchKind.PAGE, b"", 0, 0, 0, 0, 0.0, 0.0)
    record = UrlRecord(*first)
    for name, value in {"status": 200, "content_type": "text/html", "fetched_at": MAY_FIRST, **fields}.items():
        setattr(record, name, value)
    return record


@pytest.mark.parametrize(
    ("condition", "is_wanted"),
    [
        ("host=a.example.co.uk", True),
        ("host=b.example.co.uk", False),
        ("host=b.test, a.example.co.uk", True),
        ("host=*.example.co.uk", True),
        ("HOST != a.example.co.uk", False),
        ("domain=example.co.uk", True),
        ("domain=co.uk", False),
        ("status=200", True),
        ("status=404,200", True),
        ("status!=200", False),
        ("status>=200", True),
        ("status<200", False),
        ("status > 199", True),
        ("depth<=2", True),
        ("type=text/html", True),
        ("type=text/*", True),
        ("type!=text/*", False),
        ("after=2026-05-01", True),
        ("after=2026-05-01T00:00:01Z", False),
        ("before=2026-05-01", False),
        ("before=2026-05-01T02:00:01+02:00", True),
        ("duplicates=yes", True),
        ("duplicates=no", True),
        ("duplicates=only", False),
    ],
)
def test_a_condition_holds_or_not(condition: str, is_wanted: bool) -> None:
    assert selection_from([condition]).wants(row()) is is_wanted


@pytest.mark.parametrize(
    ("url", "condition"),
    [
        ("http://[::1]:8080/", "host=[::1]"),
        ("http://xn--bcher-kva.example/", "host=Bücher.example"),
        ("http://www.xn--bcher-kva.example/", "domain=bücher.example"),
    ],
)
def test_hosts_are_named_as_people_write_them(url: str, condition: str) -> None:
    assert selection_from([condition]).wants(row(url=url))
    assert not selection_from([condition]).wants(row())


def test_near_duplicates_are_duplicates() -> None:
    near = row(near_duplicate_of=b"n" * 16)
    assert not selection_from(["duplicates=no"]).wants(near)
    assert selection_from(["duplicates=only"]).wants(near)


def test_pages_with_spam_can_be_left_out() -> None:
    spam = row(spam=SpamVerdict(0.7, ("doorway",)))
    assert [selection_from([f"spam={kind}"]).wants(spam) for kind in ("yes", "no", "only")] == [True, False, True]
    assert [selection_from([f"spam={kind}"]).wants(row()) for kind in ("yes", "no", "only")] == [True, True, False]


def test_all_conditions_must_hold() -> None:
    assert not selection_from(["status=200", "depth>5"]).wants(row())


def test_languages_are_a_matter_of_the_page() -> None:
    selection = selection_from(["language=de,FR", "language!=fr"])
    assert selection.has_language("de")
    assert not selection.has_language("fr")
    assert not selection.has_language("")


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("hots=x", "did you mean 'host'?"),
        ("colour=red", "fields are host, domain"),
        ("host", "expected host=example.org"),
        ("host=", "expected host=example.org"),
        ("", "expected host=example.org"),
        ("host>x", "compared with = or !="),
        ("status=ok", "expected status=200"),
        ("status>=200,300", "is a number"),
        ("after=yesterday", "expected after=2026-05-01"),
        ("after>2026-05-01", "compared with ="),
        ("duplicates=maybe", "duplicates=yes, duplicates=no or duplicates=only"),
        ("spam=0.5", "spam=yes, spam=no or spam=only"),
        ("language>=de", "compared with = or !="),
    ],
)
def test_a_bad_condition_says_what_would_be_right(condition: str, hint: str) -> None:
    with pytest.raises(UsageError, match="--where") as caught:
        selection_from([condition])
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    problem = "--where"
    try:
        selection_from([text]).wants(row())
    except UsageError as error:
        problem = str(error)
    assert problem.startswith("--where")
    assert "\n" not in problem


def test_a_name_of_a_language_is_answered_with_the_form_that_is_right() -> None:
    with pytest.raises(UsageError, match="'german' is no code of a language; expected language=de,en"):
        selection_from(["language=german"])
    assert selection_from(["language=zh-hant,de"]).has_language("de")
