from __future__ import annotations

from gossamer.model.records import FetchKind, FetchTask, Outcome, Result
from gossamer.runtime.hub.stats import TimeHistograms

ORDER = FetchTask(1, FetchKind.PAGE, "http://a.test/", b"", "a.test", (), 0, 0, 0, issued_at=10.0)


def test_the_phases_of_a_request_add_up() -> None:
    times = TimeHistograms()
    answer = Result(1, Outcome.OK, sent_at=10.3, first_byte_at=10.5, finished_at=10.9, connect_s=0.2, tls_s=0.1)
    times.count(ORDER, answer)
    assert {name: round(each.sum_s, 3) for name, each in times.copy().items()} == {
        "connect": 0.2,
        "tls": 0.1,
        "first_byte": 0.2,
        "body": 0.4,
        "total": 0.9,
    }


def test_a_kept_connection_has_no_time_to_connect() -> None:
    times = TimeHistograms()
    times.count(ORDER, Result(1, Outcome.OK, sent_at=10.3, first_byte_at=10.5, finished_at=10.9))
    counts = {name: each.count for name, each in times.copy().items()}
    assert counts == {"connect": 0, "tls": 0, "first_byte": 1, "body": 1, "total": 1}


def test_a_request_without_an_answer_is_not_counted() -> None:
    times = TimeHistograms()
    times.count(ORDER, Result(1, Outcome.TIMEOUT, sent_at=10.3, finished_at=20.3))
    assert all(each.count == 0 for each in times.copy().values())
