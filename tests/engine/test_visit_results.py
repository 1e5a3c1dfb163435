"""What another visit found: the same, something else, or nothing."""

from __future__ import annotations

import pytest

from gossamer.core.revisit.page import VisitFound
from gossamer.core.revisit.text_change import sketch_of, sketch_of_entries
from gossamer.engine.results.visit_results import found_again
from gossamer.model.records import FetchKind, Outcome, Result, Revisit, Source, UrlRecord, UrlState

TEXT = b"The first paragraph of a page says what it is about.\nSeen 12 times today."
ENTRIES = sketch_of_entries(["http://a.test/1 2024-01-01"])


def before(content_hash: bytes, sketch: bytes) -> UrlRecord:
    row = UrlRecord("http://a.test/", UrlState.DONE, 0, Source.SEED, FetchKind.PAGE, b"", 0, 1, 0, 0, 0.0, 0.0)
    row.outcome, row.content_hash, row.revisit = Outcome.OK.value, content_hash, Revisit(b"", sketch=sketch)
    return row


@pytest.mark.parametrize(
    ("stored", "now", "expected"),
    [
        ((b"1", sketch_of(TEXT)), (b"1", sketch_of(TEXT)), VisitFound.SAME),
        ((b"1", sketch_of(TEXT)), (b"2", sketch_of(TEXT.replace(b"12", b"13"))), VisitFound.SAME),
        (
            (b"1", sketch_of(TEXT)),
            (b"2", sketch_of(b"Something else altogether, and quite a lot of it.")),
            VisitFound.CHANGED,
        ),
        ((b"1", b""), (b"2", b""), VisitFound.CHANGED),  # no text: the contents decide
        ((b"1", b""), (b"1", b""), VisitFound.SAME),
        # Of sitemaps there is no hash of the content.
        ((b"", ENTRIES), (b"", ENTRIES), VisitFound.SAME),
        ((b"", ENTRIES), (b"", sketch_of_entries(["http://a.test/1 2024-01-02"])), VisitFound.CHANGED),
        ((b"", b""), (b"", b""), VisitFound.SAME),
    ],
)
def test_an_answer_is_compared_by_content_and_by_text(
    stored: tuple[bytes, bytes], now: tuple[bytes, bytes], expected: VisitFound
) -> None:
    result = Result(1, Outcome.OK, status=200, content_hash=now[0], sketch=now[1])
    assert found_again(before(*stored), result, is_soft_404=False) is expected
